"""A connection to one broker, opened when it is first used and again after it broke."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from kafka_io.brokers.fetch_rate import FetchPace
from kafka_io.brokers.retry import Backoff
from kafka_io.closing import Closing
from kafka_io.errors import NetworkError, Where, error_context
from kafka_io.model import Broker
from kafka_io.net.connection import Connection

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait for one answer of a broker, and how often to send a request."""

    timeout_s: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)


class BrokerConnection(Closing, Generic[RequestT, AnswerT]):
    """Keeps at most one connection to `broker`; a broken one is dropped and the next request opens another.

    After an error it is unknown how far a request came, so all requests of the connection are dropped with it.
    """

    def __init__(self, broker: Broker, pace: FetchPace, sleep: Callable[[float], None]) -> None:
        self.broker = broker
        self._pace = pace
        self._sleep = sleep
        self.where = Where(broker=f"{broker.id}@{broker.address}")
        self._connection: Connection[RequestT, AnswerT] | None = None

    @abstractmethod
    def _connect(self) -> Connection[RequestT, AnswerT]:
        """A new connection to the broker."""

    def send(self, request: RequestT) -> None:
        """Send a request that has no answer.

        Raises:
            NetworkError: the broker cannot be reached, or has closed the connection.
        """
        with error_context(self.where):
            self._open().send(request)

    def request_ahead(self, request: RequestT) -> Callable[[], AnswerT | None]:
        """Send `request` now. The function that is returned waits for the answer; the request is never sent again.

        The function returns None if the connection broke, or was used for another request in between. It raises
        WireError if the broker sent something that is not the answer. Nothing is sent while the rate of fetches is used
        up.

        Raises:
            WireError: the broker sent something that was not requested.
        """
        if self._pace.wait_s():
            return lambda: None
        with error_context(self.where):
            try:
                connection = self._without_pending()
                connection.send(request)
            except NetworkError:
                return lambda: None
        return partial(self._pending_answer, connection)

    def _pending_answer(self, connection: Connection[RequestT, AnswerT]) -> AnswerT | None:
        # Another request closes a connection on which an answer is pending, so this answer is never that of another.
        if connection.closed or not connection.waiting:
            return None
        with error_context(self.where):
            try:
                answer = connection.answer()
            except NetworkError:
                return None
        self._count(answer)
        return answer

    @abstractmethod
    def _count(self, answer: AnswerT) -> None:
        """Count the bytes of records in an answer, which is a part of the rate of fetches."""

    def pause(self) -> None:
        """Release memory before a time without requests. A connection on which an answer is expected is closed."""
        if self._connection is not None:
            if self._connection.waiting:
                self.close()
            else:
                self._connection.release()

    def resume(self) -> None:
        """Close the connection if something happened on it during a pause: the next request opens another at once."""
        if self._connection is not None and not self._connection.is_quiet():
            self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection[RequestT, AnswerT]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def _without_pending(self) -> Connection[RequestT, AnswerT]:
        """A connection on which no answer is expected: an answer that nobody took must not pass for the next one."""
        if self._connection is not None and self._connection.waiting:
            self.close()
        return self._open()
