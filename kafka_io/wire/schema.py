"""Messages as tables: one class for all versions of a request or a response, whose fields know their versions.

    class FetchRequest(Request[FetchResponse], key=1, versions=(0, 17), flexible_from=12):
        max_bytes: Int32 = wire(since=3, default=2**31 - 1)  # KIP-74

The type of a field is one of `wire.types`, another Struct, or a tuple of these; `X | None` may be null. A tuple that is
annotated with SHORT has an int16 count. The fields of one version are compiled into a table when this version is first
written or read.
"""

import dataclasses
import struct as packing
import types
from dataclasses import MISSING, dataclass, field
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire import primitives
from kafka_io.wire.primitives import Octets, WireReader
from kafka_io.wire.types import COMPACT, LONG, MAX_ITEMS, FieldCodec, Fixed, Items, Varying

T = TypeVar("T")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

KIB, MIB = 1024, 1024 * 1024
MAX_TAGS = 1000
"""The maximum number of tagged fields in a struct or header."""
NEVER = 2**15  # above every version: for an API with no flexible one
_NEWEST = NEVER - 1
_KEY = "wire"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldVersions:
    """The versions that have a field, its tag, the versions in which it may be null, and its size; see `wire`."""

    since: int = 0
    until: int = _NEWEST
    null_since: int = 0
    tag: int | None = None
    ignorable: bool = False
    max_items: int = MAX_ITEMS

    def is_in(self, version: int) -> bool:
        """Whether messages of this version have the field."""
        return self.since <= version <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[AnswerT_co]):
    """An API: its number, name and versions, its first flexible version (KIP-482), and the type of its answer.

    `max_answer_bytes` is the maximum size of an answer; None if only the client's settings limit it.
    """

    key: int
    name: str
    versions: tuple[int, int]
    flexible_from: int
    answer: type[AnswerT_co]
    max_answer_bytes: int | None = None

    def is_flexible(self, version: int) -> bool:
        """Whether messages of this version use compact lengths and tagged fields."""
        return version >= self.flexible_from

    def encode(self, message: Any, version: int) -> list[Octets]:
        """The body of a request or answer, in parts.

        Raises:
            Unsupported: the version is not supported, a value would be lost, or a value does not fit into its field.
        """
        table = self._table(type(message), version)
        parts: list[Octets] = []
        try:
            table.write(message, parts)
        except (packing.error, UnicodeEncodeError) as error:
            raise Unsupported(f"{self.name} v{version}: a value does not fit its field") from error
        return parts

    def decode(self, kind: type[T], reader: WireReader, version: int) -> T:
        """Decode a message of type `kind`, which must use all bytes.

        Raises:
            WireError: the bytes are not such a message.
        """
        message = self.read(kind, reader, version)
        reader.end()
        return message

    def read(self, kind: type[T], reader: WireReader, version: int) -> T:
        """Decode a message that may be followed by other bytes, which are left in `reader`."""
        return cast("T", self._table(kind, version).read(reader))

    def _table(self, kind: Any, version: int) -> "_Table":
        first, last = self.versions
        if not first <= version <= last:
            raise Unsupported(f"{self.name} v{version} is not supported, only v{first} to v{last}")
        return _compiled(kind, version, self.is_flexible(version))


def wire(
    *,
    since: int = 0,
    until: int = _NEWEST,
    null_since: int = 0,
    tag: int | None = None,
    ignorable: bool = False,
    max_items: int = MAX_ITEMS,
    default: Any = MISSING,
) -> Any:
    """Declare in which versions a message has a field, and how.

    Args:
        since: the first version that has the field.
        until: the last version that has the field.
        null_since: the first version in which an `X | None` may be null.
        tag: the number of a tagged field.
        ignorable: whether a value may be dropped in a version without the field. Otherwise `encode` refuses it.
        max_items: the maximum number of items in an array that is read.
        default: the value in versions without the field, and when no value is given.
    """
    field_versions = FieldVersions(
        since=since, until=until, null_since=null_since, tag=tag, ignorable=ignorable, max_items=max_items
    )
    if default is MISSING and (since > 0 or until < _NEWEST or tag is not None):
        raise TypeError("a field that some versions do not have needs a default")
    return field(default=default, metadata={_KEY: field_versions})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(wire, field))
class Struct:
    """A message, or a part of one. Each subclass becomes a frozen dataclass with keyword arguments."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)


class Request(Struct, Generic[AnswerT_co]):
    """A request, which states its API: a `FetchRequest(Request[FetchResponse], key=1, ...)` makes the API `Fetch`."""

    API: ClassVar[Api[Any]]

    def __init_subclass__(
        cls,
        *,
        key: int,
        versions: tuple[int, int],
        flexible_from: int = NEVER,
        max_answer_bytes: int | None = 16 * MIB,
    ) -> None:
        super().__init_subclass__()
        [answer] = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # Python sets it on generic classes
        name = cls.__name__.removesuffix("Request")
        cls.API = Api(
            key=key,
            name=name,
            versions=versions,
            flexible_from=flexible_from,
            answer=answer,
            max_answer_bytes=max_answer_bytes,
        )

    def check_answer(self, answer: Any, version: int, /) -> None:
        """Check that an answer is about what this request asks for. Requests that name something override this.

        Raises:
            Corrupt: the answer is about something else, so the connection must be closed (fault P10).
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    name: str
    default: Any
    codec: FieldCodec


@dataclass(frozen=True, slots=True)
class _Table:
    """One struct in one version: its plain fields in order, and its tagged fields by tag.

    `absent` has the defaults of the fields that this version lacks and that must not be dropped. A value has at least
    `min_bytes`.
    """

    kind: type
    plain: tuple[_Column, ...]
    tagged: dict[int, _Column]
    absent: dict[str, Any]
    flexible: bool
    min_bytes: int

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        for name, default in self.absent.items():
            if getattr(value, name) != default:
                raise Unsupported(f"{self.kind.__name__}.{name} would be lost: this version does not have the field")
        for column in self.plain:
            column.codec.write(getattr(value, column.name), into)
        if self.flexible:
            self._write_tags(value, into)

    def _write_tags(self, value: Any, into: list[Octets]) -> None:
        """`uvarint count | (uvarint tag | uvarint size | bytes)*`, sorted by tag; default values are left out."""
        present = [
            (tag, column) for tag, column in self.tagged.items() if getattr(value, column.name) != column.default
        ]
        into.append(primitives.uvarint(len(present)))
        for tag, column in present:
            parts: list[Octets] = []
            column.codec.write(getattr(value, column.name), parts)
            into += [primitives.uvarint(tag), primitives.uvarint(sum(map(len, parts))), *parts]

    def read(self, reader: WireReader) -> Any:
        """Read one value."""
        fields = {column.name: column.codec.read(reader) for column in self.plain}
        if self.flexible:
            self._read_tags(reader, fields)
        return self.kind(**fields)

    def _read_tags(self, reader: WireReader, fields: dict[str, Any]) -> None:
        """Read the tagged fields. Unknown tags are skipped, as KIP-482 demands."""
        last = -1
        for _ in range(reader.bounded(reader.uvarint(), 2, MAX_TAGS)):
            tag, size = reader.uvarint(), reader.uvarint()
            if tag <= last:
                raise Corrupt(f"tagged field {tag} comes after {last}; tags must ascend")
            last = tag
            inside = reader.inside(size)
            if tag in self.tagged:
                fields[self.tagged[tag].name] = self.tagged[tag].codec.read(inside)
                inside.end()


@cache  # the number of results is limited by the message classes in the source
def _compiled(kind: type, version: int, flexible: bool) -> _Table:
    hints = get_type_hints(kind, include_extras=True)
    plain, tagged, absent = [], {}, {}
    for field_ in dataclasses.fields(kind):
        field_versions = field_.metadata.get(_KEY, FieldVersions())
        if not field_versions.is_in(version):
            if not field_versions.ignorable:
                absent[field_.name] = field_.default
            continue
        codec = _codec(hints[field_.name], field_versions, version, flexible=flexible)
        column = _Column(name=field_.name, default=field_.default, codec=codec)
        if field_versions.tag is None:
            plain.append(column)
        else:
            tagged[field_versions.tag] = column
    min_bytes = sum(column.codec.min_bytes for column in plain) + flexible
    return _Table(kind, tuple(plain), dict(sorted(tagged.items())), absent, flexible, min_bytes)


def _codec(hint: Any, field_versions: FieldVersions, version: int, *, flexible: bool) -> FieldCodec:
    """The codec of a field of type `hint` in this version."""
    inner, nullable = _without_none(hint)
    nullable = nullable and version >= field_versions.null_since
    inner, mark = get_args(inner) if get_origin(inner) is Annotated else (inner, None)
    if get_origin(inner) is tuple:
        item = _codec(get_args(inner)[0], FieldVersions(), version, flexible=flexible)
        return Items(mark or (COMPACT if flexible else LONG), nullable, item, field_versions.max_items)
    if isinstance(mark, Fixed):
        return mark
    if isinstance(mark, Varying):
        return mark.codec(COMPACT if flexible else mark.plain, nullable)
    if dataclasses.is_dataclass(inner):
        table = _compiled(cast("type", inner), version, flexible)
        return _Maybe(table) if nullable else table
    raise TypeError(f"{hint} is not a type of the protocol")


@dataclass(frozen=True, slots=True)
class _Maybe:
    """A nullable struct: an int8 in front of it is -1 for null."""

    table: _Table
    min_bytes: int = 1

    def write(self, value: Any, into: list[Octets]) -> None:
        into.append(primitives.int8(-1 if value is None else 1))
        if value is not None:
            self.table.write(value, into)

    def read(self, reader: WireReader) -> Any:
        return None if reader.int8() < 0 else self.table.read(reader)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, types.UnionType):
        [inner] = [member for member in get_args(hint) if member is not type(None)]
        return inner, True
    return hint, False
