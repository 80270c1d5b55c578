"""A strict reader of Hadoop's SequenceFile, version 6: its keys, and its values unless they are compressed.

    'SEQ' 06 | key class | value class | bool compressed | bool in blocks | [codec class] | int32 n | n x (text, text)
    | 16 bytes sync | records
    record: int32 length of both | int32 length of the key | key | value; a length of -1 is followed by the sync again

Class names and texts are `vint length | UTF-8`. All numbers are big-endian. Compressed values leave the keys readable.
Block compression does not; it is refused, because no loader whose offsets are imported here uses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_io.errors import Corrupt
from kafka_io.wire.primitives import WireReader
from pipelines.cursors.imported import damaged_file
from resources.errors import OffsetsUnreadable

_MAGIC = b"SEQ\x06"
_SYNC_BYTES = 16
_SYNC_MARK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFile:
    """The header of a file, and its records: (key, value), as bytes. Compressed values stay compressed."""

    key_class: str
    value_class: str
    compressed: bool
    records: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def parse(cls, data: bytes, name: str) -> "SequenceFile":
        """Parse the contents of a file. `name` is used in errors.

        Raises:
            OffsetsUnreadable: the data is not a SequenceFile of version 6, is compressed in blocks, or is incomplete.
        """
        if data[: len(_MAGIC)] != _MAGIC:
            raise OffsetsUnreadable(f"{name} is not a SequenceFile of version 6: it begins with {data[:4]!r}")
        reader = WireReader(memoryview(data)[len(_MAGIC) :])
        with damaged_file(name):
            key_class, value_class = _text(reader), _text(reader)
            compressed, in_blocks = _flag(reader), _flag(reader)
            if in_blocks:
                raise OffsetsUnreadable(f"{name} is compressed in blocks, which Penstock cannot read")
            if compressed:
                _text(reader)  # the name of the codec
            for _ in range(reader.int32()):
                _text(reader), _text(reader)
            sync = reader.view(_SYNC_BYTES)
            records = tuple(_records(reader, sync))
        return cls(key_class=key_class, value_class=value_class, compressed=compressed, records=records)


def _records(reader: WireReader, sync: memoryview) -> Iterator[tuple[bytes, bytes]]:
    while reader.unread_bytes:
        length = reader.int32()
        if length == _SYNC_MARK:
            if reader.view(_SYNC_BYTES) != sync:
                raise Corrupt("a sync mark that differs from the one in the header")
            continue
        key_length = reader.int32()
        if not 0 <= key_length <= length:
            raise Corrupt(f"a record of {length} bytes with a key of {key_length}")
        yield bytes(reader.view(key_length)), bytes(reader.view(length - key_length))


def _flag(reader: WireReader) -> bool:
    """The next boolean: one byte, 0 or 1."""
    value = reader.int8()
    if value not in (0, 1):
        raise Corrupt(f"{value} instead of a boolean")
    return bool(value)


def _text(reader: WireReader) -> str:
    """The next Text of Hadoop: `vint length | UTF-8`.

    The first byte of a vint is the number itself, from -112 to 127. A smaller value is -112 minus the number of bytes
    that follow and hold the number [Hadoop: WritableUtils].
    """
    first = reader.int8()
    return reader.text(first if first >= -112 else int.from_bytes(reader.view(-112 - first), "big"))
