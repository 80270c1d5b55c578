"""A broker as the clients hold it: one connection, opened when needed and again after it broke."""

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka_io.client.retry import Backoff, retrying
from kafka_io.closing import Closing
from kafka_io.errors import ConnectionLost, NetworkError, Where, placing
from kafka_io.model import Broker
from kafka_io.net.connection import Connection

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for one answer of a broker, and how often to try again."""

    timeout_s: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)


class Ahead(Generic[AnswerT]):
    """A request sent ahead of its time. It is bound to the connection it went out on, so its answer is no other's."""

    def __init__(self, connection: Connection[Any, AnswerT] | None, where: Where) -> None:
        self._connection = connection
        self._where = where

    def answer(self) -> AnswerT | None:
        """The answer; None where the connection broke, or the link was used for something else meanwhile.

        Raises:
            WireError: what came cannot be the answer.
        """
        connection, self._connection = self._connection, None
        if connection is None or connection.closed:
            return None
        try:
            with placing(self._where):
                return connection.answer()
        except NetworkError:
            return None


class Link(Closing, Generic[RequestT, AnswerT]):
    """Keeps at most one connection to `broker`; a broken one is dropped and the next call opens another.

    After an error nothing is known of what was under way, so requests sent ahead are forgotten with their connection.
    """

    def __init__(self, broker: Broker, patience: Patience, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.broker = broker
        self.where = Where(broker=f"{broker.id}@{broker.address}")
        self._patience = patience
        self._sleep = sleep
        self._connection: Connection[RequestT, AnswerT] | None = None

    @abstractmethod
    def _connect(self, timeout_s: float) -> Connection[RequestT, AnswerT]:
        """A new connection, whose requests take at most `timeout_s` each."""

    def ask(self, request: RequestT, *, accepted: Callable[[AnswerT], None] = lambda _: None) -> AnswerT:
        """The answer to `request`, asked again after errors that pass. Answers to requests sent ahead are dropped.

        `accepted` may raise for an answer that is well-formed but not good enough; a retriable error is tried again.

        Raises:
            NetworkError: the broker cannot be reached, also after all retries.
            WireError: what it sends is no answer.
        """

        def attempt() -> AnswerT:
            answer = self._unused().ask(request)
            accepted(answer)
            return answer

        with placing(self.where):
            return retrying(attempt, self._patience.backoff, sleep=self._sleep)

    def ask_ahead(self, request: RequestT) -> Ahead[AnswerT]:
        """Send `request` for an answer that is wanted later. It is not tried again: who needs the answer can ask.

        Raises:
            WireError: the broker sent what nobody asked for.
        """
        with placing(self.where):
            try:
                connection = self._unused()
                connection.send(request)
            except NetworkError:
                return Ahead(None, self.where)
        return Ahead(connection, self.where)

    def tell(self, request: RequestT) -> None:
        """Send a request that has no answer; `confirm` shows whether it was taken in.

        Raises:
            NetworkError: the broker cannot be reached, or closed the connection since.
        """
        with placing(self.where):
            self._open().send(request)

    def confirm(self, request: RequestT) -> AnswerT:
        """The answer to `request` on the very connection that carried what was told. It is not tried again.

        Raises:
            NetworkError: that connection is gone, maybe with what it carried.
        """
        with placing(self.where):
            if self._connection is None or self._connection.closed:
                raise ConnectionLost("the connection is gone, maybe with what was sent on it")
            return self._connection.ask(request)

    def close(self) -> None:
        """Drop the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection[RequestT, AnswerT]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect(self._patience.timeout_s)
        return self._connection

    def _unused(self) -> Connection[RequestT, AnswerT]:
        """A connection on which no answer is under way."""
        if self._connection is not None and self._connection.waiting:
            self.close()
        return self._open()
