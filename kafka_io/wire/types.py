"""The types of fields in messages from 0.8 on: how each is written and read, plain or compact (KIP-482).

`Int32` and its like annotate the fields of a table (`schema.struct`). In flexible versions lengths and counts are
unsigned varints, one more than they say, with 0 for null; before, they are int16 or int32, with -1 for null.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from uuid import UUID

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire import primitives
from kafka_io.wire.primitives import Octets, Reader

NULL_UUID = UUID(int=0)


def uuid_text(value: UUID) -> str:
    """An id of a topic or cluster as Kafka prints it: 22 letters."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


class Codec(Protocol):
    """How the values of one type are written and read in one version of a message."""

    @property
    def least(self) -> int:
        """The fewest bytes a value takes."""
        ...

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        ...

    def read(self, reader: Reader) -> Any:
        """Take a value off the front."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that takes the same number of bytes in every version."""

    least: int
    encode: Callable[[Any], bytes]
    decode: Callable[[Reader], Any]

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.encode(value))

    def read(self, reader: Reader) -> Any:
        """Take a value off the front."""
        return self.decode(reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long a value is: before it stands its length, or that it is null."""

    least: int
    encode: Callable[[int], bytes]
    decode: Callable[[Reader], int]

    def write(self, length: int | None, *, nullable: bool) -> bytes:
        """The length, None for null.

        Raises:
            Unsupported: null where it may not be.
        """
        if length is None and not nullable:
            raise Unsupported("a field is null that in this version may not be")
        return self.encode(-1 if length is None else length)

    def read(self, reader: Reader, *, nullable: bool) -> int | None:
        """The inverse.

        Raises:
            Corrupt: a negative length, or null where it may not be.
        """
        length = self.decode(reader)
        if length == -1 and nullable:
            return None
        if length < 0:
            raise Corrupt(f"a length of {length}")
        return length


SHORT = Length(least=2, encode=primitives.int16, decode=Reader.int16)
LONG = Length(least=4, encode=primitives.int32, decode=Reader.int32)
COMPACT = Length(
    least=1, encode=lambda length: primitives.uvarint(length + 1), decode=lambda reader: reader.uvarint() - 1
)


@dataclass(frozen=True, slots=True)
class Text:
    """A string in UTF-8."""

    length: Length
    nullable: bool

    @property
    def least(self) -> int:
        """The fewest bytes a value takes."""
        return self.length.least

    def write(self, value: str | None, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        data = None if value is None else value.encode()
        into.append(self.length.write(None if data is None else len(data), nullable=self.nullable))
        into.append(data or b"")

    def read(self, reader: Reader) -> str | None:
        """Take a value off the front."""
        length = self.length.read(reader, nullable=self.nullable)
        return None if length is None else reader.text(length)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes; what is read is a view and not copied."""

    length: Length
    nullable: bool

    @property
    def least(self) -> int:
        """The fewest bytes a value takes."""
        return self.length.least

    def write(self, value: Octets | None, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.length.write(None if value is None else len(value), nullable=self.nullable))
        into.append(value or b"")

    def read(self, reader: Reader) -> memoryview | None:
        """Take a value off the front."""
        length = self.length.read(reader, nullable=self.nullable)
        return None if length is None else reader.view(length)


@dataclass(frozen=True, slots=True)
class Items:
    """An array of any other type. A count is never believed beyond what the bytes left can hold (W09)."""

    item: Codec
    length: Length
    nullable: bool

    @property
    def least(self) -> int:
        """The fewest bytes a value takes."""
        return self.length.least

    def write(self, value: tuple[Any, ...] | None, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.length.write(None if value is None else len(value), nullable=self.nullable))
        for item in value or ():
            self.item.write(item, into)

    def read(self, reader: Reader) -> tuple[Any, ...] | None:
        """Take a value off the front."""
        count = self.length.read(reader, nullable=self.nullable)
        if count is None:
            return None
        return tuple(self.item.read(reader) for _ in range(reader.bounded(count, max(1, self.item.least))))


@dataclass(frozen=True, slots=True)
class Scalar:
    """What annotates a field with a type of fixed size."""

    codec: Fixed


@dataclass(frozen=True, slots=True)
class Varying:
    """What annotates a field with a type that has a length: how it is made, and its length before KIP-482."""

    make: Callable[[Length, bool], Codec]
    plain: Length


Bool = Annotated[bool, Scalar(Fixed(1, primitives.boolean, Reader.boolean))]
Int8 = Annotated[int, Scalar(Fixed(1, primitives.int8, Reader.int8))]
Int16 = Annotated[int, Scalar(Fixed(2, primitives.int16, Reader.int16))]
Int32 = Annotated[int, Scalar(Fixed(4, primitives.int32, Reader.int32))]
Int64 = Annotated[int, Scalar(Fixed(8, primitives.int64, Reader.int64))]
UInt16 = Annotated[int, Scalar(Fixed(2, primitives.uint16, Reader.uint16))]
UInt32 = Annotated[int, Scalar(Fixed(4, primitives.uint32, Reader.uint32))]
Float64 = Annotated[float, Scalar(Fixed(8, primitives.float64, Reader.float64))]
Uuid = Annotated[UUID, Scalar(Fixed(16, primitives.uuid, Reader.uuid))]
String = Annotated[str, Varying(Text, SHORT)]
Bytes = Annotated[Octets, Varying(Blob, LONG)]
