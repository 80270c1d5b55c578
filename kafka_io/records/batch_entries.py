"""Record batches of a fetch answer to rows.

Batches that need no look of their own become rows in one call of the kernel for many; one that is compressed, ends a
transaction or may be aborted is taken alone.
"""

from collections.abc import Iterator

import numpy as np

from kafka_io.compression import CODECS
from kafka_io.errors import Corrupt, Unsupported, Where, placing
from kafka_io.records.checksums import crc32c
from kafka_io.records.columns import Limits
from kafka_io.records.entries import REASONS, Asked, Entries, read_only
from kafka_io.records.filling import Filling
from kafka_io.records.kernels import batches as kernels
from kafka_io.records.kernels import outcomes
from kafka_io.records.kernels.batches import ATTRIBUTES, BASE, BODY, COUNT, CRC, LAST, PRODUCER, START, STOP
from kafka_io.records.kernels.scalars import Bytes, Int64s
from kafka_io.records.kernels.target import FAULT_BATCH, FAULT_RECORD
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
_Row = list[int]


def read_batches(entries: Entries, filling: Filling, aborted: Aborted, limits: Limits) -> Iterator[None]:
    """Decode record batches until there is something else; at each step the rows are those of whole batches."""
    table = np.empty((min(_MOST_BATCHES, len(entries.view) // BATCH_BYTES + 1), kernels.FIELDS), np.int64)
    status = outcomes.PAUSED
    while status == outcomes.PAUSED:
        status, at, count = kernels.list_batches(
            entries.array, entries.at, entries.floor, entries.least, entries.asked.end, table
        )
        rows: list[_Row] = table[:count].tolist()
        wanted = sum(row[BASE] < entries.asked.stop for row in rows)
        alone = MODERN_CODEC_MASK | CONTROL | (TRANSACTIONAL if aborted else 0)
        for first, last in _runs(rows[:wanted], alone, limits.batch_bytes):
            for row in rows[first:last]:
                _check(entries, row)
            if rows[first][ATTRIBUTES] & alone:
                _take_one(entries, filling, table[first:last], aborted, limits.max_decompressed_bytes)
            else:
                _fill(filling, entries.array, table[first:last], entries.asked, entries.where)
            entries.pass_to(rows[last - 1][LAST])
            yield
        if wanted < count:
            entries.finish()
            return
        entries.stand_at(at, status)


def _runs(rows: list[_Row], alone: int, most: int) -> Iterator[tuple[int, int]]:
    """Rows to take together, [first, last): one if it has a bit of `alone`, else as many as make up `most` bytes."""
    first = size = 0
    for index, row in enumerate(rows):
        single = row[ATTRIBUTES] & alone
        if single and first < index:
            yield first, index
            first = index
        size += row[STOP] - row[BODY]
        if single or size >= most:
            yield first, index + 1
            first, size = index + 1, 0
    if first < len(rows):
        yield first, len(rows)


def _check(entries: Entries, row: _Row) -> None:
    found = crc32c(entries.view[row[START] + BATCH_ATTRIBUTES_AT : row[STOP]])
    if found != row[CRC]:
        raise Corrupt(
            f"wrong CRC: the batch says {row[CRC]:08x}, its content has {found:08x}", entries.where.at(row[BASE])
        )


def _take_one(entries: Entries, filling: Filling, batch: Int64s, aborted: Aborted, cap: int) -> None:
    """Decode a batch that is compressed, or pass over one that gives no rows."""
    row: _Row = batch[0].tolist()
    base, last, producer, attributes = row[BASE], row[LAST], row[PRODUCER], row[ATTRIBUTES]
    with placing(entries.where.at(base)):
        if attributes & CONTROL:
            if aborted.covers(producer, last) and row[COUNT]:
                aborted.end(producer, _control_key(entries, batch, cap))
            entries.pass_over(base, last, CONTROL_GAP)
        elif attributes & TRANSACTIONAL and aborted.covers(producer, last):
            entries.pass_over(base, last, ABORTED_GAP)
        else:
            _fill(filling, *_opened(entries, batch, cap), entries.asked, entries.where)


def _control_key(entries: Entries, batch: Int64s, cap: int) -> bytes | None:
    """The key of the first record."""
    keys = Filling(("key",))
    _fill(keys, *_opened(entries, batch, cap), Asked(at=0), entries.where)
    key: bytes | None = keys.take_batch().column("key")[0].as_py()
    return key


def _opened(entries: Entries, batch: Int64s, cap: int) -> tuple[Bytes, Int64s]:
    """Where the batch's records are, and the batch as a table for them."""
    row: _Row = batch[0].tolist()
    number = row[ATTRIBUTES] & MODERN_CODEC_MASK
    if not number or row[BODY] == row[STOP]:
        return entries.array, batch
    codec = CODECS.get(number)
    if codec is None:
        raise Unsupported(f"a record batch compressed with codec {number}")
    content = codec.decompress(entries.view[row[BODY] : row[STOP]], cap)
    opened = batch.copy()
    opened[0, BODY], opened[0, STOP] = 0, len(content)
    return read_only(content), opened


def _fill(filling: Filling, data: Bytes, batches: Int64s, asked: Asked, where: Where) -> None:
    """The records of `batches` in `data` become rows."""
    counts, sizes = batches[:, COUNT], batches[:, STOP] - batches[:, BODY]
    # What is claimed is held against the bytes that are there before memory is given.
    filling.reserve(int(np.minimum(counts, sizes // LEAST_RECORD_BYTES).sum()), int(sizes.sum()))
    target = filling.target
    status = kernels.decode(data, batches, filling.wanted, asked.at, asked.stop, target)
    if status != outcomes.END:
        row: _Row = batches[target.filled[FAULT_BATCH]].tolist()
        record = int(target.filled[FAULT_RECORD])
        raise Corrupt(f"record {record} of {row[COUNT]}: {REASONS[status]}", where.at(row[BASE]))
