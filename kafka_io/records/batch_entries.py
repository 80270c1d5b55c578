"""Record batches of a fetch answer to rows.

Many batches become rows in one call of the kernel, compressed ones after they were opened into one buffer. Only those
that end a transaction or may be of an aborted one are taken alone.
"""

from collections.abc import Iterator

import numpy as np

from kafka_io.compression import CODECS
from kafka_io.compression import Bytes as Octets
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
            if run[0][ATTRIBUTES] & alone and _passed_over(entries, run[0], batches, aborted, limits):
                yield
                continue
            for data, opened, newest in _opened(entries, run, batches, limits):
                _fill(filling, data, opened, entries.asked, entries.where)
                entries.pass_to(newest[LAST])
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


def _passed_over(entries: Entries, row: _Row, batch: Int64s, aborted: Aborted, limits: Limits) -> bool:
    """Whether the batch gives no rows, since it ends a transaction or is of one that was aborted."""
    was_aborted = aborted.covers(row[PRODUCER], row[LAST])
    if row[ATTRIBUTES] & CONTROL:
        if was_aborted and row[COUNT]:
            with placing(entries.where.at(row[BASE])):
                aborted.end(row[PRODUCER], _first_key(entries, row, batch, limits))
        entries.pass_over(row[BASE], row[LAST], CONTROL_GAP)
    elif was_aborted:
        entries.pass_over(row[BASE], row[LAST], ABORTED_GAP)
    return bool(row[ATTRIBUTES] & CONTROL) or was_aborted


def _first_key(entries: Entries, row: _Row, batch: Int64s, limits: Limits) -> bytes | None:
    keys = Filling(("key",))
    for data, opened, _ in _opened(entries, [row], batch, limits):
        _fill(keys, data, opened, Asked(at=0), entries.where)
    key: bytes | None = keys.take_batch().column("key")[0].as_py()
    return key


def _opened(entries: Entries, rows: list[_Row], table: Int64s, limits: Limits) -> Iterator[tuple[Bytes, Int64s, _Row]]:
    """Where the records of the batches are, these batches as a table for there, and the last of them."""
    if not rows[0][ATTRIBUTES] & MODERN_CODEC_MASK:
        yield entries.array, table, rows[-1]
        return
    contents: list[Octets] = []
    first = size = 0
    for index, row in enumerate(rows):
        with placing(entries.where.at(row[BASE])):
            contents.append(_content(entries, row, limits.max_decompressed_bytes))
        table[index, BODY] = size
        size += len(contents[-1])
        table[index, STOP] = size
        if size >= min(_TOGETHER_BYTES, limits.batch_bytes) or row is rows[-1]:
            data = contents[0] if len(contents) == 1 else b"".join(contents)
            yield read_only(data), table[first : index + 1], row
            contents, first, size = [], index + 1, 0


def _content(entries: Entries, row: _Row, cap: int) -> Octets:
    """The records of a compressed batch."""
    number = row[ATTRIBUTES] & MODERN_CODEC_MASK
    codec = CODECS.get(number)
    if codec is None:
        raise Unsupported(f"a record batch compressed with codec {number}")
    records = entries.view[row[BODY] : row[STOP]]
    # What compaction leaves of a batch may be nothing, not even a stream.
    return codec.decompress(records, cap) if row[COUNT] or records else records


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
