"""A strict reader of Hadoop's SequenceFile, version 6: its keys, and its values unless they are compressed.

    'SEQ' 06 | key class | value class | bool compressed | bool in blocks | [codec class] | int32 n | n x (text, text)
    | 16 bytes sync | records
    record: int32 length of both | int32 length of the key | key | value; a length of -1 is followed by the sync again

Class names and texts are `vint length | UTF-8`. All numbers are big-endian. Compressed values leave the keys readable.
Block compression does not; it is refused, because no loader whose offsets are imported here uses it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from resources.errors import OffsetsUnreadable

_MAGIC = b"SEQ\x06"
_SYNC_BYTES = 16
_SYNC_MARK = -1
_MAX_NAME_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFileRecord:
    """A key and its value, as bytes. A compressed value stays compressed."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFile:
    """The header of a file, and its records."""

    key_class: str
    value_class: str
    compressed: bool
    records: tuple[SequenceFileRecord, ...]

    @classmethod
    def parse(cls, data: bytes, name: str) -> "SequenceFile":
        """Parse the contents of a file. `name` is used in errors.

        Raises:
            OffsetsUnreadable: the data is not a SequenceFile of version 6, is compressed in blocks, or is cut short.
        """
        reader = JavaValueReader(data, name)
        if reader.take(len(_MAGIC)) != _MAGIC:
            raise OffsetsUnreadable(f"{name} is not a SequenceFile of version 6: it begins with {data[:4]!r}")
        key_class, value_class = reader.text(), reader.text()
        compressed, in_blocks = reader.flag(), reader.flag()
        if in_blocks:
            raise OffsetsUnreadable(f"{name} is compressed in blocks, which Penstock cannot read")
        if compressed:
            reader.text()  # the name of the codec
        for _ in range(reader.number(">i")):
            reader.text(), reader.text()
        sync = reader.take(_SYNC_BYTES)
        records = tuple(_records(reader, sync))
        return cls(key_class=key_class, value_class=value_class, compressed=compressed, records=records)


def _records(reader: "JavaValueReader", sync: bytes) -> Iterator[SequenceFileRecord]:
    while reader.bytes_left:
        length = reader.number(">i")
        if length == _SYNC_MARK:
            if reader.take(_SYNC_BYTES) != sync:
                raise reader.error("a sync mark that differs from the one in the header")
            continue
        key_length = reader.number(">i")
        if not 0 <= key_length <= length:
            raise reader.error(f"a record of {length} bytes with a key of {key_length}")
        yield SequenceFileRecord(key=reader.take(key_length), value=reader.take(length - key_length))


class JavaValueReader:
    """Reads Java values from bytes, one after another. It raises OffsetsUnreadable where the data ends too early."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._position = 0

    @property
    def bytes_left(self) -> int:
        """Number of bytes that were not read yet."""
        return len(self._data) - self._position

    def error(self, what: str) -> OffsetsUnreadable:
        """An error about the bytes that were read last."""
        return OffsetsUnreadable(f"{self._name} has {what} before byte {self._position}")

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if not 0 <= size <= self.bytes_left:
            raise OffsetsUnreadable(f"{self._name} is cut short: {size} bytes should follow byte {self._position}")
        self._position += size
        return self._data[self._position - size : self._position]

    def number(self, layout: str) -> int:
        """The next number, in a layout of the module struct."""
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def flag(self) -> bool:
        """The next boolean: one byte, 0 or 1."""
        value = self.number("B")
        if value > 1:
            raise self.error(f"{value} instead of a boolean")
        return bool(value)

    def text(self) -> str:
        """The next Text of Hadoop: `vint length | UTF-8`."""
        return self.utf8(self._vint())

    def utf8(self, size: int) -> str:
        """The next `size` bytes as UTF-8 text."""
        if size > _MAX_NAME_BYTES:
            raise self.error(f"a name of {size} bytes")
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise self.error("a name that is not UTF-8") from error

    def _vint(self) -> int:
        """A length as Hadoop's WritableUtils writes it.

        The first byte is the length itself, from -112 to 127. A smaller value is -112 minus the number of bytes that
        follow and hold the length.
        """
        first = self.number("b")
        if first >= -112:
            return first
        return int.from_bytes(self.take(-112 - first), "big")
