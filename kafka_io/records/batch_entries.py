"""Record batches of a fetch answer to rows.

Many batches become rows in one call of the kernel, compressed ones after they were opened into one buffer. Only those
that end a transaction or may be of an aborted one are taken alone.
"""

from collections.abc import Iterator

import numpy as np

from kafka_io.compression import CODECS
from kafka_io.compression import Bytes as Octets
from kafka_io.errors import Corrupt, TooLarge, Unsupported, WireError
from kafka_io.records.checksums import crc32c
from kafka_io.records.columns import Limits
from kafka_io.records.entries import REASONS, Entries, read_only
from kafka_io.records.filling import Filling
from kafka_io.records.kernels import batches as kernels
from kafka_io.records.kernels import outcomes
from kafka_io.records.kernels.batches import ATTRIBUTES, BASE, BODY, COUNT, CRC, LAST, PRODUCER, START, STOP
from kafka_io.records.kernels.scalars import Bytes, Int64s
from kafka_io.records.kernels.target import FAULT_BATCH, FAULT_RECORD, ROW_BYTES
from kafka_io.records.layout import (
    BATCH_ATTRIBUTES_AT,
    BATCH_BYTES,
    CONTROL,
    LEAST_RECORD_BYTES,
    MODERN_CODEC_MASK,
    TRANSACTIONAL,
)
from kafka_io.records.transactions import Aborted

ABORTED_GAP, CONTROL_GAP = "aborted", "control"

_MOST_BATCHES = 1024
# Compressed batches are opened one by one until they make up so many bytes, and then decoded together.
_TOGETHER_BYTES = 256 * 1024
_Row = list[int]


def read_batches(entries: Entries, filling: Filling, aborted: Aborted, limits: Limits) -> Iterator[None]:
    """Decode record batches until there is something else; at each step the rows are those of whole batches."""
    table = np.empty((min(_MOST_BATCHES, len(entries.view) // BATCH_BYTES + 1), kernels.FIELDS), np.int64)
    status = outcomes.PAUSED
    while status == outcomes.PAUSED and not entries.ended:
        status, at, count = kernels.list_batches(
            entries.array, entries.at, entries.floor, entries.least, entries.asked.end, table
        )
        rows: list[_Row] = table[:count].tolist()
        wanted = sum(row[BASE] < entries.asked.stop for row in rows)
        alone = CONTROL | (TRANSACTIONAL if aborted else 0)
        for first, last in _runs(rows[:wanted], alone, limits.batch_bytes):
            run, batches = rows[first:last], table[first:last]
            for row in run:
                _check(entries, row)
            if run[0][ATTRIBUTES] & alone and _passed_over(entries, run[0], aborted, limits):
                yield
                continue
            taken = 0
            while taken < len(run):
                taken += _take(entries, filling, run[taken:], batches[taken:], limits)
                yield
        if wanted < count:
            entries.finish()
        entries.stand_at(at, status)


def _runs(rows: list[_Row], alone: int, most: int) -> Iterator[tuple[int, int]]:
    """Rows to take together, [first, last): one with a bit of `alone`, or as many of one codec as make up `most`."""
    first = size = before = 0
    for index, row in enumerate(rows):
        kind = row[ATTRIBUTES] & (alone | MODERN_CODEC_MASK)
        if first < index and (kind != before or kind & alone or size >= most):
            yield first, index
            first, size = index, 0
        size += row[STOP] - row[BODY]
        before = kind
    if rows:
        yield first, len(rows)


def _check(entries: Entries, row: _Row) -> None:
    found = crc32c(entries.view[row[START] + BATCH_ATTRIBUTES_AT : row[STOP]])
    if found != row[CRC]:
        raise Corrupt(
            f"wrong CRC: the batch says {row[CRC]:08x}, its content has {found:08x}", entries.where.at(row[BASE])
        )


def _passed_over(entries: Entries, row: _Row, aborted: Aborted, limits: Limits) -> bool:
    """Whether the batch gives no rows, since it ends a transaction or is of one that was aborted."""
    was_aborted = aborted.covers(row[PRODUCER], row[LAST])
    if row[ATTRIBUTES] & CONTROL:
        if was_aborted and row[COUNT]:
            try:
                aborted.end(row[PRODUCER], _first_key(entries, row, limits))
            except Corrupt as error:
                raise error.placed(entries.where.at(row[BASE])) from error.__cause__
        entries.pass_over(row[BASE], row[LAST], CONTROL_GAP)
    elif was_aborted:
        entries.pass_over(row[BASE], row[LAST], ABORTED_GAP)
    return bool(row[ATTRIBUTES] & CONTROL) or was_aborted


def _first_key(entries: Entries, row: _Row, limits: Limits) -> bytes | None:
    records = _records(entries, row, limits)
    status, size, at = kernels.first_key(read_only(records), 0, len(records))
    if status != outcomes.END:
        raise Corrupt(f"record 0 of {row[COUNT]}: {REASONS[status]}")
    return None if size < 0 else bytes(records[at : at + size])


def _take(entries: Entries, filling: Filling, rows: list[_Row], table: Int64s, limits: Limits) -> int:
    """The first of these batches, which are of one codec, become rows; how many of them."""
    if not rows[0][ATTRIBUTES] & MODERN_CODEC_MASK:
        _fill(entries, filling, entries.array, table, limits)
        taken = len(rows)
    else:
        taken = _take_compressed(entries, filling, rows, table, limits)
    entries.pass_to(rows[taken - 1][LAST])
    return taken


def _take_compressed(entries: Entries, filling: Filling, rows: list[_Row], table: Int64s, limits: Limits) -> int:
    most = min(_TOGETHER_BYTES, limits.batch_bytes)
    contents: list[Octets] = []
    size = taken = 0
    for row in rows:
        content = _records(entries, row, limits)
        size += len(content)
        if contents and size >= most:
            # The last may be large: it is decoded by itself, not copied.
            _fill_together(entries, filling, contents, table[taken - len(contents) : taken], limits)
            contents = []
        contents.append(content)
        taken += 1
        if size >= most:
            break
    _fill_together(entries, filling, contents, table[taken - len(contents) : taken], limits)
    return taken


def _records(entries: Entries, row: _Row, limits: Limits) -> Octets:
    """The records of a batch as they were before they were compressed."""
    number = row[ATTRIBUTES] & MODERN_CODEC_MASK
    codec = CODECS.get(number)
    if codec is None:
        raise Unsupported(f"a record batch compressed with codec {number}", entries.where.at(row[BASE]))
    records = entries.view[row[BODY] : row[STOP]]
    # What compaction leaves of a batch may be nothing, not even a stream.
    if not number or not (row[COUNT] or records):
        return records
    try:
        return codec.decompress(records, limits.max_decompressed_bytes)
    except WireError as error:  # `placing` takes as long as a small batch
        raise error.placed(entries.where.at(row[BASE])) from error.__cause__


def _fill_together(entries: Entries, filling: Filling, contents: list[Octets], batches: Int64s, limits: Limits) -> None:
    """The records in `contents`, of a batch each, become rows."""
    batches[:, STOP] = np.cumsum([len(content) for content in contents])
    batches[0, BODY] = 0
    batches[1:, BODY] = batches[:-1, STOP]
    data = contents[0] if len(contents) == 1 else b"".join(contents)
    _fill(entries, filling, read_only(data), batches, limits)


def _fill(entries: Entries, filling: Filling, data: Bytes, batches: Int64s, limits: Limits) -> None:
    """The records of `batches` in `data` become rows."""
    asked = entries.asked
    # What is claimed is held against the bytes that are there before memory is given.
    sizes = batches[:, STOP] - batches[:, BODY]
    counts = np.minimum(batches[:, COUNT], sizes // LEAST_RECORD_BYTES)
    # A row may take five times the bytes of its record: all rows of a batch take no more than its records might.
    most = (limits.max_decompressed_bytes + len(entries.view)) // ROW_BYTES
    if counts.max() > most:
        raise _too_many(most).placed(entries.where.at(int(batches[counts.argmax(), BASE])))
    filling.reserve(int(counts.sum()), int(sizes.sum()))
    target, headers = filling.target, filling.headers + most
    status = kernels.decode(data, batches, filling.wanted, asked.at, asked.stop, headers, target)
    if status != outcomes.END:
        row: _Row = batches[target.filled[FAULT_BATCH]].tolist()
        reason = f"record {target.filled[FAULT_RECORD]} of {row[COUNT]}: {REASONS.get(status)}"
        error: WireError = _too_many(most) if status == outcomes.FULL else Corrupt(reason)
        raise error.placed(entries.where.at(row[BASE]))


def _too_many(most: int) -> TooLarge:
    return TooLarge(
        f"a record batch of more than the {most} records or headers that max_decompressed_bytes leaves for it"
    )
