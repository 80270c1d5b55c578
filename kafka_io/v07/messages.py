"""The five requests of Kafka 0.7 and their answers, both ways, and the client's end of a connection.

Layouts: [kafka-0.7: Framing, Requests]. A request is `int32 size | int16 api | body`; it has no version, no correlation
id and no client id. FETCH, MULTIFETCH and OFFSETS are answered with `int32 size | int16 error | rest`, in the order of
the requests. PRODUCE and MULTIPRODUCE have no answer, whether they succeed or fail.

The fields of a class are the layout of its body, in their order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire.framing import Conversation, framed
from kafka_io.wire.primitives import Octets, WireReader, int16, int64
from kafka_io.wire.schema import NEVER, Api
from kafka_io.wire.types import LONG, SHORT, Fixed, Int16, Int32, Int64, Items, String, WireBytes

LATEST_TIME = -1
EARLIEST_TIME = -2
RANDOM_PARTITION = -1
API_BYTES = 2
"""The size of the number of an API, the first field of a request."""
MAX_OFFSETS = 1_000_000
"""The maximum number of offsets in an answer: a genuine broker keeps the file of every segment open."""

_LAYOUT = Api(key=-1, name="Kafka 0.7", versions=(0, 0), flexible_from=NEVER, answer=object)
_MAX_FETCHES = 2**15 - 1  # in a MULTIFETCH, which counts them in 16 bits
_ERROR_BYTES, _SIZE_BYTES, _COUNT_BYTES, _OFFSET_BYTES = 2, 4, 4, 8
_OFFSETS = Items(LONG, nullable=False, item=Fixed(_OFFSET_BYTES, int64, WireReader.int64), max_items=MAX_OFFSETS)

Unread = Annotated[Octets, Fixed(0, bytes, WireReader.unread)]
"""All bytes up to the end of the frame."""


class Body07:
    """Fields that can be encoded and decoded."""

    __slots__ = ()

    def encode_body(self) -> bytes:
        """The bytes of the fields.

        Raises:
            Unsupported: a value does not fit its field.
        """
        return b"".join(_LAYOUT.encode(self, 0))

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse of `encode_body`. Bytes after the last field are ignored, as a genuine broker does.

        Raises:
            WireError: the bytes are not these fields.
        """
        return _LAYOUT.read(cls, reader, 0)


class Request07(Body07):
    """What a client sends."""

    __slots__ = ()
    API: ClassVar[int]

    def encode(self) -> bytes:
        """The whole frame."""
        return framed(int16(self.API), self.encode_body())


class Answer07(Body07):
    """What a broker sends back for one request."""

    __slots__ = ()

    def encode(self) -> bytes:
        """The whole frame."""
        return framed(self.encode_body())


@dataclass(frozen=True, slots=True)
class FetchAnswer07(Answer07):
    """An error code and a message set, whose last message can be incomplete."""

    error: Int16
    message_set: Unread = b""


@dataclass(frozen=True, slots=True)
class MultiFetchAnswer07(Answer07):
    """A fetch answer for each request, in order. The error code in front of them is always 0 [kafka-0.7: Requests]."""

    answers: tuple[FetchAnswer07, ...]

    def encode_body(self) -> bytes:
        """`error 0 | (size | error | message set)*`."""
        return int16(0) + b"".join(answer.encode() for answer in self.answers)

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse. Nothing names the topics: an answer belongs to the request at the same position."""
        error = reader.int16()
        if error:
            return cls((FetchAnswer07(error),))
        answers: list[FetchAnswer07] = []
        while reader.unread_bytes:
            if len(answers) == _MAX_FETCHES:
                raise Corrupt(f"the broker sent more than {_MAX_FETCHES} answers to fetches")
            answers.append(FetchAnswer07.decode_body(WireReader(reader.view(reader.int32()))))
        return cls(tuple(answers))


@dataclass(frozen=True, slots=True)
class OffsetsAnswer07(Answer07):
    """Offsets at which a fetch may start, descending."""

    error: Int16
    offsets: tuple[Int64, ...] = ()

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse of `encode_body`. An answer can end after an error code."""
        error = reader.int16()
        offsets = () if error and not reader.unread_bytes else _OFFSETS.read(reader)
        reader.end()
        return cls(error, offsets)


@dataclass(frozen=True, slots=True)
class FetchRequest07(Request07):
    """Bytes of one partition from `offset` on, at most `max_size` of them, never across the end of a segment."""

    API: ClassVar[int] = 1
    topic: String
    partition: Int32
    offset: Int64
    max_size: Int32

    def largest_answer(self) -> int:
        """The maximum size of its answer in bytes, without the size field itself."""
        return _ERROR_BYTES + max(0, self.max_size)

    def decode_answer(self, body: memoryview) -> FetchAnswer07:
        """The answer to this request."""
        return FetchAnswer07.decode_body(WireReader(body))


@dataclass(frozen=True, slots=True)
class MultiFetchRequest07(Request07):
    """Several fetches in one request."""

    API: ClassVar[int] = 2
    fetches: Annotated[tuple[FetchRequest07, ...], SHORT]

    def largest_answer(self) -> int:
        """The maximum size of its answer in bytes, without the size field itself."""
        return _ERROR_BYTES + sum(_SIZE_BYTES + fetch.largest_answer() for fetch in self.fetches)

    def decode_answer(self, body: memoryview) -> MultiFetchAnswer07:
        """The answer to this request.

        Raises:
            Corrupt: the parts do not fit the fetches. They are matched by position alone, so only their number and
                sizes can be checked (fault W11).
        """
        answer = MultiFetchAnswer07.decode_body(WireReader(body))
        if len(answer.answers) != len(self.fetches):
            raise Corrupt(f"the broker sent {len(answer.answers)} answers to {len(self.fetches)} fetches")
        for fetch, part in zip(self.fetches, answer.answers, strict=True):
            if len(part.message_set) > max(0, fetch.max_size):
                raise Corrupt(f"the broker sent {len(part.message_set)} bytes for a fetch of at most {fetch.max_size}")
        return answer


@dataclass(frozen=True, slots=True)
class OffsetsRequest07(Request07):
    """Offsets before `time` (ms since the epoch, or LATEST_TIME, EARLIEST_TIME), at most `max_offsets`."""

    API: ClassVar[int] = 4
    topic: String
    partition: Int32
    time: Int64
    max_offsets: Int32

    def largest_answer(self) -> int:
        """The maximum size of its answer in bytes, without the size field itself."""
        return _ERROR_BYTES + _COUNT_BYTES + _OFFSET_BYTES * max(1, self.max_offsets)

    def decode_answer(self, body: memoryview) -> OffsetsAnswer07:
        """The answer to this request."""
        return OffsetsAnswer07.decode_body(WireReader(body))


@dataclass(frozen=True, slots=True)
class ProduceRequest07(Request07):
    """A message set for one partition. RANDOM_PARTITION lets the broker choose. It has no answer."""

    API: ClassVar[int] = 0
    topic: String
    partition: Int32
    message_set: WireBytes


@dataclass(frozen=True, slots=True)
class MultiProduceRequest07(Request07):
    """Several produces in one request. It has no answer."""

    API: ClassVar[int] = 3
    produces: Annotated[tuple[ProduceRequest07, ...], SHORT]


AnsweredRequest07 = FetchRequest07 | MultiFetchRequest07 | OffsetsRequest07
AnyRequest = AnsweredRequest07 | ProduceRequest07 | MultiProduceRequest07
AnyAnswer = FetchAnswer07 | MultiFetchAnswer07 | OffsetsAnswer07

_REQUESTS: dict[int, type[AnyRequest]] = {
    kind.API: kind
    for kind in (ProduceRequest07, FetchRequest07, MultiFetchRequest07, MultiProduceRequest07, OffsetsRequest07)
}


def decode_request(frame: memoryview) -> AnyRequest:
    """The request in a frame of at least API_BYTES.

    Raises:
        WireError: the bytes are not a request. The broker then closes the connection without an answer, as a genuine
            one does.
    """
    reader = WireReader(frame)
    api = reader.int16()
    if api not in _REQUESTS:
        raise Unsupported(f"0.7 has no request with the number {api}")
    return _REQUESTS[api].decode_body(reader)


class ClientConversation07(Conversation[AnyRequest, AnyAnswer, AnsweredRequest07]):
    """The client's end of a connection of 0.7. It has no correlation ids.

    An answer belongs to the oldest request without an answer, and the only proof is that its size and shape fit. An
    answer that does not fit ends the conversation (faults W08, W10, W12).
    """

    def __init__(self) -> None:
        super().__init__(min_size=_ERROR_BYTES)

    def send(self, request: AnyRequest) -> bytes:
        """The bytes of a request, which must be sent next."""
        if isinstance(request, AnsweredRequest07):
            self._unanswered.append(request)
        return request.encode()

    def _largest_answer(self, sent: AnsweredRequest07) -> int:
        return sent.largest_answer()

    def _decoded(self, sent: AnsweredRequest07, frame: memoryview, _check_time: Callable[[], object]) -> AnyAnswer:
        return sent.decode_answer(frame)  # it has at most a million numbers, so the time is not checked
