"""The five requests of Kafka 0.7 and their answers, both ways.

Layouts: seed 000 and kafka-0.7-facts, section 1. A request is `int32 size | int16 api | body`; there is no version, no
correlation id, no client id. FETCH, MULTIFETCH and OFFSETS are answered with `int32 size | int16 error | rest`, in the
order of the requests; PRODUCE and MULTIPRODUCE never are, good or bad.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from kafka_io.wire.framing import framed
from kafka_io.wire.primitives import Reader, int16, int32, int64, string

Bytes = bytes | bytearray | memoryview

LATEST_TIME = -1
EARLIEST_TIME = -2
RANDOM_PARTITION = -1
_NO_ERROR = int16(0)
_LEAST_FETCH_BODY = 2 + 4 + 8 + 4
_LEAST_PRODUCE_BODY = 2 + 4 + 4
_LEAST_FETCH_ANSWER = 4 + 2


class Answer(Protocol):
    """What a broker sends back for one request."""

    def encode(self) -> bytes:
        """The answer's whole frame."""
        ...


class Request(Protocol):
    """What a client sends."""

    API: ClassVar[int]

    def encode_body(self) -> bytes:
        """The bytes that follow the api number."""
        ...

    @classmethod
    def decode_body(cls, reader: Reader) -> Self:
        """The inverse; bytes past the last field are left alone, as a genuine broker does."""
        ...


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """An error code and a message set, which may end in a cut message."""

    error: int
    message_set: Bytes = b""

    def encode(self) -> bytes:
        """`size | error | set`."""
        return framed(int16(self.error), self.message_set)

    @classmethod
    def decode(cls, body: memoryview) -> Self:
        """`body` is what follows the size."""
        reader = Reader(body)
        return cls(reader.int16(), reader.rest())


@dataclass(frozen=True, slots=True)
class MultiFetchAnswer:
    """A fetch answer per request, in order; the outer error is always 0 (facts, 1)."""

    answers: tuple[FetchAnswer, ...]

    def encode(self) -> bytes:
        """`size | 0 | (size_i | error_i | set_i)*`."""
        return framed(_NO_ERROR, *(answer.encode() for answer in self.answers))

    @classmethod
    def decode(cls, body: memoryview) -> Self:
        """`body` is what follows the size; nothing names the topics, so position is all there is."""
        reader = Reader(body)
        error = reader.int16()
        if error:
            return cls((FetchAnswer(error),))
        answers = []
        while reader.left:
            answers.append(FetchAnswer.decode(reader.view(reader.int32())))
        return cls(tuple(answers))


@dataclass(frozen=True, slots=True)
class OffsetsAnswer:
    """Offsets at which a fetch may start, descending."""

    error: int
    offsets: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """`size | error | int32 n | n x int64`."""
        return framed(int16(self.error), int32(len(self.offsets)), *map(int64, self.offsets))

    @classmethod
    def decode(cls, body: memoryview) -> Self:
        """`body` is what follows the size."""
        reader = Reader(body)
        error = reader.int16()
        if error and not reader.left:
            return cls(error)
        offsets = tuple(reader.int64() for _ in range(reader.count(each=8)))
        reader.end()
        return cls(error, offsets)


@dataclass(frozen=True, slots=True)
class Fetch:
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
    def decode_body(cls, reader: Reader) -> Self:
        """The inverse."""
        return cls(reader.string(), reader.int32(), reader.int64(), reader.int32())

    def largest_answer(self) -> int:
        """The most bytes that can follow the size of its answer."""
        return 2 + max(0, self.max_size)

    def decode_answer(self, body: memoryview) -> FetchAnswer:
        """The answer to this request."""
        return FetchAnswer.decode(body)


@dataclass(frozen=True, slots=True)
class MultiFetch:
    """Several fetches in one request."""

    API: ClassVar[int] = 2
    fetches: tuple[Fetch, ...]

    def encode_body(self) -> bytes:
        """`int16 count | count x FETCH body`."""
        return int16(len(self.fetches)) + b"".join(fetch.encode_body() for fetch in self.fetches)

    @classmethod
    def decode_body(cls, reader: Reader) -> Self:
        """The inverse."""
        count = reader.short_count(each=_LEAST_FETCH_BODY)
        return cls(tuple(Fetch.decode_body(reader) for _ in range(count)))

    def largest_answer(self) -> int:
        """The most bytes that can follow the size of its answer."""
        return 2 + sum(4 + fetch.largest_answer() for fetch in self.fetches)

    def decode_answer(self, body: memoryview) -> MultiFetchAnswer:
        """The answer to this request; the conversation checks that it has one part per fetch."""
        return MultiFetchAnswer.decode(body)


@dataclass(frozen=True, slots=True)
class Offsets:
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
    def decode_body(cls, reader: Reader) -> Self:
        """The inverse."""
        return cls(reader.string(), reader.int32(), reader.int64(), reader.int32())

    def largest_answer(self) -> int:
        """The most bytes that can follow the size of its answer."""
        return 2 + 4 + 8 * max(1, self.max_offsets)

    def decode_answer(self, body: memoryview) -> OffsetsAnswer:
        """The answer to this request."""
        return OffsetsAnswer.decode(body)


@dataclass(frozen=True, slots=True)
class Produce:
    """A message set for one partition; RANDOM_PARTITION lets the broker pick. Never answered."""

    API: ClassVar[int] = 0
    topic: str
    partition: int
    message_set: Bytes

    def encode_body(self) -> bytes:
        """`str topic | int32 partition | int32 messageSetSize | set`."""
        return b"".join((string(self.topic), int32(self.partition), int32(len(self.message_set)), self.message_set))

    @classmethod
    def decode_body(cls, reader: Reader) -> Self:
        """The inverse."""
        return cls(reader.string(), reader.int32(), reader.view(reader.int32()))


@dataclass(frozen=True, slots=True)
class MultiProduce:
    """Several produces in one request. Never answered."""

    API: ClassVar[int] = 3
    produces: tuple[Produce, ...]

    def encode_body(self) -> bytes:
        """`int16 count | count x PRODUCE body`."""
        return int16(len(self.produces)) + b"".join(produce.encode_body() for produce in self.produces)

    @classmethod
    def decode_body(cls, reader: Reader) -> Self:
        """The inverse."""
        count = reader.short_count(each=_LEAST_PRODUCE_BODY)
        return cls(tuple(Produce.decode_body(reader) for _ in range(count)))


Asked = Fetch | MultiFetch | Offsets
AnyRequest = Asked | Produce | MultiProduce
AnyAnswer = FetchAnswer | MultiFetchAnswer | OffsetsAnswer

REQUESTS: dict[int, type[AnyRequest]] = {kind.API: kind for kind in (Produce, Fetch, MultiFetch, MultiProduce, Offsets)}


def encode_request(request: AnyRequest) -> bytes:
    """The request's whole frame."""
    return framed(int16(request.API), request.encode_body())
