"""Splitting committed ranges: which parts of them are inside of given offsets, and which parts remain outside."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.table.table_store import TableSnapshot, TableStore

MIXED = "mixed"
"""The cause of the gaps in a part of a range whose gaps have several causes: the ledger does not say which is where.

It says so of each ExactCause: these gaps are counted in their sets, and never become mixed.
"""


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
        inside += (replace(whole, offsets=part) for part in parts)
        # What remains lies between the parts: from the end of each to the start of the next.
        starts = [whole.offsets.start, *(part.stop for part in parts)]
        stops = [*(part.start for part in parts), whole.offsets.stop]
        for start, stop in zip(starts, stops, strict=True) if parts else ():
            if start < stop:
                outside.append((replace(whole, offsets=replace(whole.offsets, start=start, stop=stop)), whole))
    return inside, outside


def with_counts(
    table: TableStore, snapshot: TableSnapshot, parts: Sequence[tuple[CommittedRange, CommittedRange]]
) -> tuple[CommittedRange, ...]:
    """The parts with their rows counted in the table, and with the gaps that follow from the counts."""
    rows = table.count_rows(snapshot, [part for part, _ in parts])
    sets = [table.exact_sets(part) if part.exact else {} for part, _ in parts]
    return tuple(
        _with_count(part, whole, count, {cause: offsets.count for cause, offsets in exact.items()})
        for (part, whole), count, exact in zip(parts, rows, sets, strict=True)
    )


def _with_count(
    part: CommittedRange, whole: CommittedRange, rows: int, exact: Mapping[ExactCause, int]
) -> CommittedRange:
    size, counts_records = part.offsets.size, part.partition.broker is None
    gaps: dict[str, int] = {cause: count for cause, count in exact.items() if count}
    visible = whole.visible_gaps
    # In 0.7 offsets are bytes: only if all of a range is a gap do its gaps add up to its size.
    if counts_records or sum(visible.values()) == whole.offsets.size:
        missing = size - rows - sum(gaps.values() if counts_records else ())
        cause = next(iter(visible)) if len(visible) == 1 else MIXED
        gaps |= {cause: missing} if missing else {}
    size_bytes = whole.bytes * rows // max(1, whole.rows) if counts_records else size
    stored = {cause: whole.exact[cause] for cause, count in exact.items() if count}
    return replace(part, rows=rows, gaps=gaps, bytes=size_bytes, exact=stored)
