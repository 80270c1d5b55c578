"""Fetch answers of 0.8 and later to Arrow columns, without a Python object per record.

A log keeps the formats of all broker versions that wrote it, so formats 0, 1 and 2 may follow each other (fault R28). A
record batch is decoded completely or not at all, and an Arrow batch ends only between entries. Every decoded offset is
a row or is counted as a gap: rows + gaps = next_offset - start.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kafka_io.compression import BytesLike
from kafka_io.errors import NOWHERE, TooLarge, Where, WireError, error_context
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.column_builder import ColumnBuilder, ColumnLayout
from kafka_io.records.decoded_batch import DEFAULT_LIMITS, INT32_MAX, DecodedBatch, DecodeLimits
from kafka_io.records.legacy_messages import read_messages
from kafka_io.records.record_batches import read_batches
from kafka_io.records.record_set import RecordSet, RequestedOffsets
from kafka_io.records.schema import COLUMNS, select_columns
from kafka_io.records.transactions import AbortedRange, AbortedTransactions

COMPACTED = "compacted"

_LIKELY_RATIO = 4  # of compression
_Reader = Callable[[RecordSet, ColumnBuilder, AbortedTransactions, DecodeLimits], Iterator[None]]
# By magic. read_batches also gets incomplete entries and unknown magics, and reports them.
_READERS: dict[int | None, _Reader] = {0: read_messages, 1: read_messages, 2: read_batches}


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
        """See `decode`. `likely_bytes` is the expected size of all columns, if it is less than a batch."""
        self._limits = limits
        self._where = where
        self._columns = ColumnBuilder(
            ColumnLayout(select_columns(columns)),
            likely_bytes=limits.batch_bytes if likely_bytes is None else min(limits.batch_bytes, likely_bytes),
            max_text_bytes=limits.max_decompressed_bytes,
        )
        self._start: int | None = None
        self._next = 0
        self._gaps: Counter[str] = Counter()

    def feed(
        self, data: BytesLike, requested: RequestedOffsets, *, aborted: Sequence[AbortedRange] = ()
    ) -> Iterator[DecodedBatch]:
        """Decode one fetch answer; yields the batches that became full. See `decode` for arguments and errors.

        After an error the decoder starts empty: fetch again from the end of the last batch that was returned.
        """
        if len(data) + self._limits.batch_bytes > INT32_MAX:
            sentence = f"{len(data)} bytes to decode at once: with batch_bytes they must stay below 2 GiB"
            raise TooLarge(sentence, self._where)
        if self._start is None:
            self._start = requested.start
        record_set, transactions = RecordSet(data, requested, self._where), AbortedTransactions(aborted)
        try:
            while not record_set.ended:
                for _ in _READERS.get(record_set.magic, read_batches)(
                    record_set, self._columns, transactions, self._limits
                ):
                    if self._columns.size_bytes >= self._limits.batch_bytes:
                        yield self._take(record_set)
        except WireError:
            # The columns may hold part of the corrupt entry, so all of them are dropped.
            self._columns.reset()
            self._start, self._gaps = None, Counter()
            raise
        self._note(record_set)

    def flush(self) -> Iterator[DecodedBatch]:
        """The last batch, if any offset was decoded since the previous one."""
        if self._start is not None and self._next > self._start:
            yield self._decoded()

    def _take(self, record_set: RecordSet) -> DecodedBatch:
        self._note(record_set)
        return self._decoded()

    def _note(self, record_set: RecordSet) -> None:
        self._next = record_set.next_offset
        self._gaps += record_set.gaps
        record_set.gaps = Counter()

    def _decoded(self) -> DecodedBatch:
        assert self._start is not None
        start = self._start
        gaps, self._gaps = self._gaps, Counter()
        gaps[COMPACTED] = self._next - start - self._columns.rows - gaps.total()
        self._start = self._next
        with error_context(self._where.at_offset(start)):
            return DecodedBatch(self._columns.take_batch(), self._next, +gaps)


def decode(
    data: BytesLike,
    requested: RequestedOffsets,
    *,
    columns: Sequence[str] = COLUMNS,
    aborted: Sequence[AbortedRange] = (),
    limits: DecodeLimits = DEFAULT_LIMITS,
    where: Where = NOWHERE,
) -> Iterator[DecodedBatch]:
    """The records of `data` as batches of these `columns` of `schema.SCHEMA`; no batch when it holds no whole entry.

    Args:
        data: the entries of a fetch answer; a tail that is cut is left for the next fetch (fault R02).
        requested: the offsets to return.
        columns: others cost nothing, but what they hold is not checked beyond its bounds: of headers, nothing is.
        aborted: the transactions to leave out, (producer id, first offset) each, as a read-committed fetch tells them.
        limits: what it may cost; `max_depth` is 1 for these formats.
        where: the place of `data`; errors add the offset.

    Raises:
        Corrupt: a length, checksum, count, varint or offset that cannot be right, or compressed data that cannot be
            read.
        Unsupported: a magic above 2, or a codec that its format does not have.
        TooLarge: a batch passed a limit, which the sentence names.
        ValueError: columns that are none.
    """
    decoder = Decoder(columns, limits=limits, where=where, likely_bytes=_LIKELY_RATIO * len(data))
    yield from decoder.feed(data, requested, aborted=aborted)
    yield from decoder.flush()


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    for data in (log_messages([Record()], magic=1, codec=1), record_batch([Record(headers=((b"\xff", None),))])):
        for _ in decode(data, RequestedOffsets(start=0)):
            pass
