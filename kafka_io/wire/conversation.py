"""Both ends of a connection of 0.8 and later, without a socket: bytes in, requests or answers out.

A request is `int32 size | int16 api | int16 version | int32 correlation | string? client id | tags? | body`, its answer
`int32 size | int32 correlation | tags? | body`. Flexible versions have tags (KIP-482), except in the answer to
ApiVersions, because a client must read it before it knows the versions of the broker (KIP-511). A broker answers in the
order of the requests: any other correlation id ends the conversation (fault W08).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire import primitives
from kafka_io.wire.framing import Conversation, framed
from kafka_io.wire.primitives import WireReader
from kafka_io.wire.schema import MAX_TAGS, Api, Request
from kafka_io.wire.types import SHORT, Text

API_VERSIONS_KEY = 18
DEFAULT_MAX_ANSWER_BYTES = 256 * 1024 * 1024
_CORRELATION_BYTES = 4
_CORRELATION_IDS = 2**31
_NO_TAGS = primitives.uvarint(0)
_CLIENT_ID = Text(SHORT, nullable=True)

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class ApiVersionRanges:
    """The first and last version of each API that the other side supports, by API number."""

    offered: Mapping[int, tuple[int, int]]

    def pick(self, api: Api[Any], *, max_version: int | None = None) -> int:
        """The newest version that both sides support, at most `max_version`.

        Raises:
            Unsupported: there is no common version.
        """
        first, last = api.versions
        if api.key not in self.offered:
            raise Unsupported(f"the broker does not support {api.name}")
        offered_first, offered_last = self.offered[api.key]
        version = min(last, offered_last, last if max_version is None else max_version)
        if version < max(first, offered_first):
            raise Unsupported(
                f"{api.name}: the broker supports v{offered_first} to v{offered_last}, this client v{first} to v{last}"
            )
        return version


@dataclass(frozen=True, slots=True)
class VersionedRequest(Generic[AnswerT]):
    """A request in a version of its API. `answered` is false for Produce with acks 0, which has no answer."""

    request: Request[AnswerT]
    version: int
    answered: bool = True


class ClientConversation(Conversation[VersionedRequest[Any], Any, tuple[int, VersionedRequest[Any]]]):
    """The client's end: it encodes requests, each in its version, and decodes their answers in order."""

    def __init__(self, client_id: str, *, max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES) -> None:
        super().__init__(min_size=_CORRELATION_BYTES)
        self._client_id = client_id
        self._next_id = 0
        self._max_answer_bytes = max_answer_bytes

    def send(self, request: VersionedRequest[Any]) -> bytes:
        """The bytes of a request, which must be sent next.

        Raises:
            Unsupported: this version cannot express the request.
        """
        api = request.request.API
        body = api.encode(request.request, request.version)
        correlation, self._next_id = self._next_id, (self._next_id + 1) % _CORRELATION_IDS
        if request.answered:
            self._unanswered.append((correlation, request))
        return framed(_header(api, request.version, correlation, self._client_id), *body)

    def _largest_answer(self, sent: tuple[int, VersionedRequest[Any]]) -> int:
        """The maximum size of an answer: that of its API, or else that of this client (fault H05)."""
        _, versioned = sent
        return versioned.request.API.max_answer_bytes or self._max_answer_bytes

    def _decoded(
        self, sent: tuple[int, VersionedRequest[Any]], frame: memoryview, check_time: Callable[[], object]
    ) -> Any:
        expected, versioned = sent
        api = versioned.request.API
        reader = WireReader(frame, check_time)
        correlation = reader.int32()
        if correlation != expected:
            raise Corrupt(f"the answer has correlation id {correlation}, expected {expected} ({api.name})")
        if api.is_flexible(versioned.version) and api.key != API_VERSIONS_KEY:
            _skip_tags(reader)
        answer = api.decode(api.answer, reader, versioned.version)
        versioned.request.check_answer(answer, versioned.version)
        return answer


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


def _skip_tags(reader: WireReader) -> None:
    for _ in range(reader.bounded(reader.uvarint(), 2, MAX_TAGS)):
        reader.uvarint()
        reader.view(reader.uvarint())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """A request that a broker received. Its answer must carry `correlation`."""

    api: Api[Any]
    version: int
    correlation: int
    client_id: str | None
    request: Request[Any]

    def answered(self, answer: object) -> bytes:
        """The frame of the answer to this request."""
        tags = _NO_TAGS if self.api.is_flexible(self.version) and self.api.key != API_VERSIONS_KEY else b""
        return framed(primitives.int32(self.correlation), tags, *self.api.encode(answer, self.version))


def received(frame: memoryview, requests: Mapping[int, type[Request[Any]]]) -> ReceivedRequest:
    """Decode the request in `frame`; `requests` are the supported requests by API number.

    Raises:
        Unsupported: the API or its version is not supported.
        WireError: the bytes are not such a request.
    """
    reader = WireReader(frame)
    key, version, correlation = reader.int16(), reader.int16(), reader.int32()
    request_type = requests.get(key)
    if request_type is None:
        raise Unsupported(f"the API with number {key} is not supported")
    client_id = _CLIENT_ID.read(reader)
    if request_type.API.is_flexible(version):
        _skip_tags(reader)
    # Like genuine brokers, this ignores bytes after a request: librdkafka writes the null of Metadata v9 as that of a
    # plain array, so three bytes are left over (confluentinc/librdkafka#5049).
    request = request_type.API.read(request_type, reader, version)
    return ReceivedRequest(
        api=request_type.API, version=version, correlation=correlation, client_id=client_id, request=request
    )
