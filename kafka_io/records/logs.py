"""Fetch answers from 0.8 on to Arrow columns, whatever formats their entries have, no Python object per record.

Formats 0, 1 and 2 may follow each other in one partition, for its log keeps what each broker version wrote (R28). A
batch is decoded whole or not at all; an Arrow batch ends only between entries. Every offset of the range that was read
is a row or counted as a gap: rows + gaps = next_offset - at.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kafka_io.compression import Bytes
from kafka_io.errors import NOWHERE, TooLarge, Where
from kafka_io.records.batch_entries import read_batches
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.columns import DEFAULT_LIMITS, Decoded, Limits
from kafka_io.records.entries import Asked, Entries
from kafka_io.records.filling import Filling
from kafka_io.records.message_entries import read_messages
from kafka_io.records.schema import COLUMNS
from kafka_io.records.transactions import Aborted, AbortedRange

COMPACTED = "compacted"

_INT32_MAX = 2**31 - 1
_LIKELY_RATIO = 4  # of compression
_Reader = Callable[[Entries, Filling, Aborted, Limits], Iterator[None]]
# By magic; what has another, or none yet, is for the last one to judge.
_READERS: dict[int | None, _Reader] = {0: read_messages, 1: read_messages, 2: read_batches}


def decode(
    data: Bytes,
    asked: Asked,
    *,
    columns: Sequence[str] = COLUMNS,
    aborted: Sequence[AbortedRange] = (),
    limits: Limits = DEFAULT_LIMITS,
    where: Where = NOWHERE,
) -> Iterator[Decoded]:
    """The records of `data` as batches of these `columns` of `schema.SCHEMA`; no batch when it holds no whole entry.

    Args:
        data: the entries of a fetch answer; a tail that is cut is left for the next fetch (R02).
        asked: the offsets to return.
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
    if len(data) + limits.batch_bytes > _INT32_MAX:
        raise TooLarge(f"{len(data)} bytes to decode at once: with batch_bytes they must stay below 2 GiB", where)
    likely_bytes = min(limits.batch_bytes, _LIKELY_RATIO * len(data))
    filling = Filling(columns, likely_bytes=likely_bytes)
    entries, transactions = Entries(data, asked, where), Aborted(aborted)
    start = asked.at
    while not entries.ended:
        for _ in _READERS.get(entries.magic, read_batches)(entries, filling, transactions, limits):
            if filling.size_bytes >= limits.batch_bytes:
                yield _decoded(entries, filling, start)
                start = entries.next
    if entries.next > start:
        yield _decoded(entries, filling, start)


def _decoded(entries: Entries, filling: Filling, start: int) -> Decoded:
    rows = filling.rows
    gaps, entries.gaps = entries.gaps, Counter()
    gaps[COMPACTED] = entries.next - start - rows - gaps.total()
    return Decoded(filling.take_batch(), entries.next, +gaps)


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    for data in (log_messages([Record()], magic=1, codec=1), record_batch([Record()])):
        for _ in decode(data, Asked(at=0)):
            pass
