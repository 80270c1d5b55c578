"""The record set of a fetch answer (0.8 and later) while it is decoded.

A record set is a sequence of entries: messages of formats 0 and 1, and record batches.
"""

from dataclasses import dataclass
from struct import Struct

from kafka_io.compression import BytesLike
from kafka_io.errors import Corrupt, PastEnd, Unsupported, Where, WireError
from kafka_io.jit.scalars import Int64s, read_only
from kafka_io.records.gaps import ObservedGaps
from kafka_io.records.kernels import record_batches, status_codes
from kafka_io.records.layout import BATCH_LAST_DELTA_AT, BATCH_MAGIC, ENTRY_BYTES, ENTRY_LENGTH_AT, MAGIC_AT

_LENGTH = Struct(">i")
_OFFSET = Struct(">q")
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedOffsets:
    """The offsets `[start, stop)` that a fetch requested.

    Args:
        start: the first offset to return. A fetch returns the whole batch that holds it; earlier rows are left out.
        stop: the first offset not to return. Decoding ends at the first entry that begins at `stop` or later.
        high_watermark: the end of the partition, as the fetch answer gives it. An entry that reaches it is an error
            (PastEnd).

    Raises:
        ValueError: the offsets are not in order.

    >>> RequestedOffsets(start=5, stop=8)
    RequestedOffsets(start=5, stop=8, high_watermark=9223372036854775807)
    >>> RequestedOffsets(start=5, stop=5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: requested offsets need 0 <= start < stop and start <= high_watermark, got RequestedOffsets(start=5, ...
    """

    start: int
    stop: int = _INT64_MAX
    high_watermark: int = _INT64_MAX

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop <= _INT64_MAX or self.high_watermark < self.start:
            raise ValueError(f"requested offsets need 0 <= start < stop and start <= high_watermark, got {self}")


class RecordSet:
    """A record set and the state of its decoding.

    Attributes:
        position: the byte up to which `view` is decoded.
        next_offset: the first offset that is not decoded yet.
        last_offset: the last offset of the previous entry, -1 before the first.
        is_cut: the last entry is incomplete; the next fetch returns it whole.
        gaps: offsets that were decoded and gave no row.
    """

    __slots__ = ("array", "gaps", "is_cut", "last_offset", "next_offset", "position", "requested", "view", "where")

    def __init__(
        self, data: BytesLike, requested: RequestedOffsets, where: Where, gaps: ObservedGaps | None = None
    ) -> None:
        """`gaps` continues the counts of an earlier record set."""
        self.view = memoryview(data)
        self.array = read_only(self.view)
        self.requested = requested
        self.where = where
        self.position = 0
        self.next_offset = requested.start
        self.last_offset = -1
        self.is_cut = False
        self.gaps = ObservedGaps() if gaps is None else gaps

    @property
    def magic(self) -> int | None:
        """Magic of the next entry; None when the data ends before it."""
        return self.view[self.position + MAGIC_AT] if len(self.view) - self.position > MAGIC_AT else None

    @property
    def ended(self) -> bool:
        """True when no whole entry is left, or all requested offsets are decoded."""
        return self.is_cut or self.position == len(self.view) or self.next_offset >= self.requested.stop

    @property
    def min_end(self) -> int:
        """The next entry must end above this offset.

        Brokers return the batch that holds `requested.start`, but no entry that ends before it.
        """
        return max(self.last_offset, self.requested.start - 1)

    def list_batches(self, table: Int64s) -> tuple[int, int, int]:
        """List the record batches from `position` on, as the kernel of this name does."""
        return record_batches.list_batches(
            self.array, self.position, self.last_offset, self.min_end, self.requested.high_watermark, table
        )

    def stop_at(self, position: int, status: int) -> None:
        """Continue at `position`, where a kernel stopped with `status`.

        Raises:
            WireError: the kernel stopped at an invalid entry, and requested offsets are still missing.
        """
        self.position = position
        self.is_cut = status == status_codes.CUT
        if status not in _STOPS and self.next_offset < self.requested.stop:
            raise self.error(status).with_context(self.where.at_offset(self.next_offset))

    def advance_to(self, last: int) -> None:
        """Record that the entry that ends with offset `last` is decoded."""
        self.next_offset = max(self.next_offset, min(last + 1, self.requested.stop))
        self.last_offset = last

    def begin_entry(self, base: int) -> None:
        """Record that the next entry begins with offset `base`: no entry has the offsets before it."""
        start = min(base, self.requested.stop)
        if start > self.next_offset:
            self.gaps.add_holes(self.next_offset, start, start - self.next_offset)
            self.next_offset = start

    def skip(self, base: int, last: int, cause: str) -> None:
        """Record that the entry with the offsets `base` to `last` gives no rows, and why."""
        self.begin_entry(base)
        before = self.next_offset
        self.advance_to(last)
        self.gaps.add(cause, self.next_offset - before)

    def skip_rest(self) -> None:
        """Record that all remaining entries begin at or after the requested stop."""
        self.begin_entry(self.requested.stop)

    def error(self, status: int) -> WireError:
        """The error for the entry at `position`, from the `status` of a kernel."""
        view = self.view[self.position :]
        length = ENTRY_BYTES + _LENGTH.unpack_from(view, ENTRY_LENGTH_AT)[0]
        if status == status_codes.BAD_LENGTH:
            return Corrupt(f"an entry of {length} bytes")
        if status == status_codes.BAD_MAGIC:
            return Unsupported(f"an entry of magic {view[MAGIC_AT]}")
        if status == status_codes.BAD_OFFSET:
            base, last = _OFFSET.unpack_from(view)[0], _last_offset(view)
            kind = PastEnd if self.last_offset < base <= last and last >= self.requested.high_watermark else Corrupt
            return kind(
                f"an entry with offset {base} is out of order or outside the request: "
                f"decoded up to {self.last_offset}, {self.requested}"
            )
        return Corrupt(f"an entry of magic {view[MAGIC_AT]} and {length} bytes: {REASONS[status]}")


_STOPS = (status_codes.END, status_codes.CUT, status_codes.PAUSED, status_codes.OTHER_FORMAT, status_codes.WRAPPER)
REASONS = {
    status_codes.BAD_LENGTH: "an invalid length",
    status_codes.BAD_MAGIC: "another magic inside",
    status_codes.BAD_CRC: "wrong CRC",
    status_codes.BAD_OFFSET: "offsets that do not grow or are out of their range",
    status_codes.BAD_COUNT: "an invalid count",
    status_codes.BAD_VARINT: "a varint that is too long",
    status_codes.BAD_FIELD: "a key, value or header that is longer than its record",
    status_codes.BAD_END: "its end differs from its length",
    status_codes.CUT: "it is incomplete",
    status_codes.WRAPPER: "a compressed message inside a compressed one",
    status_codes.OTHER_FORMAT: "a record batch inside a compressed message",
}


def _last_offset(entry: memoryview) -> int:
    """Last offset of an entry.

    A message has one offset. A batch has a base offset and the delta of its last offset; its checksum does not cover
    them.
    """
    base: int = _OFFSET.unpack_from(entry)[0]
    return base + _LENGTH.unpack_from(entry, BATCH_LAST_DELTA_AT)[0] if entry[MAGIC_AT] == BATCH_MAGIC else base
