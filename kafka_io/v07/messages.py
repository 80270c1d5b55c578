"""The five requests of Kafka 0.7 and their answers, both ways.

Layouts: [kafka-0.7: Framing, Requests]. A request is `int32 size | int16 api | body`; there is no version, no
correlation id, no client id. FETCH, MULTIFETCH and OFFSETS are answered with `int32 size | int16 error | rest`, in the
order of the requests; PRODUCE and MULTIPRODUCE never are, good or bad.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from kafka_io.wire.framing import framed
from kafka_io.wire.primitives import WireReader, int16, int32, int64, string

BytesLike07 = bytes | bytearray | memoryview

LATEST_TIME = -1
EARLIEST_TIME = -2
RANDOM_PARTITION = -1
_NO_ERROR = int16(0)
_LEAST_FETCH_BODY = 2 + 4 + 8 + 4
_LEAST_PRODUCE_BODY = 2 + 4 + 4
_LEAST_FETCH_ANSWER = 4 + 2


class Answer07(Protocol):
    """What a broker sends back for one request."""

    def encode(self) -> bytes:
        """The answer's whole frame."""
        ...


class Request07(Protocol):
    """What a client sends."""

    API: ClassVar[int]

    def encode_body(self) -> bytes:
        """The bytes that follow the api number."""
        ...

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse; bytes past the last field are left alone, as a genuine broker does."""
        ...


@dataclass(frozen=True, slots=True)
class FetchAnswer07:
    """An error code and a message set, which may end in a cut message."""

    error: int
    message_set: BytesLike07 = b""

    def encode(self) -> bytes:
        """`size | error | set`."""
        return framed(int16(self.error), self.message_set)

    @classmethod
    def decode(cls, body: memoryview) -> Self:
        """`body` is what follows the size."""
        reader = WireReader(body)
        return cls(reader.int16(), reader.rest())


@dataclass(frozen=True, slots=True)
class MultiFetchAnswer07:
    """A fetch answer per request, in order; the outer error is always 0 [kafka-0.7: Requests]."""

    answers: tuple[FetchAnswer07, ...]

    def encode(self) -> bytes:
        """`size | 0 | (size_i | error_i | set_i)*`."""
        return framed(_NO_ERROR, *(answer.encode() for answer in self.answers))

    @classmethod
    def decode(cls, body: memoryview) -> Self:
        """`body` is what follows the size; nothing names the topics, so position is all there is."""
        reader = WireReader(body)
        error = reader.int16()
        if error:
            return cls((FetchAnswer07(error),))
        answers = []
        while reader.left:
            answers.append(FetchAnswer07.decode(reader.view(reader.int32())))
        return cls(tuple(answers))


@dataclass(frozen=True, slots=True)
class OffsetsAnswer07:
    """Offsets at which a fetch may start, descending."""

    error: int
    offsets: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """`size | error | int32 n | n x int64`."""
        return framed(int16(self.error), int32(len(self.offsets)), *map(int64, self.offsets))

    @classmethod
    def decode(cls, body: memoryview) -> Self:
        """`body` is what follows the size."""
        reader = WireReader(body)
        error = reader.int16()
        if error and not reader.left:
            return cls(error)
        offsets = tuple(reader.int64() for _ in range(reader.bounded(reader.int32(), 8)))
        reader.end()
        return cls(error, offsets)


@dataclass(frozen=True, slots=True)
class FetchRequest07:
    """Bytes of one partition from `offset` on, at most `max_size` of them, never across the end of a segment."""

    API: ClassVar[int] = 1
    topic: str
    partition: int
    offset: int
    max_size: int

    def encode_body(self) -> bytes:
        """`str topic | int32 partition | int64 offset | int32 maxSize`."""
        return string(self.topic) + int32(self.partition) + int64(self.offset) + int32(self.max_size)

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse."""
        return cls(reader.string(), reader.int32(), reader.int64(), reader.int32())

    def largest_answer(self) -> int:
        """The most bytes that can follow the size of its answer."""
        return 2 + max(0, self.max_size)

    def decode_answer(self, body: memoryview) -> FetchAnswer07:
        """The answer to this request."""
        return FetchAnswer07.decode(body)


@dataclass(frozen=True, slots=True)
class MultiFetchRequest07:
    """Several fetches in one request."""

    API: ClassVar[int] = 2
    fetches: tuple[FetchRequest07, ...]

    def encode_body(self) -> bytes:
        """`int16 count | count x FETCH body`."""
        return int16(len(self.fetches)) + b"".join(fetch.encode_body() for fetch in self.fetches)

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse."""
        count = reader.bounded(reader.int16(), _LEAST_FETCH_BODY)
        return cls(tuple(FetchRequest07.decode_body(reader) for _ in range(count)))

    def largest_answer(self) -> int:
        """The most bytes that can follow the size of its answer."""
        return 2 + sum(4 + fetch.largest_answer() for fetch in self.fetches)

    def decode_answer(self, body: memoryview) -> MultiFetchAnswer07:
        """The answer to this request; the conversation checks that it has one part per fetch."""
        return MultiFetchAnswer07.decode(body)


@dataclass(frozen=True, slots=True)
class OffsetsRequest07:
    """Offsets before `time` (ms since the epoch, or LATEST_TIME, EARLIEST_TIME), at most `max_offsets`."""

    API: ClassVar[int] = 4
    topic: str
    partition: int
    time: int
    max_offsets: int

    def encode_body(self) -> bytes:
        """`str topic | int32 partition | int64 time | int32 maxOffsets`."""
        return string(self.topic) + int32(self.partition) + int64(self.time) + int32(self.max_offsets)

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse."""
        return cls(reader.string(), reader.int32(), reader.int64(), reader.int32())

    def largest_answer(self) -> int:
        """The most bytes that can follow the size of its answer."""
        return 2 + 4 + 8 * max(1, self.max_offsets)

    def decode_answer(self, body: memoryview) -> OffsetsAnswer07:
        """The answer to this request."""
        return OffsetsAnswer07.decode(body)


@dataclass(frozen=True, slots=True)
class ProduceRequest07:
    """A message set for one partition; RANDOM_PARTITION lets the broker pick. Never answered."""

    API: ClassVar[int] = 0
    topic: str
    partition: int
    message_set: BytesLike07

    def encode_body(self) -> bytes:
        """`str topic | int32 partition | int32 messageSetSize | set`."""
        return b"".join((string(self.topic), int32(self.partition), int32(len(self.message_set)), self.message_set))

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse."""
        return cls(reader.string(), reader.int32(), reader.view(reader.int32()))


@dataclass(frozen=True, slots=True)
class MultiProduceRequest07:
    """Several produces in one request. Never answered."""

    API: ClassVar[int] = 3
    produces: tuple[ProduceRequest07, ...]

    def encode_body(self) -> bytes:
        """`int16 count | count x PRODUCE body`."""
        return int16(len(self.produces)) + b"".join(produce.encode_body() for produce in self.produces)

    @classmethod
    def decode_body(cls, reader: WireReader) -> Self:
        """The inverse."""
        count = reader.bounded(reader.int16(), _LEAST_PRODUCE_BODY)
        return cls(tuple(ProduceRequest07.decode_body(reader) for _ in range(count)))


AnsweredRequest07 = FetchRequest07 | MultiFetchRequest07 | OffsetsRequest07
AnyRequest = AnsweredRequest07 | ProduceRequest07 | MultiProduceRequest07
AnyAnswer = FetchAnswer07 | MultiFetchAnswer07 | OffsetsAnswer07

REQUESTS: dict[int, type[AnyRequest]] = {
    kind.API: kind
    for kind in (ProduceRequest07, FetchRequest07, MultiFetchRequest07, MultiProduceRequest07, OffsetsRequest07)
}


def encode_request(request: AnyRequest) -> bytes:
    """The request's whole frame."""
    return framed(int16(request.API), request.encode_body())
