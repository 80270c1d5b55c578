"""A connection to one broker, opened when it is first used and again after it broke."""

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka_io.brokers.retry import Backoff, retrying
from kafka_io.closing import Closing
from kafka_io.errors import ConnectionLost, NetworkError, Where, error_context
from kafka_io.model import Broker
from kafka_io.net.connection import Connection

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait for one answer of a broker, and how often to send a request."""

    timeout_s: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)


class PendingAnswer(Generic[AnswerT]):
    """A request whose answer is taken later. It belongs to one connection, so its answer is never that of another."""

    def __init__(self, connection: Connection[Any, AnswerT] | None, where: Where) -> None:
        self._connection = connection
        self._where = where

    def answer(self) -> AnswerT | None:
        """The answer; None if the connection broke, or was used for another request meanwhile.

        Raises:
            WireError: the broker sent something that is not the answer.
        """
        connection, self._connection = self._connection, None
        if connection is None or connection.closed:
            return None
        try:
            with error_context(self._where):
                return connection.answer()
        except NetworkError:
            return None


class BrokerConnection(Closing, Generic[RequestT, AnswerT]):
    """Keeps at most one connection to `broker`; a broken one is dropped and the next call opens another.

    After an error it is unknown how far a request came, so all requests of the connection are dropped with it.
    """

    def __init__(
        self, broker: Broker, retry_policy: RetryPolicy, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.broker = broker
        self.where = Where(broker=f"{broker.id}@{broker.address}")
        self._retry_policy = retry_policy
        self._sleep = sleep
        self._connection: Connection[RequestT, AnswerT] | None = None

    @abstractmethod
    def _connect(self, timeout_s: float) -> Connection[RequestT, AnswerT]:
        """A new connection, whose requests take at most `timeout_s` each."""

    def ask(self, request: RequestT, *, accepted: Callable[[AnswerT], None] = lambda _: None) -> AnswerT:
        """The answer to `request`, sent again after retriable errors. Answers to requests sent ahead are dropped.

        `accepted` may raise an error for a well-formed answer; if the error is retriable, the request is sent again.

        Raises:
            NetworkError: the broker cannot be reached, also after all retries.
            WireError: the broker sends something that is not an answer.
        """

        def attempt() -> AnswerT:
            answer = self._unused().ask(request)
            accepted(answer)
            return answer

        with error_context(self.where):
            return retrying(attempt, self._retry_policy.backoff, sleep=self._sleep)

    def ask_ahead(self, request: RequestT) -> PendingAnswer[AnswerT]:
        """Send `request` now, and take its answer later. It is never sent again; `ask` does that.

        Raises:
            WireError: the broker sent something that was not requested.
        """
        with error_context(self.where):
            try:
                connection = self._unused()
                connection.send(request)
            except NetworkError:
                return PendingAnswer(None, self.where)
        return PendingAnswer(connection, self.where)

    def tell(self, request: RequestT) -> None:
        """Send a request that has no answer; `confirm` shows whether the broker received it.

        Raises:
            NetworkError: the broker cannot be reached, or has closed the connection.
        """
        with error_context(self.where):
            self._open().send(request)

    def confirm(self, request: RequestT) -> AnswerT:
        """The answer to `request` on the same connection that carried the requests of `tell`; it is never sent again.

        Raises:
            NetworkError: that connection is closed; requests on it may be lost.
        """
        with error_context(self.where):
            if self._connection is None or self._connection.closed:
                raise ConnectionLost("the connection is closed; what was sent on it may be lost")
            return self._connection.ask(request)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection[RequestT, AnswerT]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect(self._retry_policy.timeout_s)
        return self._connection

    def _unused(self) -> Connection[RequestT, AnswerT]:
        """A connection on which no answer is expected."""
        if self._connection is not None and self._connection.waiting:
            self.close()
        return self._open()
