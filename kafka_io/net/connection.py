"""A connection to a broker: a byte stream, and a conversation that encodes requests and decodes answers."""

import ssl
from typing import Any, Generic, Self, TypeVar

from kafka_io.closing import closed_on_error
from kafka_io.errors import Corrupt, NetworkError
from kafka_io.model import Broker
from kafka_io.net.deadline import Deadline
from kafka_io.net.stream import Stream
from kafka_io.wire.framing import Conversation, Frames, framed

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

_MAX_LOGIN_FRAME = 64 * 1024


class Connection(Generic[RequestT_contra, AnswerT_co]):
    """Sends requests and receives their answers in order.

    An error closes it for good, because nobody knows which requests the broker has processed.
    """

    def __init__(
        self, stream: Stream, conversation: Conversation[RequestT_contra, AnswerT_co, Any], *, timeout_s: float
    ) -> None:
        self._stream = stream
        self._conversation = conversation
        self._timeout_s = timeout_s
        self.closed = False

    @classmethod
    def open(
        cls,
        broker: Broker,
        conversation: Conversation[RequestT_contra, AnswerT_co, Any],
        *,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Connect to `broker`. `timeout_s` limits this, and each later request up to the last byte of its answer.

        Raises:
            ConnectFailed: no connection to the broker's address is possible.
            TlsFailed: the broker did not prove its identity (with `tls`).
        """
        stream = Stream.connect(broker.host, broker.port, Deadline.after(timeout_s), tls)
        return cls(stream, conversation, timeout_s=timeout_s)

    @property
    def waiting(self) -> int:
        """The number of requests without an answer."""
        return self._conversation.waiting

    def send(self, request: RequestT_contra) -> None:
        """Send a request without waiting; `answer` returns its answer later. Raises the errors of `answer`."""
        with closed_on_error(self):
            self._send(request, Deadline.after(self._timeout_s))

    def answer(self, *, timeout_s: float | None = None) -> AnswerT_co:
        """Wait for the answer to the oldest request. One deadline covers all of its bytes, however slowly they arrive.

        See faults W04, W05.

        Raises:
            NetworkError: the connection broke, or the broker is too slow.
            WireError: the received bytes cannot be the answer.
        """
        with closed_on_error(self):
            return self._answer(Deadline.after(timeout_s or self._timeout_s))

    def request(self, request: RequestT_contra, *, timeout_s: float | None = None) -> AnswerT_co:
        """Send a request and wait for its answer, both within one deadline. Raises the errors of `answer`."""
        deadline = Deadline.after(timeout_s or self._timeout_s)
        with closed_on_error(self):
            self._send(request, deadline)
            return self._answer(deadline)

    def exchange(self, data: bytes) -> bytes:
        """Send a frame without a header and return the frame that answers it, for logins before 1.0.

        Raises the errors of `answer`.
        """
        deadline = Deadline.after(self._timeout_s)
        frames = Frames(min_size=0, max_size=lambda: _MAX_LOGIN_FRAME)
        with closed_on_error(self):
            self._stream.send(framed(data), deadline)
            while True:
                frame = frames.filled(self._stream.receive_into(frames.space(), deadline))
                if frame is not None:
                    return bytes(frame)

    def send_frame(self, data: bytes) -> None:
        """Send a frame without a header that the broker does not answer, for logins before 1.0. See `answer`."""
        with closed_on_error(self):
            self._stream.send(framed(data), Deadline.after(self._timeout_s))

    def is_quiet(self) -> bool:
        """Whether the connection is open, no answer is expected, and nothing has arrived that nobody has received."""
        if self.closed or self.waiting:
            return False
        try:
            return not self._stream.has_unread()
        except NetworkError:
            return False

    def release(self) -> None:
        """Release the memory of answers; the connection stays open."""
        self._conversation.release()

    def close(self) -> None:
        """Close the connection. Calling it again does nothing."""
        self.closed = True
        self._stream.close()
        self._conversation.release()

    def _send(self, request: RequestT_contra, deadline: Deadline) -> None:
        # 0.7 has no correlation ids: a duplicated answer would pass for the answer to the next request. It can only be
        # noticed before that request is sent (fault W08).
        if not self.waiting and self._stream.has_unread():
            raise Corrupt("the broker sent bytes without a request")
        self._stream.send(self._conversation.send(request), deadline)

    def _answer(self, deadline: Deadline) -> AnswerT_co:
        while True:
            count = self._stream.receive_into(self._conversation.space(), deadline)
            answer = self._conversation.filled(count, deadline.remaining_s)
            if answer is not None:
                return answer
