"""Newer ranges replace an older range only if they contain all of it, except what a later cut took back."""

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import MAX_PROBLEMS, Extent, _cover, incarnations
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity

A = BrokerPartition(None, 0)


@pytest.mark.parametrize(
    ("newer", "limit", "is_replaced"),
    [
        ([(0, 10)], None, True),
        ([(0, 5), (5, 10)], None, True),
        ([(0, 4), (5, 10)], None, False),
        ([(0, 9)], None, False),
        ([(0, 9)], 9, True),
        ([(0, 8)], 9, False),
        ([(0, 10)], 20, True),
        ([(0, 9)], 20, False),
        ([], 0, True),
    ],
)
def test_newer_ranges_replace_an_older_one_below_the_limit(
    newer: list[tuple[int, int]], limit: int | None, is_replaced: bool
) -> None:
    extents = [Extent(start, stop, OffsetRange(A, start, stop)) for start, stop in newer]
    assert _cover(extents, CommittedRange(offsets=OffsetRange(A, 0, 10)), limit) == is_replaced


def entry_of(topic: TopicIdentity, number: int, committed: CommittedRange) -> LedgerEntry:
    state = TableState(topic=topic, covered={A: (committed.offsets.start, committed.offsets.stop)})
    return LedgerEntry(commit="c", run="r", kind=CommitKind.LOAD, sequence=number, ranges=(committed,), state=state)


def test_an_empty_range_records_where_a_partition_begins_and_is_no_problem() -> None:
    empty, loaded = (CommittedRange(offsets=OffsetRange(A, 5, stop)) for stop in (5, 10))
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    newest_first = [(number, entry_of(topic, number, own)) for number, own in ((2, loaded), (1, empty))]
    [incarnation] = incarnations(newest_first)
    assert (incarnation.ranges, incarnation.problems) == ((empty, loaded), ())


def test_only_the_first_problems_are_reported() -> None:
    backwards = [CommittedRange(offsets=OffsetRange(A, stop + 1, stop)) for stop in range(MAX_PROBLEMS + 5)]
    entry = LedgerEntry(
        commit="c",
        run="r",
        kind=CommitKind.LOAD,
        sequence=1,
        ranges=tuple(backwards),
        state=TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"), covered={A: (0, 10)}),
    )
    [incarnation] = incarnations([(1, entry)])
    assert len(incarnation.problems) == MAX_PROBLEMS
    assert incarnation.problems[0] == "partition 0 [1, 0) ends before it begins"
