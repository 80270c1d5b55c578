"""Both ends of a connection of 0.7, without a socket: bytes in, requests or answers out.

0.7 has no correlation ids. An answer belongs to the oldest request without an answer, and the only proof is that its
size and shape fit. An answer that does not fit ends the conversation (faults W08, W10, W12).
"""

from collections.abc import Callable

from kafka_io.errors import Unsupported
from kafka_io.v07.messages import REQUESTS, AnsweredRequest07, AnyAnswer, AnyRequest
from kafka_io.wire.framing import AnswerFrames, Frames
from kafka_io.wire.primitives import WireReader, no_deadline

MAX_REQUEST_BYTES = 100 * 1024 * 1024  # max.socket.request.bytes of a genuine broker
_API_BYTES = 2
_ERROR_BYTES = 2


class ClientConversation07(AnswerFrames[AnsweredRequest07]):
    """The client's end: it encodes requests, and decodes their answers in order."""

    def __init__(self) -> None:
        super().__init__(min_size=_ERROR_BYTES)

    def send(self, request: AnyRequest) -> bytes:
        """The bytes of a request, which must be sent next."""
        if isinstance(request, AnsweredRequest07):
            self._unanswered.append(request)
        return request.encode()

    def filled(self, count: int, check_time: Callable[[], object] = no_deadline) -> AnyAnswer | None:
        """Process `count` received bytes in `space()`. Returns the answer that they complete, if any.

        `check_time` is not needed: an answer of 0.7 has at most a million numbers.

        Raises:
            WireError: the bytes are not the expected answer; the connection must be closed.
        """
        del check_time
        frame = self._frames.filled(count)
        return None if frame is None else self._unanswered.popleft().decode_answer(frame)

    def _largest_answer(self, sent: AnsweredRequest07) -> int:
        return sent.largest_answer()


class ServerConversation07:
    """The broker's end: it decodes requests in order."""

    def __init__(self, max_request_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._frames = Frames(min_size=_API_BYTES, max_size=lambda: max_request_bytes)

    def space(self) -> memoryview:
        """The buffer for the next bytes from the client."""
        return self._frames.space()

    def filled(self, count: int) -> AnyRequest | None:
        """Process `count` received bytes in `space()`. Returns the request that they complete, if any.

        Raises:
            WireError: the bytes are not a request. The broker then closes the connection without an answer, as a
                genuine one does.
        """
        frame = self._frames.filled(count)
        if frame is None:
            return None
        reader = WireReader(frame)
        api = reader.int16()
        if api not in REQUESTS:
            raise Unsupported(f"0.7 has no request with the number {api}")
        return REQUESTS[api].decode_body(reader)
