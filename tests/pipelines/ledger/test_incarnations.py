"""Newer ranges replace an older range only if they contain all of it, except what a later cut took back."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import MAX_PROBLEMS, Extent, RangeFold, _cover, incarnations, ranges_of
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity

A = BrokerPartition(None, 0)
TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="7")


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


def entries_of(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, LedgerEntry]]:
    """An entry for each range, the newest first. Each covers all that was loaded by then."""
    entries = []
    for number, (start, stop) in enumerate(ranges, 1):
        entry = entry_of(TOPIC, number, CommittedRange(offsets=OffsetRange(A, start, stop)))
        loaded = ranges[:number]
        covered = {A: (min(own[0] for own in loaded), max(own[1] for own in loaded))}
        entries.append((number, replace(entry, state=replace(entry.state, covered=covered))))
    return entries[::-1]


def runs_of(offsets: set[int]) -> list[tuple[int, int]]:
    """The offsets as ranges, in order."""
    starts = [offset for offset in sorted(offsets) if offset - 1 not in offsets]
    stops = [offset + 1 for offset in sorted(offsets) if offset + 1 not in offsets]
    return list(zip(starts, stops, strict=True))


RANGES = st.tuples(st.integers(0, 12), st.integers(1, 5)).map(lambda own: (own[0], own[0] + own[1]))


@given(st.lists(RANGES, min_size=1, max_size=8))
def test_each_offset_has_the_newest_range_that_was_loaded_there(loaded: list[tuple[int, int]]) -> None:
    offsets, counting, contradicting = set[int](), list[tuple[int, int]](), list[str]()
    for start, stop in reversed(loaded):
        own = set(range(start, stop))
        if not own & offsets:
            counting.append((start, stop))
            offsets |= own
        elif not own <= offsets:
            contradicting.append(f"a later commit replaces only a part of partition 0 [{start}, {stop})")
    fold = RangeFold()
    result = [own.offsets for _, own in fold.effective(entries_of(loaded))]
    assert [(own.start, own.stop) for own in result] == counting
    assert fold.problems[TOPIC] == contradicting
    extents = fold.extents(TOPIC)[A]
    assert [(extent.start, extent.stop) for extent in extents] == runs_of(offsets)
    assert [(extent.first.start, extent.first.stop) for extent in extents] == [
        next(own for own in sorted(counting) if own[0] == start) for start, _ in runs_of(offsets)
    ]


def test_a_rewind_takes_back_the_entries_after_its_target() -> None:
    entries = entries_of([(0, 5), (5, 8)])
    [_, (_, first)] = entries
    cut = replace(first, kind=CommitKind.CUT, sequence=3, ranges=())
    rewind = replace(entries[0][1], kind=CommitKind.REWIND, sequence=4, ranges=(), target=2)
    for newer, stops in (([(3, cut)], [5]), ([(4, rewind), (3, cut)], [5, 8])):
        assert [own.offsets.stop for own in ranges_of([*newer, *entries], TOPIC)] == stops
    assert ranges_of(entries, replace(TOPIC, incarnation="8")) == ()


def test_what_was_taken_back_does_not_count_again_where_a_later_load_leaves_a_hole() -> None:
    entries = entries_of([(0, 5), (5, 10)])
    cut = replace(entries[1][1], kind=CommitKind.CUT, sequence=3, ranges=())
    later = entry_of(TOPIC, 4, CommittedRange(offsets=OffsetRange(A, 11, 12)))
    ranges = ranges_of([(4, later), (3, cut), *entries], TOPIC)
    assert [(own.offsets.start, own.offsets.stop) for own in ranges] == [(0, 5), (11, 12)]


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
