"""A connection: a stream, and the conversation that gives its bytes a meaning."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, Self, TypeVar

from kafka_io.errors import Corrupt
from kafka_io.model import Broker
from kafka_io.net.deadline import Deadline
from kafka_io.net.stream import Stream
from kafka_io.wire.framing import Frames, framed

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

_MOST_EXCHANGED = 64 * 1024


class Conversation(Protocol[RequestT_contra, AnswerT_co]):
    """What a dialect gives: bytes for a request, answers for bytes."""

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        ...

    def send(self, request: RequestT_contra) -> bytes:
        """The bytes to put on the wire."""
        ...

    def space(self) -> memoryview:
        """Where the next bytes belong."""
        ...

    def filled(self, count: int) -> AnswerT_co | None:
        """Take note of bytes in `space()`; the answer they complete, if any."""
        ...


class Connection(Generic[RequestT_contra, AnswerT_co]):
    """Requests out, answers in, in order. After an error it is closed for good: what was under way is unknown."""

    def __init__(
        self, stream: Stream, conversation: Conversation[RequestT_contra, AnswerT_co], *, timeout_s: float
    ) -> None:
        self._stream = stream
        self._conversation = conversation
        self._timeout_s = timeout_s
        self.closed = False

    @classmethod
    def open(
        cls,
        broker: Broker,
        conversation: Conversation[RequestT_contra, AnswerT_co],
        *,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Connect to `broker`; `timeout_s` bounds this and every request after it, from its start to its last byte.

        Raises:
            ConnectFailed: the broker's address leads nowhere.
            TlsFailed: with `tls`: the broker has not proven itself.
        """
        stream = Stream.connect(broker.host, broker.port, Deadline.after(timeout_s), tls)
        return cls(stream, conversation, timeout_s=timeout_s)

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return self._conversation.waiting

    def send(self, request: RequestT_contra) -> None:
        """Send without waiting for an answer; `answer` collects it. Same errors as `answer`."""
        with self._closed_on_error():
            self._send(request, Deadline.after(self._timeout_s))

    def answer(self) -> AnswerT_co:
        """Wait for the answer to the oldest request. One deadline holds for all of it, however it trickles (W04, W05).

        Raises:
            NetworkError: the broker went away or is too slow.
            WireError: what came cannot be the answer.
        """
        with self._closed_on_error():
            return self._answer(Deadline.after(self._timeout_s))

    def ask(self, request: RequestT_contra, *, timeout_s: float | None = None) -> AnswerT_co:
        """Send and wait, both within one deadline, which may be another than usual. Same errors as `answer`."""
        deadline = Deadline.after(timeout_s or self._timeout_s)
        with self._closed_on_error():
            self._send(request, deadline)
            return self._answer(deadline)

    def exchange(self, data: bytes) -> bytes:
        """A bare frame for a bare frame, as a login before 1.0 has them. Same errors as `answer`."""
        deadline = Deadline.after(self._timeout_s)
        frames = Frames(smallest=0, largest=lambda: _MOST_EXCHANGED)
        with self._closed_on_error():
            self._stream.send(framed(data), deadline)
            while True:
                found = frames.filled(self._stream.receive_into(frames.space(), deadline))
                if found is not None:
                    return bytes(found)

    def close(self) -> None:
        """End the connection; safe to call again."""
        self.closed = True
        self._stream.close()

    def _send(self, request: RequestT_contra, deadline: Deadline) -> None:
        # Without correlation ids a repeated answer would pass for the next one; it can only be noticed before that is
        # asked for (W08).
        if not self.waiting and self._stream.has_unread():
            raise Corrupt("the broker sent bytes that nobody asked for")
        self._stream.send(self._conversation.send(request), deadline)

    def _answer(self, deadline: Deadline) -> AnswerT_co:
        while True:
            count = self._stream.receive_into(self._conversation.space(), deadline)
            answer = self._conversation.filled(count)
            if answer is not None:
                return answer

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise
