"""A broker as the clients hold it: one connection, opened when needed and again after it broke."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from kafka_io.client.retry import Backoff, retrying
from kafka_io.errors import NetworkError, Where, placing
from kafka_io.model import Broker
from kafka_io.net.connection import Connection
from kafka_io.v07.conversation import ClientConversation
from kafka_io.v07.messages import AnyAnswer, AnyRequest, Asked

Connection07 = Connection[AnyRequest, AnyAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for one answer of a broker, and how often to try again."""

    timeout_s: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)


class Link:
    """Keeps at most one connection to `broker`; a broken one is dropped and the next call opens another.

    After an error nothing is known of what was under way, so requests sent ahead are forgotten with their connection.
    """

    def __init__(self, broker: Broker, patience: Patience) -> None:
        self.broker = broker
        self.where = Where(broker=f"{broker.id}@{broker.address}")
        self._patience = patience
        self._connection: Connection07 | None = None

    def ask(self, request: Asked, *, accepted: Callable[[AnyAnswer], None] = lambda _: None) -> AnyAnswer:
        """The answer to `request`, asked again after errors that pass. Answers to requests sent ahead are dropped.

        `accepted` may raise for an answer that is well-formed but not good enough; a retriable error is tried again.

        Raises:
            NetworkError: the broker cannot be reached, also after all retries.
            WireError: what it sends is no answer.
        """

        def attempt() -> AnyAnswer:
            answer = self._fresh().ask(request)
            accepted(answer)
            return answer

        with placing(self.where):
            return retrying(attempt, self._patience.backoff)

    def tell(self, request: AnyRequest) -> None:
        """Send a request that has no answer, or whose answer `collect` will fetch."""
        with placing(self.where):
            self._open().send(request)

    def tell_ahead(self, request: Asked) -> bool:
        """Like `tell`; False where the broker cannot be reached, for a caller that can ask later."""
        try:
            self.tell(request)
        except NetworkError:
            return False
        return True

    def collect(self) -> AnyAnswer:
        """The answer to the oldest request that `tell` sent."""
        with placing(self.where):
            return self._open().answer()

    def close(self) -> None:
        """Drop the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection07:
        if self._connection is None or self._connection.closed:
            self._connection = Connection07.open(self.broker, ClientConversation(), timeout_s=self._patience.timeout_s)
        return self._connection

    def _fresh(self) -> Connection07:
        if self._connection is not None and self._connection.waiting:
            self.close()
        return self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
