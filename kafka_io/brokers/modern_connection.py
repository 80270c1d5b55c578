"""A connection to a broker from 0.8 on, and the versions of each API that the broker supports."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_io import stopping
from kafka_io.brokers.connection import BrokerConnection
from kafka_io.brokers.negotiation import Connector, NegotiatedConnection, VersionedConnection
from kafka_io.brokers.throttle import Throttle
from kafka_io.errors import error_context
from kafka_io.messages.fetch import FetchRequest, FetchResponse
from kafka_io.model import Broker, Generation
from kafka_io.net.connection import Connection
from kafka_io.wire.conversation import ApiVersionRanges, VersionedRequest
from kafka_io.wire.schema import Request

AnswerT = TypeVar("AnswerT")


class ModernBrokerConnection(BrokerConnection[VersionedRequest[Any], Any]):
    """Keeps at most one connection to `broker`. It never retries: first the leader must be looked up again."""

    def __init__(
        self, broker: Broker, connector: Connector, *, sleep: Callable[[float], None] = stopping.sleep
    ) -> None:
        super().__init__(broker, connector.fetch_rate.pace(broker), sleep)
        self._connector = connector
        self._negotiated: NegotiatedConnection | None = None
        self.generation: Generation | None = None
        advice = ": its quota for this client is too small for the load"
        self._throttle = Throttle("the broker", sleep, advice)

    def _connect(self) -> VersionedConnection:
        self._negotiated = self._connector.connect(self.broker)
        self.generation = self._negotiated.generation
        return self._negotiated.connection

    def _without_pending(self) -> Connection[VersionedRequest[Any], Any]:
        """The connection without unread answers. If the broker demands it, the client logs in again first (KIP-368)."""
        connection = super()._without_pending()
        assert self._negotiated is not None
        if time.monotonic() >= self._negotiated.login_due_at:
            self._negotiated = self._connector.log_in(self._negotiated)
        return connection

    @property
    def versions(self) -> ApiVersionRanges:
        """The versions that the broker supported when the connection was opened; a new connection asks again.

        Raises:
            NetworkError: the broker cannot be reached.
        """
        if self._negotiated is None:
            with error_context(self.where):
                self._open()
        assert self._negotiated is not None
        return self._negotiated.versions

    def request(self, request: Request[AnswerT], *, max_version: int | None = None) -> AnswerT:
        """The answer to `request` in the newest version that both sides support, not above `max_version`.

        Raises:
            NetworkError: the broker cannot be reached.
            WireError: the broker sends something that is not an answer.
            Unsupported: the broker supports no such version.
            Throttled: the broker has asked to wait for more than MAX_THROTTLE_S.
        """
        with error_context(self.where):
            self._throttle.obey()
            if isinstance(request, FetchRequest) and (wait_s := self._pace.wait_s()):
                self._sleep(wait_s)
            versioned = self.versioned(request, max_version=max_version)
            answer: AnswerT = self._without_pending().request(versioned)
        self._count(answer)
        return answer

    def request_ahead(self, request: VersionedRequest[Any]) -> Callable[[], Any | None]:
        """Send a request now and read its answer later. Nothing is sent while the broker asks to wait."""
        return (lambda: None) if self._throttle.until > time.monotonic() else super().request_ahead(request)

    def versioned(self, request: Request[AnswerT], *, max_version: int | None = None) -> VersionedRequest[AnswerT]:
        """The request in the newest version that both sides support, not above `max_version`."""
        with error_context(self.where):
            return VersionedRequest(request, self.versions.pick(request.API, max_version=max_version))

    def _count(self, answer: object) -> None:
        """Count the bytes of records, and note how long the broker asks to wait before the next request (KIP-219)."""
        throttle_s = max(0, getattr(answer, "throttle_time_ms", 0)) / 1000
        size = _record_bytes(answer)
        self._pace.add(size)
        self._throttle.note(throttle_s, progress=not throttle_s or size > 0)


def _record_bytes(answer: object) -> int:
    """The bytes of records in an answer: none if a broker with an exhausted quota answers a fetch without records."""
    if not isinstance(answer, FetchResponse):
        return 0
    return sum(len(partition.records or b"") for topic in answer.responses for partition in topic.partitions)
