"""Splitting committed ranges: which parts of them are inside of given offsets, and which parts remain outside."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.table_log import TableLog, TableSnapshot
from pipelines.loading.work import CommittedRange

MIXED = "mixed"
"""The cause of the gaps in a part of a range whose gaps have several causes: the ledger does not say which is where."""


def split_ranges(
    ranges: Iterable[CommittedRange], selected: Sequence[OffsetRange]
) -> tuple[list[CommittedRange], list[tuple[CommittedRange, CommittedRange]]]:
    """Split the `ranges` that overlap the `selected` offsets. Neither list may contain overlaps.

    Returns the parts inside of the selected offsets, and the parts outside, each with the range that it belongs to. The
    rows of the parts are not counted yet; their file is that of the whole range.
    """
    inside: list[CommittedRange] = []
    outside: list[tuple[CommittedRange, CommittedRange]] = []
    by_partition: dict[BrokerPartition, list[OffsetRange]] = defaultdict(list)
    for offsets in sorted(selected):
        by_partition[offsets.partition].append(offsets)
    for whole in ranges:
        candidates = by_partition.get(whole.partition, ())
        parts = [part for offsets in candidates if (part := offsets.intersection(whole.offsets))]
        end = whole.offsets.start
        for part in parts:
            inside.append(replace(whole, offsets=part))
            if end < part.start:
                outside.append((_part(whole, end, part.start), whole))
            end = part.stop
        if parts and end < whole.offsets.stop:
            outside.append((_part(whole, end, whole.offsets.stop), whole))
    return inside, outside


def _part(whole: CommittedRange, start: int, stop: int) -> CommittedRange:
    return replace(whole, offsets=OffsetRange(whole.partition, start, stop))


def with_counts(
    log: TableLog, snapshot: TableSnapshot, parts: Sequence[tuple[CommittedRange, CommittedRange]]
) -> tuple[CommittedRange, ...]:
    """The parts with their rows counted in the table, and with the gaps that follow from the counts."""
    rows = log.count_rows(snapshot, [part for part, _ in parts])
    return tuple(_with_count(part, whole, count) for (part, whole), count in zip(parts, rows, strict=True))


def _with_count(part: CommittedRange, whole: CommittedRange, rows: int) -> CommittedRange:
    size, counts_records = part.offsets.size, part.partition.broker is None
    gaps: dict[str, int] = {}
    # In 0.7 offsets are bytes: only if all of a range is a gap do its gaps add up to its size.
    if counts_records or sum(whole.gaps.values()) == whole.offsets.size:
        missing = size - rows
        cause = next(iter(whole.gaps)) if len(whole.gaps) == 1 else MIXED
        gaps = {cause: missing} if missing else {}
    size_bytes = whole.bytes * rows // max(1, whole.rows) if counts_records else size
    return replace(part, rows=rows, gaps=gaps, bytes=size_bytes)
