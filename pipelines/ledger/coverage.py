"""What a table covers of each partition, and how that grows: one range without a hole."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.ledger import Coverage


class NotAdjoining(ValueError):
    """Ranges that would leave a hole, or overlap what is covered."""


def is_backfill(offsets: OffsetRange, covered: Coverage) -> bool:
    """Whether the offsets are below those that the table covers of their partition."""
    return offsets.partition in covered and offsets.start < covered[offsets.partition][0]


def is_covered(offsets: OffsetRange, covered: Coverage) -> bool:
    """Whether a table has all of the offsets."""
    start, cursor = covered.get(offsets.partition, (0, -1))
    return start <= offsets.start and offsets.stop <= cursor


def common(tables: Sequence[Coverage]) -> Coverage:
    """The offsets that all of these tables of a topic cover. The next load begins where the first of them ends.

    A table that lacks a partition begins where the first of the others does.
    """
    covered: dict[BrokerPartition, tuple[int, int]] = {}
    for partition in sorted({partition for table in tables for partition in table}):
        own = [table[partition] for table in tables if partition in table]
        starts, cursors = zip(*own, strict=True)
        cursor = min(cursors) if len(own) == len(tables) else min(starts)
        covered[partition] = min(max(starts), cursor), cursor
    return covered


def extended(covered: Coverage, added: Iterable[OffsetRange]) -> Coverage:
    """The coverage after ranges were added: each partition's range grows at its ends, without a hole.

    Raises:
        NotAdjoining: there would be a hole or an overlap.
    """
    # Older ranges are added from the newest down, newer ones from the oldest up: each must touch what is covered by
    # then. So a hole is found even if both its sides are new.
    after = dict(covered)
    ranges = sorted(added)
    for offsets in reversed([offsets for offsets in ranges if is_backfill(offsets, covered)]):
        start, stop = after[offsets.partition]
        _check_adjoins(offsets, "end", offsets.stop, start)
        after[offsets.partition] = (offsets.start, stop)
    for offsets in (offsets for offsets in ranges if not is_backfill(offsets, covered)):
        start, stop = after.get(offsets.partition, (offsets.start, offsets.start))
        _check_adjoins(offsets, "start", offsets.start, stop)
        after[offsets.partition] = (start, offsets.stop)
    return after


def _check_adjoins(offsets: OffsetRange, edge: str, position: int, expected: int) -> None:
    """Check that this edge of the range is where it touches what is covered."""
    if position != expected:
        raise NotAdjoining(f"{offsets} does not {edge} at {expected}")


def begun_earlier(
    planned: Sequence[OffsetRange], before: Coverage, after: Coverage, ends: Mapping[BrokerPartition, int]
) -> Iterator[int]:
    """The numbers of offsets before those that were planned, in partitions that another run has begun meanwhile.

    The run wanted to begin such a partition, for example at the end of its log. If another run began it at an earlier
    offset and has not loaded it to the end, this run also has to load what lies between. The same is true if another
    run began the table without it, so that it begins at offset 0.
    """
    starts = {offsets.partition: offsets.start for offsets in reversed(planned)}
    for partition in starts.keys() & ends.keys() - before.keys():
        cursor = after.get(partition, (0, 0))[1]
        yield max(0, min(starts[partition], ends[partition]) - cursor)
