"""Both ends of a 0.7 connection, without a socket: bytes in, requests or answers out.

The dialect has no correlation ids. An answer belongs to the oldest request not yet answered, and the only proof that it
does is that its size and shape fit; whatever does not ends the conversation (faults W08, W10, W12).
"""

from collections import deque

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.v07.messages import (
    REQUESTS,
    AnsweredRequest07,
    AnyAnswer,
    AnyRequest,
    MultiFetchAnswer07,
    MultiFetchRequest07,
    encode_request,
)
from kafka_io.wire.framing import Frames
from kafka_io.wire.primitives import WireReader

MAX_REQUEST_BYTES = 100 * 1024 * 1024  # max.socket.request.bytes of a genuine broker
_API = 2
_ERROR = 2


class ClientConversation07:
    """The client's end: requests go out, answers come back in their order."""

    def __init__(self) -> None:
        self._asked: deque[AnsweredRequest07] = deque()
        self._frames = Frames(smallest=_ERROR, largest=self._largest_answer)

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._asked)

    def send(self, request: AnyRequest) -> bytes:
        """The bytes to put on the wire for `request`."""
        data = encode_request(request)
        if isinstance(request, AnsweredRequest07):
            self._asked.append(request)
        return data

    def space(self) -> memoryview:
        """Where the next bytes from the broker belong."""
        return self._frames.space()

    def filled(self, count: int) -> AnyAnswer | None:
        """Take note of `count` bytes in `space()`; the answer they complete, if any.

        Raises:
            WireError: the answer cannot be ours; the connection must be closed.
        """
        frame = self._frames.filled(count)
        return None if frame is None else self._answer(frame)

    def _largest_answer(self) -> int:
        if not self._asked:
            raise Corrupt("the broker sent bytes without a request")
        return self._asked[0].largest_answer()

    def _answer(self, frame: memoryview) -> AnyAnswer:
        request = self._asked.popleft()
        answer = request.decode_answer(frame)
        if isinstance(request, MultiFetchRequest07) and isinstance(answer, MultiFetchAnswer07):
            _check_parts(request, answer)
        return answer


def _check_parts(request: MultiFetchRequest07, answer: MultiFetchAnswer07) -> None:
    """Each part of a MULTIFETCH answer is matched by position alone, so number and sizes must fit (fault W11)."""
    if len(answer.answers) != len(request.fetches):
        raise Corrupt(f"{len(answer.answers)} answers to {len(request.fetches)} fetches")
    for fetch, part in zip(request.fetches, answer.answers, strict=True):
        if len(part.message_set) > max(0, fetch.max_size):
            raise Corrupt(f"{len(part.message_set)} bytes answered where at most {fetch.max_size} were asked for")


class ServerConversation07:
    """The broker's end: requests come in, in order."""

    def __init__(self, max_request_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._frames = Frames(smallest=_API, largest=lambda: max_request_bytes)

    def space(self) -> memoryview:
        """Where the next bytes from the client belong."""
        return self._frames.space()

    def filled(self, count: int) -> AnyRequest | None:
        """Take note of `count` bytes in `space()`; the request they complete, if any.

        Raises:
            WireError: the broker closes the connection without a word, as a genuine one does.
        """
        frame = self._frames.filled(count)
        return None if frame is None else _request(frame)


def _request(frame: memoryview) -> AnyRequest:
    reader = WireReader(frame)
    api = reader.int16()
    kind = REQUESTS.get(api)
    if kind is None:
        raise Unsupported(f"no request of 0.7 has the number {api}")
    return kind.decode_body(reader)
