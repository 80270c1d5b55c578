"""Record batches (format 2) of a fetch answer to rows.

The cost of a kernel call is higher than that of a small batch, so one call decodes many batches. Compressed batches are
decompressed one by one into a common buffer first. A batch that ends a transaction, or may belong to an aborted one,
is handled separately.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafka_io.compression import CODECS, OutputBuffer
from kafka_io.errors import Corrupt, TooLarge, Unsupported, WireError
from kafka_io.jit.scalars import ByteArray, Int64s, read_only
from kafka_io.records.column_builder import ColumnBuilder
from kafka_io.records.crc32c import crc32c
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.gaps import ABORTED, COMPACTED
from kafka_io.records.gaps import CONTROL as CONTROL_GAP
from kafka_io.records.kernels import record_batches as kernels
from kafka_io.records.kernels import status_codes
from kafka_io.records.kernels.column_arrays import FAULT_BATCH, FAULT_RECORD, ROW_BYTES
from kafka_io.records.kernels.record_batches import (
    ATTRIBUTES,
    BASE,
    BODY,
    COUNT,
    CRC,
    LAST,
    NEEDED,
    PRODUCER,
    START,
    STOP,
)
from kafka_io.records.layout import (
    BATCH_ATTRIBUTES_AT,
    BATCH_BYTES,
    CONTROL,
    MIN_RECORD_BYTES,
    MODERN_CODEC_MASK,
    TRANSACTIONAL,
)
from kafka_io.records.record_set import REASONS, RecordSet
from kafka_io.records.transactions import AbortedTransactions

_MAX_BATCHES = 1024
# Decompressed batches are decoded together from this size on, to save kernel calls and to stay in the cache.
_JOINED_BYTES = 256 * 1024
_Row = list[int]


class _ThreadContent(threading.local):
    """The decompressed content of each thread, which is empty whenever the caller of `read` has its turn."""

    def __init__(self) -> None:
        self.content = OutputBuffer()


_THREAD = _ThreadContent()


@dataclass(frozen=True, slots=True)
class BatchReader:
    """Decodes the record batches of `record_set` to rows of `columns`, without those of `aborted` transactions."""

    record_set: RecordSet
    columns: ColumnBuilder
    aborted: AbortedTransactions
    limits: DecodeLimits

    def read(self) -> Iterator[None]:
        """Decode record batches until an entry of another format.

        Yields after each group of whole batches, so that the caller can take the rows.
        """
        record_set = self.record_set
        table = np.empty((min(_MAX_BATCHES, len(record_set.view) // BATCH_BYTES + 1), kernels.FIELDS), np.int64)
        status = status_codes.PAUSED
        while status == status_codes.PAUSED and not record_set.ended:
            status, position, count = record_set.list_batches(table)
            rows: list[_Row] = table[:count].tolist()
            wanted = sum(row[BASE] < record_set.requested.stop for row in rows)
            separate_bits = CONTROL | (TRANSACTIONAL if self.aborted else 0)
            for first, last in _groups(rows[:wanted], separate_bits, self.limits.batch_bytes):
                yield from self._read_group(rows[first:last], table[first:last], separate_bits)
            if wanted < count:
                record_set.skip_rest()
            record_set.stop_at(position, status)

    def _read_group(self, rows: list[_Row], batches: Int64s, separate_bits: int) -> Iterator[None]:
        """Verify and decode batches of one codec, or one batch with one of `separate_bits`."""
        for row in rows:
            self._verify_checksum(row)
        attributes = rows[0][ATTRIBUTES]
        if attributes & separate_bits and self._is_skipped(rows[0]):
            yield
        elif attributes & MODERN_CODEC_MASK:
            yield from self._decode_compressed(rows, batches)
        else:
            self._decode_plain(self.record_set.array, rows, batches)
            yield

    def _verify_checksum(self, row: _Row) -> None:
        actual = crc32c(self.record_set.view[row[START] + BATCH_ATTRIBUTES_AT : row[STOP]])
        if actual != row[CRC]:
            reason = f"wrong CRC: the batch says {row[CRC]:08x}, its content has {actual:08x}"
            raise Corrupt(reason, self.record_set.where.at_offset(row[NEEDED]))

    def _is_skipped(self, row: _Row) -> bool:
        """Whether the batch gives no rows: it is a transaction marker, or its transaction was aborted."""
        was_aborted = self.aborted.covers(row[PRODUCER], row[LAST])
        is_control = bool(row[ATTRIBUTES] & CONTROL)
        if is_control and was_aborted and row[COUNT]:
            self.aborted.end(row[PRODUCER], self._first_key(row), self.record_set.where.at_offset(row[NEEDED]))
        if is_control or was_aborted:
            self.record_set.skip(row[BASE], row[LAST], CONTROL_GAP if is_control else ABORTED)
        return is_control or was_aborted

    def _first_key(self, row: _Row) -> bytes | None:
        """Key of the first record of a control batch: the type of the transaction marker."""
        records = self.record_set.view[row[BODY] : row[STOP]]
        if row[ATTRIBUTES] & MODERN_CODEC_MASK:
            content = OutputBuffer()
            self._decompress(row, content)
            records = content.view
        status, size, position = kernels.first_key(read_only(records), 0, len(records))
        if status != status_codes.END:
            where = self.record_set.where.at_offset(row[NEEDED])
            raise Corrupt(f"record 0 of {row[COUNT]}: {REASONS[status]}", where)
        return None if size < 0 else bytes(records[position : position + size])

    def _decode_compressed(self, rows: list[_Row], batches: Int64s) -> Iterator[None]:
        """Decompress and decode batches, small ones together.

        The content of a batch follows that of the batch before it. BODY and STOP in the table rows are set to the
        positions there.
        """
        max_bytes = min(_JOINED_BYTES, self.limits.batch_bytes)
        content, first = _THREAD.content, 0
        content.clear()
        for index, row in enumerate(rows):
            batches[index, BODY] = content.size
            try:
                self._decompress(row, content)
                batches[index, STOP] = content.size
                is_full = content.size >= max_bytes or index + 1 == len(rows)
                if is_full:
                    joined = slice(first, index + 1)
                    self._decode_plain(read_only(content.view), rows[joined], batches[joined])
            except WireError:
                content.clear()
                raise
            if is_full:
                content.clear()
                first = index + 1
                yield

    def _decompress(self, row: _Row, output: OutputBuffer) -> None:
        """Append the records of a batch, decompressed."""
        record_set, number = self.record_set, row[ATTRIBUTES] & MODERN_CODEC_MASK
        codec = CODECS.get(number)
        if codec is None:
            raise Unsupported(f"a record batch compressed with codec {number}", record_set.where.at_offset(row[NEEDED]))
        records = record_set.view[row[BODY] : row[STOP]]
        # Compaction can remove all records of a batch. Its content is then empty, without even a compressed stream.
        if not (row[COUNT] or records):
            return
        try:
            codec.decompress_into(records, self.limits.max_decompressed_bytes, output)
        except WireError as error:  # a context manager costs as much as a small batch
            raise error.with_context(record_set.where.at_offset(row[NEEDED])) from error.__cause__

    def _decode_plain(self, data: ByteArray, rows: list[_Row], batches: Int64s) -> None:
        """Decode the uncompressed records in `data`, at the positions that `batches` give, to rows.

        `rows` are the rows of `batches` as lists.
        """
        record_set, columns, requested = self.record_set, self.columns, self.record_set.requested
        # A corrupt batch can claim 2^31 records. Its bytes bound the real number: a record takes at least 7 of them.
        sizes = batches[:, STOP] - batches[:, BODY]
        counts = np.minimum(batches[:, COUNT], sizes // MIN_RECORD_BYTES)
        # A row takes up to five times the bytes of its record, so the memory limit also bounds the number of rows.
        max_rows = (self.limits.max_decompressed_bytes + len(record_set.view)) // ROW_BYTES
        if counts.max() > max_rows:
            raise _too_many(max_rows).with_context(record_set.where.at_offset(int(batches[counts.argmax(), NEEDED])))
        columns.reserve(int(counts.sum()), int(sizes.sum()))
        arrays, max_headers, rows_before = columns.arrays, columns.headers + max_rows, columns.rows
        status = kernels.decode(data, batches, columns.wanted, requested.start, requested.stop, max_headers, arrays)
        if status != status_codes.END:
            row: _Row = batches[arrays.filled[FAULT_BATCH]].tolist()
            reason = f"record {arrays.filled[FAULT_RECORD]} of {row[COUNT]}: {REASONS.get(status)}"
            error: WireError = _too_many(max_rows) if status == status_codes.FULL else Corrupt(reason)
            raise error.with_context(record_set.where.at_offset(row[NEEDED]))
        self._count_gaps(rows, columns.rows - rows_before)

    def _count_gaps(self, rows: list[_Row], decoded: int) -> None:
        """Record that batches are decoded to so many rows, and count their offsets without a row.

        Raises:
            Corrupt: there are more or fewer rows than records according to the headers.
        """
        record_set, stop = self.record_set, self.record_set.requested.stop
        if decoded == min(rows[-1][LAST] + 1, stop) - record_set.next_offset:  # the usual case: each offset has a row
            record_set.advance_to(rows[-1][LAST])
            return
        offsets = min_records = max_records = 0
        for row in rows:
            record_set.begin_entry(row[BASE])
            inside = min(row[LAST] + 1, stop) - record_set.next_offset
            # A header counts the records of its whole batch. The request may begin or end inside of it.
            outside = row[LAST] + 1 - row[BASE] - inside
            offsets += inside
            min_records += max(0, row[COUNT] - outside)
            max_records += min(row[COUNT], inside)
            record_set.advance_to(row[LAST])
        if not min_records <= decoded <= max_records:
            reason = f"{decoded} records were decoded, but the headers of the batches count {max_records}"
            raise Corrupt(reason, record_set.where.at_offset(rows[0][NEEDED]))
        record_set.gaps.add(COMPACTED, offsets - decoded)


def _groups(rows: list[_Row], separate_bits: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Groups of rows to decode together, as [first, last).

    A batch with one of `separate_bits` is a group of its own. The others are grouped by codec, up to `max_bytes`.
    """
    first = size = previous = 0
    for index, row in enumerate(rows):
        kind = row[ATTRIBUTES] & (separate_bits | MODERN_CODEC_MASK)
        if first < index and (kind != previous or kind & separate_bits or size >= max_bytes):
            yield first, index
            first, size = index, 0
        size += row[STOP] - row[BODY]
        previous = kind
    if rows:
        yield first, len(rows)


def _too_many(max_rows: int) -> TooLarge:
    return TooLarge(
        f"a record batch of more than {max_rows} records or headers, the limit that max_decompressed_bytes sets"
    )
