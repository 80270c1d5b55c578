"""Hadoop's SequenceFile, version 6, read strictly: keys, and values where they are not compressed.

    'SEQ' 06 | key class | value class | bool compressed | bool in blocks | [codec class] | int32 n | n x (text, text)
    | 16 bytes sync | records
    record: int32 length of both | int32 length of the key | key | value; a length of -1 is followed by the sync again

Class names and texts are `vint length | UTF-8`. With compressed values the keys stay as they are; in blocks they do
not, and nothing that hands over offsets here writes such files. All numbers are big-endian.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from resources.errors import OffsetsUnreadable

_MAGIC = b"SEQ\x06"
_SYNC_BYTES = 16
_SYNC_MARK = -1
_LONGEST_NAME = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A key and its value, as bytes. A compressed value is left as it is."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFile:
    """What a file says of itself, and its records."""

    key_class: str
    value_class: str
    compressed: bool
    records: tuple[Record, ...]

    @classmethod
    def parse(cls, data: bytes, name: str) -> "SequenceFile":
        """The whole file; `name` is for errors.

        Raises:
            OffsetsUnreadable: it is none, of another version, compressed in blocks, or cut short.
        """
        reader = ByteReader(data, name)
        if reader.take(len(_MAGIC)) != _MAGIC:
            raise OffsetsUnreadable(f"{name} is no SequenceFile of version 6: it begins with {data[:4]!r}")
        key_class, value_class = reader.text(), reader.text()
        compressed, in_blocks = reader.flag(), reader.flag()
        if in_blocks:
            raise OffsetsUnreadable(f"{name} is compressed in blocks: such a SequenceFile is not read")
        if compressed:
            reader.text()  # the codec: values are not looked at
        for _ in range(reader.number(">i")):
            reader.text(), reader.text()
        sync = reader.take(_SYNC_BYTES)
        records = tuple(_records(reader, sync))
        return cls(key_class=key_class, value_class=value_class, compressed=compressed, records=records)


def _records(reader: "ByteReader", sync: bytes) -> Iterator[Record]:
    while reader.left:
        length = reader.number(">i")
        if length == _SYNC_MARK:
            if reader.take(_SYNC_BYTES) != sync:
                raise reader.wrong("a mark that is not the file's own")
            continue
        key_length = reader.number(">i")
        if not 0 <= key_length <= length:
            raise reader.wrong(f"a record of {length} bytes with a key of {key_length}")
        yield Record(key=reader.take(key_length), value=reader.take(length - key_length))


class ByteReader:
    """Takes Java's values from bytes; whatever is not whole raises OffsetsUnreadable."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def wrong(self, what: str) -> OffsetsUnreadable:
        """The error about the bytes taken last."""
        return OffsetsUnreadable(f"{self._name} has {what}, before byte {self._at}")

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if not 0 <= size <= self.left:
            raise OffsetsUnreadable(f"{self._name} is cut short at byte {self._at}: {size} more were to come")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, layout: str) -> int:
        """A number in struct's `layout`."""
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def flag(self) -> bool:
        """A boolean."""
        value = self.number("B")
        if value > 1:
            raise self.wrong(f"{value} where true or false belongs")
        return bool(value)

    def text(self) -> str:
        """Hadoop's Text: `vint length | UTF-8`."""
        return self.utf8(self._vint())

    def utf8(self, size: int) -> str:
        """Text of so many bytes."""
        if size > _LONGEST_NAME:
            raise self.wrong(f"a name of {size} bytes")
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise self.wrong("a name that is not UTF-8") from error

    def _vint(self) -> int:
        """A length as WritableUtils writes it: itself up to 127, else -112 minus the count of bytes that follow."""
        first = self.number("b")
        if first >= -112:
            return first
        return int.from_bytes(self.take(-112 - first), "big")
