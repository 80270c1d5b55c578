"""The header of a record batch, as the log reads and stamps it. The layout is in records/layout.py."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Self

from kafka_io.compression import Bytes
from kafka_io.errors import Corrupt, Truncated, Unsupported
from kafka_io.records.layout import (
    BATCH_BYTES,
    BATCH_MAGIC,
    CONTROL,
    ENTRY_BYTES,
    MAGIC_AT,
    MODERN_CODEC_MASK,
    TRANSACTIONAL,
)

LEADER_EPOCH = 0  # this broker leads its partitions from their first day on
NO_PRODUCER_ID = -1

_HEADER = Struct(">qiiBIhiqqqhii")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_EPOCH_AT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """What stands before the records of a batch; `size` is that of the whole batch in bytes."""

    base: int
    size: int
    crc: int
    attributes: int
    last_delta: int
    max_time: int
    producer_id: int
    producer_epoch: int
    sequence: int
    count: int

    @classmethod
    def parse(cls, data: Bytes, at: int = 0) -> Self:
        """The header at `at` of `data`, which need not hold the whole batch.

        Raises:
            Truncated: it is cut.
            Unsupported: another magic stands there.
            Corrupt: a length, count or delta that cannot be right.
        """
        if len(data) - at < BATCH_BYTES:
            raise Truncated(f"{len(data) - at} bytes, the header of a batch has {BATCH_BYTES}")
        if data[at + MAGIC_AT] != BATCH_MAGIC:
            raise Unsupported(f"an entry of magic {data[at + MAGIC_AT]} where a record batch should be")
        base, length, _, _, crc, attributes, last_delta, _, max_time, producer_id, epoch, sequence, count = (
            _HEADER.unpack_from(data, at)
        )
        if length < BATCH_BYTES - ENTRY_BYTES or base < 0 or last_delta < 0 or not 0 <= count <= last_delta + 1:
            raise Corrupt(f"a batch of length {length} with {count} records from {base} on, last delta {last_delta}")
        return cls(
            base=base,
            size=ENTRY_BYTES + length,
            crc=crc,
            attributes=attributes,
            last_delta=last_delta,
            max_time=max_time,
            producer_id=producer_id,
            producer_epoch=epoch,
            sequence=sequence,
            count=count,
        )

    @property
    def next(self) -> int:
        """The offset behind the last one."""
        return self.base + self.last_delta + 1

    @property
    def codec(self) -> int:
        """The number of the codec that the records are compressed with, 0 for none."""
        return self.attributes & MODERN_CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether it holds the marker of a transaction."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction, its marker included."""
        return bool(self.attributes & TRANSACTIONAL)


def stamp(batch: bytearray | memoryview, base: int) -> None:
    """Give a batch its place in the log. Offset and leader epoch are not covered by its CRC."""
    _INT64.pack_into(batch, 0, base)
    _INT32.pack_into(batch, _EPOCH_AT, LEADER_EPOCH)


def whole_batches(data: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch of `data` that is all there, with the byte it begins at; a cut tail is left out.

    Raises:
        Unsupported: another magic stands among them.
        Corrupt: a header that cannot be right.
    """
    at = 0
    while len(data) - at >= BATCH_BYTES:
        header = BatchHeader.parse(data, at)
        if at + header.size > len(data):
            return
        yield at, header
        at += header.size
