"""The header of a record batch, as the log reads it and completes it. The layout is in records/layout.py."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, Self

from kafka_io.compression import BytesLike
from kafka_io.errors import Corrupt, Truncated, Unsupported
from kafka_io.records.layout import (
    BATCH_BYTES,
    BATCH_MAGIC,
    CONTROL,
    ENTRY_BYTES,
    MODERN_CODEC_MASK,
    TRANSACTIONAL,
)

LEADER_EPOCH = 0  # this broker is the leader of its partitions from their creation on
NO_PRODUCER_ID = -1

# base offset | length | leader epoch | magic | crc | attributes | last offset delta | base timestamp | max timestamp
# | producer id | producer epoch | base sequence | number of records
_HEADER = Struct(">qiiBIhiqqqhii")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_LEADER_EPOCH_AT = 12


class BatchHeader(NamedTuple):
    """The header of a batch, with its fields in the order of the layout. Timestamps are in ms."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def parse(cls, data: BytesLike, position: int = 0) -> Self:
        """The header at `position` of `data`, which need not contain the whole batch.

        Raises:
            Truncated: `data` ends before the end of the header.
            Unsupported: the magic is not that of a record batch.
            Corrupt: a length, a count or an offset delta is impossible.
        """
        left_bytes = len(data) - position
        if left_bytes < BATCH_BYTES:
            raise Truncated(f"{left_bytes} bytes, the header of a batch has {BATCH_BYTES}")
        header = cls(*_HEADER.unpack_from(data, position))
        if header.magic != BATCH_MAGIC:
            raise Unsupported(f"a record batch was expected, but the entry has magic {header.magic}")
        is_negative = min(header.base_offset, header.last_offset_delta, header.record_count) < 0
        if header.size < BATCH_BYTES or is_negative or header.record_count > header.offset_count:
            raise Corrupt(
                f"impossible batch header: length {header.length}, {header.record_count} records, "
                f"base offset {header.base_offset}, last offset delta {header.last_offset_delta}"
            )
        return header

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return ENTRY_BYTES + self.length

    @property
    def offset_count(self) -> int:
        """The number of offsets that the batch covers. Compaction can remove records, so there can be fewer records."""
        return self.last_offset_delta + 1

    @property
    def next_offset(self) -> int:
        """The offset after the last one of the batch."""
        return self.base_offset + self.offset_count

    @property
    def codec(self) -> int:
        """The number of the codec that compresses the records; 0 means none."""
        return self.attributes & MODERN_CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether the batch contains the marker that ends a transaction."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction, as records or as the marker."""
        return bool(self.attributes & TRANSACTIONAL)


def stamp(batch: bytearray | memoryview, base_offset: int) -> None:
    """Write base offset and leader epoch into a batch. The CRC does not cover these fields, so it stays valid."""
    _INT64.pack_into(batch, 0, base_offset)
    _INT32.pack_into(batch, _LEADER_EPOCH_AT, LEADER_EPOCH)


def whole_batches(data: BytesLike) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of each complete batch of `data`. A batch that is cut off at the end is left out.

    Raises:
        Unsupported: an entry is not a record batch.
        Corrupt: a header is impossible.
    """
    position = 0
    while len(data) - position >= BATCH_BYTES:
        header = BatchHeader.parse(data, position)
        if position + header.size > len(data):
            return
        yield position, header
        position += header.size
