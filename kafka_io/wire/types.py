"""The types of message fields of 0.8 and later: how each is written and read, plain or compact (KIP-482).

`Int32` and the other types annotate the fields of a message (`schema.struct`). In flexible versions a length or count
is an unsigned varint of its value plus one, with 0 for null. In other versions it is an int16 or int32, with -1 for
null.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from uuid import UUID

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire import primitives
from kafka_io.wire.primitives import Octets, WireReader

NULL_UUID = UUID(int=0)


def uuid_text(value: UUID) -> str:
    """The id of a topic or cluster as Kafka prints it, with 22 characters."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


class FieldCodec(Protocol):
    """How the values of one type are written and read in one version of a message."""

    @property
    def min_bytes(self) -> int:
        """The minimum number of bytes of a value."""
        ...

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        ...

    def read(self, reader: WireReader) -> Any:
        """Read one value."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that takes the same number of bytes in every version."""

    min_bytes: int
    encode: Callable[[Any], bytes]
    decode: Callable[[WireReader], Any]

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.encode(value))

    def read(self, reader: WireReader) -> Any:
        """Read one value."""
        return self.decode(reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The length in front of a value, which can also say that the value is null."""

    min_bytes: int
    encode: Callable[[int], bytes]
    decode: Callable[[WireReader], int]

    def write(self, length: int | None, *, nullable: bool) -> bytes:
        """The length, None for null.

        Raises:
            Unsupported: the value is null, but the field is not nullable.
        """
        if length is None and not nullable:
            raise Unsupported("a field is null, but this version does not allow null")
        return self.encode(-1 if length is None else length)

    def read(self, reader: WireReader, *, nullable: bool) -> int | None:
        """Read a length; None for null.

        Raises:
            Corrupt: the length is negative, or null although the field is not nullable.
        """
        length = self.decode(reader)
        if length == -1 and nullable:
            return None
        if length < 0:
            raise Corrupt(f"a length of {length}")
        return length


SHORT = Length(min_bytes=2, encode=primitives.int16, decode=WireReader.int16)
LONG = Length(min_bytes=4, encode=primitives.int32, decode=WireReader.int32)
COMPACT = Length(
    min_bytes=1, encode=lambda length: primitives.uvarint(length + 1), decode=lambda reader: reader.uvarint() - 1
)


@dataclass(frozen=True, slots=True)
class Text:
    """A string in UTF-8."""

    length: Length
    nullable: bool

    @property
    def min_bytes(self) -> int:
        """The minimum number of bytes of a value."""
        return self.length.min_bytes

    def write(self, value: str | None, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        data = None if value is None else value.encode()
        into.append(self.length.write(None if data is None else len(data), nullable=self.nullable))
        into.append(data or b"")

    def read(self, reader: WireReader) -> str | None:
        """Read one value."""
        length = self.length.read(reader, nullable=self.nullable)
        return None if length is None else reader.text(length)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes. Reading returns a view without copying."""

    length: Length
    nullable: bool

    @property
    def min_bytes(self) -> int:
        """The minimum number of bytes of a value."""
        return self.length.min_bytes

    def write(self, value: Octets | None, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.length.write(None if value is None else len(value), nullable=self.nullable))
        into.append(value or b"")

    def read(self, reader: WireReader) -> memoryview | None:
        """Read one value."""
        length = self.length.read(reader, nullable=self.nullable)
        return None if length is None else reader.view(length)


@dataclass(frozen=True, slots=True)
class Items:
    """An array of another type. A count is checked against the bytes that are left (fault W09)."""

    item: FieldCodec
    length: Length
    nullable: bool

    @property
    def min_bytes(self) -> int:
        """The minimum number of bytes of a value."""
        return self.length.min_bytes

    def write(self, value: tuple[Any, ...] | None, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.length.write(None if value is None else len(value), nullable=self.nullable))
        for item in value or ():
            self.item.write(item, into)

    def read(self, reader: WireReader) -> tuple[Any, ...] | None:
        """Read one value."""
        count = self.length.read(reader, nullable=self.nullable)
        if count is None:
            return None
        return tuple(self.item.read(reader) for _ in range(reader.bounded(count, max(1, self.item.min_bytes))))


@dataclass(frozen=True, slots=True)
class Scalar:
    """Annotates a field with a type of fixed size."""

    codec: Fixed


@dataclass(frozen=True, slots=True)
class Varying:
    """Annotates a field with a type of variable size: its constructor, and its length in versions before KIP-482."""

    make: Callable[[Length, bool], FieldCodec]
    plain: Length


Bool = Annotated[bool, Scalar(Fixed(1, primitives.boolean, WireReader.boolean))]
Int8 = Annotated[int, Scalar(Fixed(1, primitives.int8, WireReader.int8))]
Int16 = Annotated[int, Scalar(Fixed(2, primitives.int16, WireReader.int16))]
Int32 = Annotated[int, Scalar(Fixed(4, primitives.int32, WireReader.int32))]
Int64 = Annotated[int, Scalar(Fixed(8, primitives.int64, WireReader.int64))]
UInt16 = Annotated[int, Scalar(Fixed(2, primitives.uint16, WireReader.uint16))]
UInt32 = Annotated[int, Scalar(Fixed(4, primitives.uint32, WireReader.uint32))]
Float64 = Annotated[float, Scalar(Fixed(8, primitives.float64, WireReader.float64))]
Uuid = Annotated[UUID, Scalar(Fixed(16, primitives.uuid, WireReader.uuid))]
String = Annotated[str, Varying(Text, SHORT)]
WireBytes = Annotated[Octets, Varying(Blob, LONG)]
