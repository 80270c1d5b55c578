"""The broker that keeps a group's offsets and members, or a transaction: asked for, and again when it has moved."""

from collections.abc import Callable
from typing import TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import CoordinatorMoved, Corrupt, NetworkError, Where, error_context
from kafka_io.messages.find_coordinator import GROUP, FindCoordinatorRequest, FindCoordinatorResponse
from kafka_io.model import Broker

T = TypeVar("T")

_MANY_SINCE = 4  # KIP-699


class CoordinatorConnection:
    """Asks the coordinator of one group, or of one transactional id, over the connections of `brokers`."""

    def __init__(self, brokers: ClusterMetadata, group: str, *, key_type: int = GROUP) -> None:
        self.group = group
        self._key_type = key_type
        self._brokers = brokers
        self._found: Broker | None = None

    def on(self, act: Callable[[ModernBrokerConnection], T]) -> T:
        """What `act` returns for the coordinator; when that moved or went away, the next one is found.

        Raises:
            KafkaIOError: the last of `act`'s, or that there is no coordinator.
        """
        with error_context(self._brokers.where.within(Where())):
            return self._brokers.retry(lambda: self.once(act))

    def once(self, act: Callable[[ModernBrokerConnection], T]) -> T:
        """The same, and no other attempt: for requests whose answers say whether there may be one."""
        try:
            link = self.connection()
            with error_context(link.where):
                return act(link)
        except (NetworkError, CoordinatorMoved):
            self.forget()
            raise

    def connection(self) -> ModernBrokerConnection:
        """The connection to the coordinator as far as is known; asked for if it is not.

        Raises:
            CoordinatorMoved: there is none yet.
            BrokerError: we may not know.
            NetworkError: no broker can be reached.
        """
        if self._found is None:
            self._found = self._brokers.from_any(self._ask)
        return self._brokers.connection(self._found)

    def forget(self) -> None:
        """Ask anew next time."""
        self._found = None

    def _ask(self, link: ModernBrokerConnection) -> Broker:
        version = link.versions.pick(FindCoordinatorRequest.API)
        asked = {"coordinator_keys": (self.group,)} if version >= _MANY_SINCE else {"key": self.group}
        answer: FindCoordinatorResponse = link.request(FindCoordinatorRequest(key_type=self._key_type, **asked))
        found = answer if version < _MANY_SINCE else next((one for one in answer.coordinators), None)
        if found is None:
            raise Corrupt("an answer without the coordinator that was asked for")
        ErrorCode.check(found.error_code, Where())
        return Broker(found.node_id, found.host, found.port)
