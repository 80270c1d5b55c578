"""FindCoordinator: asks for the broker that coordinates a group or a transactional id.

From v4 on one request asks for several keys (KIP-699).
"""

from kafka_io.messages.echoes import check_complete_echo
from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int8, Int16, Int32, String

GROUP, TRANSACTION = 0, 1
MANY_KEYS_SINCE = 4  # KIP-699


class FoundCoordinator(Struct):
    """The coordinator of one key, from v4 on."""

    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: String | None = None


class FindCoordinatorResponse(ThrottledAnswer, since=1):
    """One coordinator up to v3, and one for each key from v4 on."""

    error_code: Int16 = wire(until=3, default=0)
    error_message: String | None = wire(since=1, until=3, default=None, ignorable=True)  # KIP-98
    node_id: Int32 = wire(until=3, default=0)
    host: String = wire(until=3, default="")
    port: Int32 = wire(until=3, default=0)
    coordinators: tuple[FoundCoordinator, ...] = wire(since=4, default=())  # KIP-699: many keys at once


class FindCoordinatorRequest(Request[FindCoordinatorResponse], key=10, versions=(0, 6), flexible_from=3):
    """The groups or transactional ids: one `key` up to v3, `coordinator_keys` of the same type from v4 on."""

    key: String = wire(until=3, default="")
    key_type: Int8 = wire(since=1, default=GROUP)  # KIP-98: a group or a transactional id
    coordinator_keys: tuple[String, ...] = wire(since=4, default=())  # KIP-699

    def check_answer(self, answer: FindCoordinatorResponse, version: int, /) -> None:
        """Up to v3 the answer names no key."""
        if version >= MANY_KEYS_SINCE:
            check_complete_echo(
                ((key,) for key in self.coordinator_keys), ((coordinator.key,) for coordinator in answer.coordinators)
            )
