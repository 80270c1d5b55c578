"""A connection to a broker from 0.8 on, and the versions of each API that the broker supports."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_io.brokers.connection import BrokerConnection
from kafka_io.brokers.negotiation import Connector, VersionedConnection
from kafka_io.errors import error_context
from kafka_io.model import Broker, Generation
from kafka_io.wire.conversation import ApiVersionRanges, VersionedRequest
from kafka_io.wire.schema import Request

AnswerT = TypeVar("AnswerT")


class ModernBrokerConnection(BrokerConnection[VersionedRequest[Any], Any]):
    """Keeps at most one connection to `broker`. It never retries: first the leader must be looked up again."""

    def __init__(self, broker: Broker, connector: Connector, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(broker)
        self._connector = connector
        self._sleep = sleep
        self._versions: ApiVersionRanges | None = None
        self.generation: Generation | None = None
        self._throttled_until = 0.0

    def _connect(self) -> VersionedConnection:
        negotiated = self._connector.connect(self.broker)
        self._versions, self.generation = negotiated.versions, negotiated.generation
        return negotiated.connection

    @property
    def versions(self) -> ApiVersionRanges:
        """The versions that the broker supported when the connection was opened; a new connection asks again.

        Raises:
            NetworkError: the broker cannot be reached.
        """
        if self._versions is None:
            with error_context(self.where):
                self._open()
        assert self._versions is not None
        return self._versions

    def request(self, request: Request[AnswerT], *, max_version: int | None = None) -> AnswerT:
        """The answer to `request` in the newest version that both sides support, not above `max_version`.

        Raises:
            NetworkError: the broker cannot be reached.
            WireError: the broker sends something that is not an answer.
            Unsupported: the broker supports no such version.
        """
        self._wait_while_throttled()
        with error_context(self.where):
            versioned = self.versioned(request, max_version=max_version)
            answer: AnswerT = self._without_pending().request(versioned)
        self._throttled_until = time.monotonic() + getattr(answer, "throttle_time_ms", 0) / 1000
        return answer

    def versioned(self, request: Request[AnswerT], *, max_version: int | None = None) -> VersionedRequest[AnswerT]:
        """The request in the newest version that both sides support, not above `max_version`."""
        with error_context(self.where):
            return VersionedRequest(request, self.versions.pick(request.API, max_version=max_version))

    def _wait_while_throttled(self) -> None:
        """Wait as long as the broker's last answer asks for, at most as long as for an answer (KIP-219)."""
        remaining_s = min(self._throttled_until - time.monotonic(), self._connector.timeout_s)
        if remaining_s > 0:
            self._sleep(remaining_s)
