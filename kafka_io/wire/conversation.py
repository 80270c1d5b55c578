"""Both ends of a connection from 0.8 on, without a socket: bytes in, requests or answers out.

A request is `int32 size | int16 api | int16 version | int32 correlation | string? client id | tags? | body`, its answer
`int32 size | int32 correlation | tags? | body`; there are tags in flexible versions (KIP-482), but in no answer to
ApiVersions, which a client must be able to read before it knows what is spoken (KIP-511). A broker answers in the order
of the requests: any other correlation id ends the conversation (W08).
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire import primitives
from kafka_io.wire.framing import Frames, framed
from kafka_io.wire.primitives import Reader
from kafka_io.wire.schema import Api, Request
from kafka_io.wire.types import SHORT, Text

API_VERSIONS_KEY = 18
DEFAULT_MAX_ANSWER_BYTES = 256 * 1024 * 1024
_CORRELATION_BYTES = 4
_IDS = 2**31
_NO_TAGS = primitives.uvarint(0)
_CLIENT_ID = Text(SHORT, nullable=True)

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Versions:
    """What the other side speaks: of each API's number the first and last version."""

    offered: Mapping[int, tuple[int, int]]

    def pick(self, api: Api[Any], *, most: int | None = None) -> int:
        """The newest version that both sides speak, not above `most`.

        Raises:
            Unsupported: there is none.
        """
        first, last = api.versions
        if api.key not in self.offered:
            raise Unsupported(f"the broker does not know {api.name}")
        theirs_first, theirs_last = self.offered[api.key]
        version = min(last, theirs_last, last if most is None else most)
        if version < max(first, theirs_first):
            raise Unsupported(f"{api.name}: the broker speaks v{theirs_first} to v{theirs_last}, we {first} to {last}")
        return version

    def speaks(self, api: Api[Any], version: int) -> bool:
        """Whether both sides speak this very version."""
        first, last = self.offered.get(api.key, (0, -1))
        return first <= version <= last and api.versions[0] <= version <= api.versions[1]


@dataclass(frozen=True, slots=True)
class Versioned(Generic[AnswerT]):
    """A request in a version of its API; `answered` is false for the one that has no answer, Produce with acks 0."""

    request: Request[AnswerT]
    version: int
    answered: bool = True


class ClientConversation:
    """The client's end: requests go out, each with its version; answers come back in their order."""

    def __init__(self, client_id: str, *, max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES) -> None:
        self._client_id = client_id
        self._next_id = 0
        self._asked: deque[tuple[int, Versioned[Any]]] = deque()
        self._max_answer_bytes = max_answer_bytes
        self._frames = Frames(smallest=_CORRELATION_BYTES, largest=self._largest_answer)

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._asked)

    def send(self, asked: Versioned[Any]) -> bytes:
        """The bytes to put on the wire.

        Raises:
            Unsupported: this version cannot say what the request asks for.
        """
        api = asked.request.API
        body = api.encode(asked.request, asked.version)
        correlation, self._next_id = self._next_id, (self._next_id + 1) % _IDS
        if asked.answered:
            self._asked.append((correlation, asked))
        return framed(_header(api, asked.version, correlation, self._client_id), *body)

    def space(self) -> memoryview:
        """Where the next bytes from the broker belong."""
        return self._frames.space()

    def filled(self, count: int) -> Any | None:
        """Take note of `count` bytes in `space()`; the answer they complete, if any.

        Raises:
            WireError: the answer cannot be ours; the connection must be closed.
        """
        frame = self._frames.filled(count)
        return None if frame is None else self._answer(frame)

    def receive(self, data: bytes) -> Iterator[Any]:
        """Answers completed by `data`; the rest waits. Same errors as `filled`."""
        return map(self._answer, self._frames.split(data))

    def _largest_answer(self) -> int:
        if not self._asked:
            raise Corrupt("the broker sent bytes that nobody asked for")
        return self._max_answer_bytes

    def _answer(self, frame: memoryview) -> Any:
        expected, asked = self._asked.popleft()
        api = asked.request.API
        reader = Reader(frame)
        correlation = reader.int32()
        if correlation != expected:
            raise Corrupt(f"an answer to request {correlation} where one to {expected} ({api.name}) was due")
        if api.is_flexible(asked.version) and api.key != API_VERSIONS_KEY:
            _skip_tags(reader)
        return api.decode(api.answer, reader, asked.version)


def _header(api: Api[Any], version: int, correlation: int, client_id: str) -> bytes:
    parts: list[primitives.Octets] = [
        primitives.int16(api.key),
        primitives.int16(version),
        primitives.int32(correlation),
    ]
    _CLIENT_ID.write(client_id, parts)
    if api.is_flexible(version):
        parts.append(_NO_TAGS)
    return b"".join(parts)


def _skip_tags(reader: Reader) -> None:
    for _ in range(reader.bounded(reader.uvarint(), 2)):
        reader.uvarint()
        reader.view(reader.uvarint())


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came in: what answers it must carry `correlation`."""

    api: Api[Any]
    version: int
    correlation: int
    client_id: str | None
    request: Request[Any]

    def answered(self, answer: object) -> bytes:
        """The frame of `answer`."""
        tags = _NO_TAGS if self.api.is_flexible(self.version) and self.api.key != API_VERSIONS_KEY else b""
        return framed(primitives.int32(self.correlation), tags, *self.api.encode(answer, self.version))


def received(frame: memoryview, requests: Mapping[int, type[Request[Any]]]) -> Received:
    """The request in `frame`, of one of the `requests` by their API's number.

    Raises:
        Unsupported: an API or version that is none of ours.
        WireError: the bytes are no such request.
    """
    reader = Reader(frame)
    key, version, correlation = reader.int16(), reader.int16(), reader.int32()
    kind = requests.get(key)
    if kind is None:
        raise Unsupported(f"no API here has the number {key}")
    client_id = _CLIENT_ID.read(reader)
    if kind.API.is_flexible(version):
        _skip_tags(reader)
    # Brokers let by what stands behind a request: librdkafka writes the null of Metadata v9 as a plain array's, so that
    # three bytes are left (confluentinc/librdkafka#5049).
    request = kind.API.read(kind, reader, version)
    return Received(api=kind.API, version=version, correlation=correlation, client_id=client_id, request=request)
