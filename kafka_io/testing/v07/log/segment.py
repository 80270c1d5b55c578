"""A segment of a 0.7 log: `<offset of its first byte>.kafka`, a file of messages and nothing else.

Readers see flushed bytes only. A crash can damage the end of the last segment in two ways [kafka-0.7: Recovery]: a
block that never reached the disk (the last message is incomplete), and a block with random content (an impossible
length, or a wrong CRC). Both are cut off after the last whole message.
"""

from pathlib import Path
from struct import Struct
from typing import ClassVar
from zlib import crc32

from kafka_io.errors import Where
from kafka_io.testing.segment_file import FileRegion, SegmentFile, VisibleEnd

_LENGTH = Struct(">i")
_CRC = Struct(">I")
# Bytes between the length and the CRC, by magic: `magic | crc | payload` and `magic | attributes | crc | payload`.
_CRC_AT = {0: 1, 1: 2}


class LogSegment07(SegmentFile):
    """An open segment of a 0.7 log. Offsets are byte positions in the log."""

    SUFFIX: ClassVar[str] = ".kafka"

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        super().__init__(path, start, descriptor=descriptor)
        self._show(self.size)

    def load(self, where: Where) -> None:
        """A 0.7 log has no index, so there is nothing to prepare."""

    def recover(self) -> int:
        """Cut off the incomplete or corrupt end of the file. Returns the number of bytes removed."""
        with self.content() as data:
            valid_bytes = _count_valid_bytes(data)
        self._show(valid_bytes)
        return self.truncate(valid_bytes)

    def flush(self) -> None:
        """Force what was written to the disk, and then show it to readers."""
        super().flush()
        self._show(self.size)

    def region(self, offset: int, max_size: int) -> FileRegion:
        """At most `max_size` flushed bytes from `offset` on. A negative size stays negative [kafka-0.7: Fetch]."""
        position = offset - self.start
        return FileRegion(segment=self, position=position, count=min(max_size, self.visible.size - position))

    def _show(self, size: int) -> None:
        self.visible = VisibleEnd(size, self.start + size)


def _count_valid_bytes(data: memoryview) -> int:
    """The position after the last whole message of `data`."""
    position = 0
    while (end := _end_of_message(data, position)) is not None:
        position = end
    return position


def _end_of_message(data: memoryview, position: int) -> int | None:
    """The position after the message at `position`; None if there is no valid message."""
    body = position + _LENGTH.size
    if body >= len(data):
        return None
    crc_at = _CRC_AT.get(data[body])
    if crc_at is None:
        return None
    (length,) = _LENGTH.unpack_from(data, position)
    payload_at, end = body + crc_at + _CRC.size, body + length
    if not payload_at <= end <= len(data):
        return None
    (crc,) = _CRC.unpack_from(data, body + crc_at)
    with data[payload_at:end] as payload:
        return end if crc32(payload) == crc else None
