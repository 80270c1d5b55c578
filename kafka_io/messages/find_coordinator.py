"""FindCoordinator: the broker that keeps a group or a transaction. From v4 on it asks for many keys (KIP-699)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int8, Int16, Int32, String

GROUP, TRANSACTION = 0, 1


class FoundCoordinator(Struct):
    """Who keeps one key, from v4 on."""

    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: String | None = None


class FindCoordinatorResponse(Struct):
    """One coordinator up to v3, one for each key from v4 on."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16 = wire(until=3, default=0)
    error_message: String | None = wire(since=1, until=3, default=None, ignorable=True)
    node_id: Int32 = wire(until=3, default=0)
    host: String = wire(until=3, default="")
    port: Int32 = wire(until=3, default=0)
    coordinators: tuple[FoundCoordinator, ...] = wire(since=4, default=())  # KIP-699: many keys at once


class FindCoordinatorRequest(Request[FindCoordinatorResponse], key=10, versions=(0, 6), flexible_from=3):
    """Whose coordinator to look up: `key` up to v3, `coordinator_keys` from v4 on, all of one type."""

    key: String = wire(until=3, default="")
    key_type: Int8 = wire(since=1, default=GROUP)  # KIP-98: of a group or a transaction
    coordinator_keys: tuple[String, ...] = wire(since=4, default=())  # KIP-699
