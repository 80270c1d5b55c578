"""Record batches (format 2) of a fetch answer to rows.

The cost of a kernel call is higher than that of a small batch, so one call decodes many batches. Compressed batches are
decompressed one by one into a common buffer first. A batch that ends a transaction, or may belong to an aborted one,
is handled separately.
"""

from collections.abc import Iterator

import numpy as np

from kafka_io.compression import CODECS
from kafka_io.compression import BytesLike as Octets
from kafka_io.errors import Corrupt, TooLarge, Unsupported, WireError
from kafka_io.records.column_builder import ColumnBuilder
from kafka_io.records.crc32c import crc32c
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.kernels import record_batches as kernels
from kafka_io.records.kernels import status_codes
from kafka_io.records.kernels.column_arrays import FAULT_BATCH, FAULT_RECORD, ROW_BYTES
from kafka_io.records.kernels.record_batches import ATTRIBUTES, BASE, BODY, COUNT, CRC, LAST, PRODUCER, START, STOP
from kafka_io.records.kernels.scalars import ByteArray, Int64s
from kafka_io.records.layout import (
    BATCH_ATTRIBUTES_AT,
    BATCH_BYTES,
    CONTROL,
    MIN_RECORD_BYTES,
    MODERN_CODEC_MASK,
    TRANSACTIONAL,
)
from kafka_io.records.record_set import REASONS, RecordSet, read_only
from kafka_io.records.transactions import AbortedTransactions

ABORTED_GAP, CONTROL_GAP = "aborted", "control"

_MAX_BATCHES = 1024
# Decompressed batches are joined up to this size, to save kernel calls; larger ones are not worth the copy.
_JOINED_BYTES = 256 * 1024
_Row = list[int]


def read_batches(
    record_set: RecordSet, columns: ColumnBuilder, aborted: AbortedTransactions, limits: DecodeLimits
) -> Iterator[None]:
    """Decode record batches until an entry of another format.

    Yields after each group of whole batches, so that the caller can take the rows.
    """
    table = np.empty((min(_MAX_BATCHES, len(record_set.view) // BATCH_BYTES + 1), kernels.FIELDS), np.int64)
    status = status_codes.PAUSED
    while status == status_codes.PAUSED and not record_set.ended:
        status, position, count = kernels.list_batches(
            record_set.array,
            record_set.position,
            record_set.last_offset,
            record_set.min_end,
            record_set.requested.high_watermark,
            table,
        )
        rows: list[_Row] = table[:count].tolist()
        wanted = sum(row[BASE] < record_set.requested.stop for row in rows)
        separate_bits = CONTROL | (TRANSACTIONAL if aborted else 0)
        for first, last in _runs(rows[:wanted], separate_bits, limits.batch_bytes):
            run, batches = rows[first:last], table[first:last]
            for row in run:
                _check(record_set, row)
            if run[0][ATTRIBUTES] & separate_bits and _is_skipped(record_set, run[0], aborted, limits):
                yield
                continue
            decoded = 0
            while decoded < len(run):
                decoded += _decode_run(record_set, columns, run[decoded:], batches[decoded:], limits)
                yield
        if wanted < count:
            record_set.skip_rest()
        record_set.stop_at(position, status)


def _runs(rows: list[_Row], separate_bits: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Groups of rows to decode together, as [first, last).

    A batch with one of `separate_bits` is a group of its own. The others are grouped by codec, up to `max_bytes`.
    """
    first = size = before = 0
    for index, row in enumerate(rows):
        kind = row[ATTRIBUTES] & (separate_bits | MODERN_CODEC_MASK)
        if first < index and (kind != before or kind & separate_bits or size >= max_bytes):
            yield first, index
            first, size = index, 0
        size += row[STOP] - row[BODY]
        before = kind
    if rows:
        yield first, len(rows)


def _check(record_set: RecordSet, row: _Row) -> None:
    """Compare the checksum of a batch with its content."""
    actual = crc32c(record_set.view[row[START] + BATCH_ATTRIBUTES_AT : row[STOP]])
    if actual != row[CRC]:
        raise Corrupt(
            f"wrong CRC: the batch says {row[CRC]:08x}, its content has {actual:08x}",
            record_set.where.at_offset(row[BASE]),
        )


def _is_skipped(record_set: RecordSet, row: _Row, aborted: AbortedTransactions, limits: DecodeLimits) -> bool:
    """Whether the batch gives no rows: it is a transaction marker, or its transaction was aborted."""
    was_aborted = aborted.covers(row[PRODUCER], row[LAST])
    if row[ATTRIBUTES] & CONTROL:
        if was_aborted and row[COUNT]:
            try:
                aborted.end(row[PRODUCER], _first_key(record_set, row, limits))
            except Corrupt as error:
                raise error.with_context(record_set.where.at_offset(row[BASE])) from error.__cause__
        record_set.skip(row[BASE], row[LAST], CONTROL_GAP)
    elif was_aborted:
        record_set.skip(row[BASE], row[LAST], ABORTED_GAP)
    return bool(row[ATTRIBUTES] & CONTROL) or was_aborted


def _first_key(record_set: RecordSet, row: _Row, limits: DecodeLimits) -> bytes | None:
    """Key of the first record of a control batch: the type of the transaction marker."""
    records = _records(record_set, row, limits)
    status, size, position = kernels.first_key(read_only(records), 0, len(records))
    if status != status_codes.END:
        raise Corrupt(f"record 0 of {row[COUNT]}: {REASONS[status]}")
    return None if size < 0 else bytes(records[position : position + size])


def _decode_run(
    record_set: RecordSet, columns: ColumnBuilder, rows: list[_Row], table: Int64s, limits: DecodeLimits
) -> int:
    """Decode the first of these batches, all of one codec, to rows; returns how many."""
    if not rows[0][ATTRIBUTES] & MODERN_CODEC_MASK:
        _decode_plain(record_set, columns, record_set.array, table, limits)
        decoded = len(rows)
    else:
        decoded = _decode_compressed(record_set, columns, rows, table, limits)
    record_set.advance_to(rows[decoded - 1][LAST])
    return decoded


def _decode_compressed(
    record_set: RecordSet, columns: ColumnBuilder, rows: list[_Row], table: Int64s, limits: DecodeLimits
) -> int:
    """Decompress and decode batches until they make up _JOINED_BYTES; returns how many."""
    max_bytes = min(_JOINED_BYTES, limits.batch_bytes)
    contents: list[Octets] = []
    size = decoded = 0
    for row in rows:
        content = _records(record_set, row, limits)
        size += len(content)
        if contents and size >= max_bytes:
            # The next batch may be large: decode the smaller ones now, so that it is not copied.
            _decode_joined(record_set, columns, contents, table[decoded - len(contents) : decoded], limits)
            contents = []
        contents.append(content)
        decoded += 1
        if size >= max_bytes:
            break
    _decode_joined(record_set, columns, contents, table[decoded - len(contents) : decoded], limits)
    return decoded


def _records(record_set: RecordSet, row: _Row, limits: DecodeLimits) -> Octets:
    """The records of a batch, decompressed."""
    number = row[ATTRIBUTES] & MODERN_CODEC_MASK
    codec = CODECS.get(number)
    if codec is None:
        raise Unsupported(f"a record batch compressed with codec {number}", record_set.where.at_offset(row[BASE]))
    records = record_set.view[row[BODY] : row[STOP]]
    # Compaction can remove all records of a batch. Its content is then empty, without even a compressed stream.
    if not number or not (row[COUNT] or records):
        return records
    try:
        return codec.decompress(records, limits.max_decompressed_bytes)
    except WireError as error:  # a context manager costs as much as a small batch
        raise error.with_context(record_set.where.at_offset(row[BASE])) from error.__cause__


def _decode_joined(
    record_set: RecordSet, columns: ColumnBuilder, contents: list[Octets], batches: Int64s, limits: DecodeLimits
) -> None:
    """Decode the decompressed records of several batches, one item of `contents` each, with one kernel call.

    BODY and STOP in the table rows are set to the positions in the joined contents.
    """
    batches[:, STOP] = np.cumsum([len(content) for content in contents])
    batches[0, BODY] = 0
    batches[1:, BODY] = batches[:-1, STOP]
    data = contents[0] if len(contents) == 1 else b"".join(contents)
    _decode_plain(record_set, columns, read_only(data), batches, limits)


def _decode_plain(
    record_set: RecordSet, columns: ColumnBuilder, data: ByteArray, batches: Int64s, limits: DecodeLimits
) -> None:
    """Decode the uncompressed records in `data`, at the positions that `batches` give, to rows."""
    requested = record_set.requested
    # A corrupt batch can claim 2^31 records. Its bytes bound the real number: a record takes at least 7 of them.
    sizes = batches[:, STOP] - batches[:, BODY]
    counts = np.minimum(batches[:, COUNT], sizes // MIN_RECORD_BYTES)
    # A row takes up to five times the bytes of its record, so the memory limit also bounds the number of rows.
    max_bytes = (limits.max_decompressed_bytes + len(record_set.view)) // ROW_BYTES
    if counts.max() > max_bytes:
        raise _too_many(max_bytes).with_context(record_set.where.at_offset(int(batches[counts.argmax(), BASE])))
    columns.reserve(int(counts.sum()), int(sizes.sum()))
    target, headers = columns.arrays, columns.headers + max_bytes
    status = kernels.decode(data, batches, columns.wanted, requested.start, requested.stop, headers, target)
    if status != status_codes.END:
        row: _Row = batches[target.filled[FAULT_BATCH]].tolist()
        reason = f"record {target.filled[FAULT_RECORD]} of {row[COUNT]}: {REASONS.get(status)}"
        error: WireError = _too_many(max_bytes) if status == status_codes.FULL else Corrupt(reason)
        raise error.with_context(record_set.where.at_offset(row[BASE]))


def _too_many(max_bytes: int) -> TooLarge:
    return TooLarge(
        f"a record batch of more than {max_bytes} records or headers, the limit that max_decompressed_bytes sets"
    )
