"""The types of message fields of 0.8 and later: how each is written and read, plain or compact (KIP-482).

`Int32` and the other types annotate the fields of a message (`schema.Struct`). In flexible versions a length or count
is an unsigned varint of its value plus one, with 0 for null. In other versions it is an int16 or int32, with -1 for
null.
"""

from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from uuid import UUID

from kafka_io.errors import Corrupt, Unsupported
from kafka_io.wire import primitives
from kafka_io.wire.primitives import Octets, WireReader

NULL_UUID = UUID(int=0)
MAX_ITEMS = 100_000
"""The maximum number of items in an array, unless its field says otherwise."""
MANY_ITEMS = 1_000_000
"""The maximum for arrays that grow with a cluster or a log: its topics, groups, segments, transactions."""
_MAX_TEXT_BYTES = 2**15 - 1  # Kafka's own limit, also where the length is a varint


def uuid_text(value: UUID) -> str:
    """The id of a topic or cluster as Kafka prints it, with 22 characters."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


class FieldCodec(Protocol):
    """How the values of one type are written and read in one version of a message."""

    @property
    def min_bytes(self) -> int:
        """The minimum number of bytes of a value."""

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""

    def read(self, reader: WireReader) -> Any:
        """Read one value."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is written the same way in every version, in at least `min_bytes`."""

    min_bytes: int
    encode: Callable[[Any], bytes]
    decode: Callable[[WireReader], Any]

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`."""
        into.append(self.encode(value))

    def read(self, reader: WireReader) -> Any:
        """Read one value."""
        return self.decode(reader)


SHORT = Fixed(2, primitives.int16, WireReader.int16)
LONG = Fixed(4, primitives.int32, WireReader.int32)
COMPACT = Fixed(1, lambda length: primitives.uvarint(length + 1), lambda reader: reader.uvarint() - 1)


@dataclass(frozen=True, slots=True)
class LengthPrefixed(ABC):
    """A value after its length in bytes, or its count of items. A length of -1 is null."""

    length: Fixed
    nullable: bool

    @property
    def min_bytes(self) -> int:
        """The minimum number of bytes of a value."""
        return self.length.min_bytes

    def write(self, value: Any, into: list[Octets]) -> None:
        """Append the bytes of `value`.

        Raises:
            Unsupported: the value is null, but the field is not nullable.
        """
        if value is not None:
            self._write(value, into)
        elif self.nullable:
            into.append(self.length.encode(-1))
        else:
            raise Unsupported("a field is null, but this version does not allow null")

    def read(self, reader: WireReader) -> Any:
        """Read one value; None for null.

        Raises:
            Corrupt: the length is negative, or null although the field is not nullable.
        """
        length = self.length.decode(reader)
        if length == -1 and self.nullable:
            return None
        if length < 0:
            raise Corrupt(f"a length of {length}")
        return self._read(reader, length)

    @abstractmethod
    def _write(self, value: Any, into: list[Octets]) -> None: ...

    @abstractmethod
    def _read(self, reader: WireReader, length: int) -> Any: ...


class Text(LengthPrefixed):
    """A string in UTF-8."""

    def _write(self, value: str, into: list[Octets]) -> None:
        data = value.encode()
        into += (self.length.encode(len(data)), data)

    def _read(self, reader: WireReader, length: int) -> str:
        if length > _MAX_TEXT_BYTES:
            raise Corrupt(f"a string of {length} bytes is above the maximum of {_MAX_TEXT_BYTES}")
        return reader.text(length)


class Blob(LengthPrefixed):
    """Bytes. Reading returns a view without copying."""

    def _write(self, value: Octets, into: list[Octets]) -> None:
        into += (self.length.encode(len(value)), value)

    def _read(self, reader: WireReader, length: int) -> memoryview:
        return reader.view(length)


@dataclass(frozen=True, slots=True)
class Items(LengthPrefixed):
    """An array of another type. Its count is checked against `max_items` and the bytes left (faults W09, H02)."""

    item: FieldCodec
    max_items: int = MAX_ITEMS

    def _write(self, value: tuple[Any, ...], into: list[Octets]) -> None:
        into.append(self.length.encode(len(value)))
        for item in value:
            self.item.write(item, into)

    def _read(self, reader: WireReader, length: int) -> tuple[Any, ...]:
        count = reader.bounded(length, max(1, self.item.min_bytes), self.max_items)
        return tuple(self.item.read(reader) for _ in range(count))


@dataclass(frozen=True, slots=True)
class Varying:
    """Annotates a field with a type of variable size: its codec, and its length in versions that are not flexible."""

    codec: type[Text | Blob]
    plain: Fixed


Bool = Annotated[bool, Fixed(1, primitives.boolean, WireReader.boolean)]
Int8 = Annotated[int, Fixed(1, primitives.int8, WireReader.int8)]
Int16 = Annotated[int, SHORT]
Int32 = Annotated[int, LONG]
Int64 = Annotated[int, Fixed(8, primitives.int64, WireReader.int64)]
Uuid = Annotated[UUID, Fixed(16, primitives.uuid, WireReader.uuid)]
String = Annotated[str, Varying(Text, SHORT)]
WireBytes = Annotated[Octets, Varying(Blob, LONG)]
