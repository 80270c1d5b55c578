"""A broker from 0.8 on: one connection, and the versions it speaks."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_io.client.link import Ahead, Link, Patience
from kafka_io.client.modern.dial import Dialling, ModernConnection
from kafka_io.client.retry import Backoff
from kafka_io.errors import placing
from kafka_io.model import Broker, Generation
from kafka_io.wire.conversation import Versioned, Versions
from kafka_io.wire.schema import Request

AnswerT = TypeVar("AnswerT")

_ONCE = Backoff(attempts=1)


class ModernLink(Link[Versioned[Any], Any]):
    """Keeps at most one connection to `broker`. It does not try again: who leads a partition must be asked first."""

    def __init__(self, broker: Broker, dialling: Dialling, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(broker, Patience(timeout_s=dialling.timeout_s, backoff=_ONCE), sleep=sleep)
        self._dialling = dialling
        self._versions: Versions | None = None
        self.generation: Generation | None = None
        self._rest_until = 0.0

    def _connect(self, timeout_s: float) -> ModernConnection:  # noqa: ARG002 - it is the dialling's own
        dialled = self._dialling.dial(self.broker)
        self._versions, self.generation = dialled.versions, dialled.generation
        return dialled.connection

    @property
    def versions(self) -> Versions:
        """What the broker spoke when it was connected to; after an upgrade the next connection tells anew.

        Raises:
            NetworkError: it cannot be reached.
        """
        if self._versions is None:
            with placing(self.where):
                self._open()
        assert self._versions is not None
        return self._versions

    def request(self, request: Request[AnswerT], *, most: int | None = None) -> AnswerT:
        """The answer to `request` in the newest version both sides speak, not above `most`.

        Raises:
            NetworkError: the broker cannot be reached.
            WireError: what it sends is no answer.
            Unsupported: it does not speak such a version.
        """
        self._rest()
        answer: AnswerT = self.ask(self._versioned(request, most))
        self._rest_until = time.monotonic() + getattr(answer, "throttle_time_ms", 0) / 1000
        return answer

    def _rest(self) -> None:
        """Wait as long as the broker's last answer asked us to, but no longer than for any answer (KIP-219)."""
        left = min(self._rest_until - time.monotonic(), self._dialling.timeout_s)
        if left > 0:
            self._sleep(left)

    def request_ahead(self, request: Request[AnswerT], *, most: int | None = None) -> Ahead[AnswerT]:
        """Send `request` for an answer that is wanted later; see `Link.ask_ahead`."""
        return self.ask_ahead(self._versioned(request, most))

    def _versioned(self, request: Request[AnswerT], most: int | None) -> Versioned[AnswerT]:
        with placing(self.where):
            return Versioned(request, self.versions.pick(request.API, most=most))
