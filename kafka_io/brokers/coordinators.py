"""The coordinator of a group or of a transactional id: the broker that keeps its members, offsets or state."""

from collections.abc import Callable
from typing import TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, CoordinatorMoved, NetworkError, error_context
from kafka_io.messages.find_coordinator import GROUP, MANY_KEYS_SINCE, FindCoordinatorRequest, FindCoordinatorResponse
from kafka_io.model import Broker

T = TypeVar("T")


class CoordinatorConnection:
    """Finds the coordinator of one group or transactional id, and looks it up again when it has moved.

    It uses the connections of `metadata`.
    """

    def __init__(self, metadata: ClusterMetadata, key: str, *, key_type: int = GROUP) -> None:
        self.key = key
        self._key_type = key_type
        self._metadata = metadata
        self._broker: Broker | None = None

    def on(self, act: Callable[[ModernBrokerConnection], T]) -> T:
        """Call `act` with the coordinator and return its result. After a retriable error, look it up and retry.

        Raises:
            KafkaIOError: the last error of `act`, or that there is no coordinator.
        """
        with error_context(self._metadata.where):
            return self._metadata.retry(lambda: self.once(act))

    def once(self, act: Callable[[ModernBrokerConnection], T]) -> T:
        """The same without another attempt, for requests that must not be repeated blindly."""
        try:
            connection = self.connection()
            with error_context(connection.where):
                return act(connection)
        except (NetworkError, CoordinatorMoved):
            self.forget()
            raise

    def connection(self) -> ModernBrokerConnection:
        """The connection to the coordinator; brokers are asked for the coordinator if it is not known.

        Raises:
            CoordinatorMoved: there is no coordinator yet.
            BrokerError: the client is not authorized to know the coordinator.
            NetworkError: no broker can be reached.
        """
        if self._broker is None:
            self._broker = self._metadata.from_any(self._find)
        return self._metadata.connection(self._broker)

    def forget(self) -> None:
        """Look the coordinator up again when it is needed next."""
        self._broker = None

    def _find(self, connection: ModernBrokerConnection) -> Broker:
        version = connection.versions.pick(FindCoordinatorRequest.API)
        key = {"coordinator_keys": (self.key,)} if version >= MANY_KEYS_SINCE else {"key": self.key}
        response: FindCoordinatorResponse = connection.request(FindCoordinatorRequest(key_type=self._key_type, **key))
        coordinator = response if version < MANY_KEYS_SINCE else response.coordinators[0]
        ErrorCode.check(coordinator.error_code, NOWHERE, right="DESCRIBE")
        return Broker.advertised(coordinator.node_id, coordinator.host, coordinator.port)
