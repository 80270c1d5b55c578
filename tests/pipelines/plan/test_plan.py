"""The plan covers everything that is new, except in partitions whose cursor and log are inconsistent."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.ledger import Coverage, TableState, TopicIdentity
from pipelines.plan.plan import Plan, RunTarget, plan, plan_backfill
from pipelines.plan.slices import SliceSizes
from pipelines.plan.window import OffsetWindow
from resources.errors import CursorAheadOfLog, CursorExpired

A, B, C = BrokerPartition(0, 0), BrokerPartition(0, 1), BrokerPartition(0, 2)
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")
ALL = SliceSizes(slice=100)

Ranges = list[tuple[BrokerPartition, int, int]]
At = Mapping[BrokerPartition, int]


def ranges(slices: Iterable[OffsetRange]) -> Ranges:
    return [(offsets.partition, offsets.start, offsets.stop) for offsets in slices]


def plan_of(
    covered: Coverage,
    bounds: Mapping[BrokerPartition, Bounds],
    *,
    begins: At | None = None,
    ends: At | None = None,
    sizes: SliceSizes = ALL,
    **options: bool,
) -> Plan:
    """The plan; by default a new table begins at the earliest offsets, and a partition that comes later at 0."""
    latest = {id_: bound.latest for id_, bound in bounds.items()}
    first = {id_: 0 if covered else bound.earliest for id_, bound in bounds.items() if id_ not in covered}
    window = OffsetWindow(begins=begins or first, ends=ends or latest)
    return plan(TableState(topic=CLICKS, covered=covered), bounds, window, sizes, **options)


def planned(covered: Coverage, bounds: Mapping[BrokerPartition, Bounds], **options: Any) -> Ranges:
    result = plan_of(covered, bounds, **options)
    assert not result.errors
    return ranges(result.slices)


def test_a_first_load_takes_everything_from_the_earliest() -> None:
    bounds = {A: Bounds(earliest=5, latest=50), B: Bounds(earliest=0, latest=0)}
    assert planned({}, bounds) == [(A, 5, 5), (A, 5, 50)]


def test_nothing_is_skipped_if_nothing_has_expired() -> None:
    plan_at_start = plan_of({A: (0, 20)}, {A: Bounds(earliest=20, latest=50)}, skip_expired=True)
    assert (plan_at_start.skipped, ranges(plan_at_start.slices)) == ((), [(A, 20, 50)])


@pytest.mark.parametrize(("cap", "total"), [(None, 15), (12, 12), (99, 15)])
def test_a_run_with_more_to_load_keeps_its_cap(cap: int | None, total: int) -> None:
    target = RunTarget(window=OffsetWindow(begins={}, ends={A: 50}), total=10, cap=cap)
    assert target.after(Plan(slices=(OffsetRange(A, 0, 5),)), more=5).total == total


def test_a_load_continues_at_the_cursor() -> None:
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=9)}
    assert planned({A: (0, 20), B: (0, 9)}, bounds) == [(A, 20, 50)]


def test_nothing_beyond_the_end_of_the_log_is_planned() -> None:  # fault G08
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=9)}
    assert planned({A: (0, 20)}, bounds, ends={A: 80, B: 10}) == [(A, 20, 50), (B, 0, 9)]


def test_a_new_table_records_where_each_partition_begins() -> None:  # fault P01
    bounds = {A: Bounds(earliest=5, latest=50), B: Bounds(earliest=0, latest=9), C: Bounds(earliest=7, latest=7)}
    assert planned({}, bounds, begins={A: 50, B: 4, C: 7}) == [(A, 50, 50), (B, 4, 4), (B, 4, 9), (C, 7, 7)]


def test_one_empty_slice_records_that_a_table_of_empty_partitions_has_begun() -> None:  # faults P01, S10
    empty = Bounds(earliest=0, latest=0)
    assert planned({}, {A: Bounds(earliest=5, latest=5), B: empty}) == [(A, 5, 5)]
    assert planned({}, {B: empty, A: empty}) == [(A, 0, 0)]
    assert planned({A: (0, 0)}, {B: empty, A: empty}) == []


def test_offsets_before_the_start_of_a_new_table_are_never_loaded_later() -> None:
    log = {A: Bounds(earliest=0, latest=50)}
    assert planned({}, log, begins={A: 20}, ends={A: 10}) == [(A, 20, 20)]


def test_no_offset_from_a_window_s_end_on_is_planned() -> None:
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=50)}
    assert planned({A: (0, 20), B: (0, 40)}, bounds, ends={A: 30, B: 30}) == [(A, 20, 30)]


def test_a_partition_without_an_end_waits_but_its_cursor_is_checked() -> None:  # fault B07
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=30, latest=50)}
    assert planned({A: (0, 20), B: (0, 40)}, bounds, ends={A: 50}) == [(A, 20, 50)]
    assert plan_of({A: (0, 20), B: (0, 20)}, bounds, ends={A: 50}).errors.keys() == {B}


def test_a_partition_whose_first_offset_is_not_known_waits() -> None:  # fault P02
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=30)}
    assert planned({A: (50, 50)}, bounds, begins={C: 0}) == []


@pytest.mark.parametrize("begins", [{}, {A: 50, B: 0}])
def test_a_partition_that_appears_later_is_loaded_from_its_beginning(begins: At) -> None:  # fault B10
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=30)}
    assert planned({A: (50, 50)}, bounds, begins=begins) == [(B, 0, 30)]


def test_records_that_a_later_partition_lost_before_its_first_load_are_expired() -> None:  # faults P01, B07
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=60, latest=100)}
    refused = plan_of({A: (50, 50)}, bounds)
    assert str(refused.errors[B]).startswith("offsets [0, 60) expired before they were loaded")
    skipping = plan_of({A: (50, 50)}, bounds, skip_expired=True)
    assert (ranges(skipping.skipped), ranges(skipping.slices)) == ([(B, 0, 60)], [(B, 60, 60), (B, 60, 100)])


@pytest.mark.parametrize("end", [50, 10])
def test_an_expired_cursor_stops_its_partition_alone_with_the_exact_range(end: int) -> None:  # faults B07, N07
    bounds = {A: Bounds(earliest=30, latest=50), B: Bounds(earliest=0, latest=50)}
    result = plan_of({A: (0, 20), B: (0, 20)}, bounds, ends={A: end, B: 50})
    assert ranges(result.slices) == [(B, 20, 50)]
    assert isinstance(result.errors[A], CursorExpired)
    assert re.search(r"offsets \[20, 30\) expired .*partition=0-0 offset=20", str(result.errors[A]))


@pytest.mark.parametrize("bounds", [Bounds(earliest=0, latest=19), Bounds(earliest=0, latest=0)])
@pytest.mark.parametrize("end", [20, 10])
def test_a_log_that_became_shorter_stops_its_partition_alone(bounds: Bounds, end: int) -> None:  # faults B05, B14, N07
    both = {A: bounds, B: Bounds(earliest=0, latest=50)}
    result = plan_of({A: (0, 20), B: (0, 20)}, both, ends={A: end, B: 50})
    assert ranges(result.slices) == [(B, 20, 50)]
    assert isinstance(result.errors[A], CursorAheadOfLog)
    assert f"the log ends at {bounds.latest}, before the committed offset 20" in str(result.errors[A])


@pytest.mark.parametrize("skip_expired", [False, True])
def test_impossible_bounds_stop_the_partition(skip_expired: bool) -> None:  # fault B14
    result = plan_of({A: (0, 5)}, {A: Bounds(earliest=10, latest=5)}, skip_expired=skip_expired)
    assert "[10, 5)" in str(result.errors[A])
    assert (result.slices, result.skipped) == ((), ())


def test_a_capped_run_of_0_7_ends_after_the_message_that_reaches_the_cap() -> None:  # fault U02
    log = Bounds(earliest=0, latest=300, segment_starts=(100, 200))
    state, window = TableState(topic=CLICKS, covered={A: (0, 0), B: (0, 0)}), OffsetWindow(ends={A: 300, B: 300})
    step = plan(state, {A: log, B: log}, window, SliceSizes(slice=100, run=250))
    inside = frozenset({OffsetRange(A, 100, 125), OffsetRange(B, 100, 125)})
    assert (step.size, step.to_message) == (250, inside)
    assert plan(state, {A: log, B: log}, window, SliceSizes(slice=100, run=200)).to_message == frozenset()


def test_a_backfill_plans_the_older_offsets_and_a_capped_one_the_newest_of_them() -> None:
    log = Bounds(earliest=0, latest=400, segment_starts=(100, 200, 300))
    covered = {A: (300, 400)}

    def filled(covered: Coverage, starts: At, sizes: SliceSizes = ALL) -> Ranges:
        return ranges(plan_backfill(covered, {A: log}, OffsetWindow(starts=starts, ends={}), sizes))

    assert filled(covered, {A: 0}) == [(A, 0, 100), (A, 100, 200), (A, 200, 300)]
    assert filled(covered, {A: 100}) == [(A, 100, 200), (A, 200, 300)]
    assert filled(covered, {A: 0}, SliceSizes(slice=100, run=1)) == [(A, 200, 300)]
    assert filled({A: (0, 400)}, {A: 0}) == []
    assert filled(covered, {}) == []
    assert filled({}, {A: 0}) == []


offsets = st.integers(0, 60)


@st.composite
def windows(draw: st.DrawFn) -> tuple[Bounds, tuple[int, int] | None, int, int]:
    """A log, what of it is covered, and where a window of it begins and ends."""
    earliest, latest = sorted(draw(st.lists(offsets, min_size=2, max_size=2)))
    inside = st.integers(earliest, latest)
    covered = draw(st.none() | st.tuples(inside, inside).map(lambda pair: (min(pair), max(pair))))
    return Bounds(earliest=earliest, latest=latest), covered, draw(inside), draw(inside)


@given(windows(), st.integers(1, 20), st.none() | st.integers(1, 40))
def test_a_window_and_the_next_run_together_load_everything_without_a_hole(
    window: tuple[Bounds, tuple[int, int] | None, int, int], target: int, most: int | None
) -> None:
    id_ = BrokerPartition(None, 0)
    log, before, since, until = window
    span, bounds, sizes = before, {id_: log}, SliceSizes(slice=target, run=most)

    def step(starts: At, end: int) -> bool:
        nonlocal span
        covered = {id_: span} if span else {}
        window = OffsetWindow(starts=starts, begins={id_: starts.get(id_, log.earliest)}, ends={id_: end})
        older = plan_backfill(covered, bounds, window, sizes)
        newer = plan(TableState(topic=CLICKS, covered=covered), bounds, window, sizes).slices
        for offsets in (*reversed(older), *newer):
            if span is None:
                span = (offsets.start, offsets.start)
            assert offsets.stop == span[0] or offsets.start == span[1]
            span = (min(span[0], offsets.start), max(span[1], offsets.stop))
        return any(offsets.size for offsets in (*older, *newer))

    while step({id_: since}, until):
        assert span is not None
    assert span is not None
    assert span[0] == (since if before is None else min(since, before[0]))
    assert span[1] == max(until, since if before is None else before[1])
    first = span[0]
    while step({}, log.latest):
        pass
    assert span == (first, log.latest)
