"""Fetch answers of 0.8 and later to Arrow columns, without a Python object per record.

A log keeps the formats of all broker versions that wrote it, so formats 0, 1 and 2 may follow each other (fault R28). A
record batch is decoded completely or not at all, and an Arrow batch ends only between entries. Every decoded offset is
a row or is counted as a gap: rows + gaps = next_offset - start.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from kafka_io.compression import BytesLike
from kafka_io.errors import NOWHERE, Where, WireError, error_context
from kafka_io.jit.scalars import read_only
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.column_builder import ColumnBuilder, ColumnLayout
from kafka_io.records.decoded_batch import DEFAULT_LIMITS, DecodedBatch, DecodeLimits
from kafka_io.records.gaps import ObservedGaps
from kafka_io.records.kernels.record_batches import first_key
from kafka_io.records.legacy_messages import read_messages
from kafka_io.records.record_batches import BatchReader
from kafka_io.records.record_set import RecordSet, RequestedOffsets
from kafka_io.records.schema import COLUMNS, select_columns
from kafka_io.records.transactions import AbortedRange, AbortedTransactions

_LIKELY_RATIO = 4  # of compression


@cache
def _column_layout(columns: tuple[str, ...]) -> ColumnLayout:
    return ColumnLayout(select_columns(columns))


class Decoder:
    """Decodes consecutive fetch answers of one partition. Arrow batches may span several answers."""

    def __init__(
        self,
        columns: Sequence[str] = COLUMNS,
        *,
        limits: DecodeLimits = DEFAULT_LIMITS,
        where: Where = NOWHERE,
        likely_bytes: int | None = None,
    ) -> None:
        """`likely_bytes` is the expected size of all columns, if it is less than a batch."""
        self._limits = limits
        self._where = where
        self._columns = ColumnBuilder(
            _column_layout(tuple(columns)),
            likely_bytes=limits.batch_bytes if likely_bytes is None else min(limits.batch_bytes, likely_bytes),
            max_text_bytes=limits.max_decompressed_bytes,
        )
        self._start: int | None = None
        self._next = 0
        self._gaps = ObservedGaps()

    def feed(
        self, data: BytesLike, requested: RequestedOffsets, *, aborted: Sequence[AbortedRange] = ()
    ) -> Iterator[DecodedBatch]:
        """Decode one fetch answer; yields the batches that became full. See `decode` for arguments and errors.

        After an error the decoder starts empty: fetch again from the end of the last batch that was returned.
        """
        self._limits.check_size(data, self._where)
        if self._start is None:
            self._start = requested.start
        record_set = RecordSet(data, requested, self._where, self._gaps)
        batches = BatchReader(record_set, self._columns, AbortedTransactions(aborted), self._limits)
        try:
            while not record_set.ended:
                # A record set may change its format. BatchReader also reports incomplete entries and unknown magics.
                is_message = record_set.magic in (0, 1)
                entries = read_messages(record_set, self._columns, self._limits) if is_message else batches.read()
                for _ in entries:
                    if self._columns.size_bytes >= self._limits.batch_bytes:
                        yield self._take(record_set.next_offset)
        except WireError:
            # The columns may hold part of the corrupt entry, so all of them are dropped.
            self._columns.reset()
            self._start, self._gaps = None, ObservedGaps()
            raise
        self._next = record_set.next_offset

    def flush(self) -> Iterator[DecodedBatch]:
        """The last batch, if any offset was decoded since the previous one."""
        if self._start is not None and self._next > self._start:
            yield self._take(self._next)

    def _take(self, next_offset: int) -> DecodedBatch:
        """All rows and gaps so far, which end before `next_offset`, as a batch."""
        assert self._start is not None
        start, self._start = self._start, next_offset
        gaps, holes = self._gaps.take()
        with error_context(self._where.at_offset(start)):
            return DecodedBatch(self._columns.take_batch(), next_offset, gaps, holes)


def decode(
    data: BytesLike,
    requested: RequestedOffsets,
    *,
    columns: Sequence[str] = COLUMNS,
    aborted: Sequence[AbortedRange] = (),
    limits: DecodeLimits = DEFAULT_LIMITS,
    where: Where = NOWHERE,
) -> Iterator[DecodedBatch]:
    """The records of `data` as batches with these `columns` of `schema.SCHEMA`; none if `data` has no whole entry.

    Args:
        data: the entries of a fetch answer; an incomplete last entry is left for the next fetch (fault R02).
        requested: the offsets to return.
        columns: names of columns. The others cost nothing; the bounds of their keys and values are checked, their
            headers are not.
        aborted: the transactions to leave out, as a read-committed fetch returns them: (producer id, first offset).
        limits: memory limits; `max_depth` does not apply.
        where: the partition, for errors; they add the first offset that cannot be decoded: all before it can.

    Raises:
        Corrupt: an invalid length, checksum, count, varint or offset, or compressed data that cannot be decompressed.
        Unsupported: a magic above 2, or a codec that its format does not have.
        TooLarge: a batch exceeded a limit, which the message names.
        ValueError: a name is not a column.
    """
    decoder = Decoder(columns, limits=limits, where=where, likely_bytes=_LIKELY_RATIO * len(data))
    yield from decoder.feed(data, requested, aborted=aborted)
    yield from decoder.flush()


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    messages = log_messages([Record(offset=1)], magic=1, codec=1)  # with a hole before it
    for data in (messages, record_batch([Record(headers=((b"\xff", None),))])):
        for _ in decode(data, RequestedOffsets(start=0)):
            pass
    first_key(read_only(b""), 0, 0)  # of the ends of transactions
