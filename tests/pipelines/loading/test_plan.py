"""The plan: pure, whole, and it stops at what cannot be right."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.plan import Sizes, Slice, into_tasks, plan, plan_backfill
from resources.errors import CursorAheadOfLog, CursorExpired
from resources.settings import Start

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)
PLACE = Where(cluster="main", topic="clicks")
ALL = Sizes(slice=100)


def ranges(slices: Iterable[Slice]) -> list[tuple[BrokerPartition, int, int]]:
    return [(one.id, one.start, one.stop) for one in slices]


def planned(
    covered: dict[BrokerPartition, tuple[int, int]],
    bounds: dict[BrokerPartition, Bounds],
    *,
    start: Start = "earliest",
    sizes: Sizes = ALL,
) -> list[tuple[BrokerPartition, int, int]]:
    return ranges(plan(covered, bounds, start=start, sizes=sizes, where=PLACE).slices)


def test_a_first_load_takes_everything_from_the_earliest() -> None:
    assert planned({}, {A: Bounds(earliest=5, latest=50), B: Bounds(earliest=0, latest=0)}) == [(A, 5, 50)]


def test_a_load_goes_on_at_the_cursor() -> None:
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=9)}
    assert planned({A: (0, 20), B: (0, 9)}, bounds) == [(A, 20, 50)]


def test_start_latest_records_where_it_began() -> None:
    assert planned({}, {A: Bounds(earliest=5, latest=50)}, start="latest") == [(A, 50, 50)]


def test_a_partition_that_appears_later_is_loaded_from_its_beginning() -> None:  # B10
    bounds = {A: Bounds(earliest=0, latest=50), B: Bounds(earliest=0, latest=30)}
    assert planned({A: (50, 50)}, bounds, start="latest") == [(B, 0, 30)]


def test_an_expired_cursor_stops_the_topic_with_the_exact_range() -> None:  # B07
    with pytest.raises(CursorExpired, match=r"offsets \[20, 30\) expired .*partition=0-0 offset=20"):
        planned({A: (0, 20)}, {A: Bounds(earliest=30, latest=50)})


@pytest.mark.parametrize("bounds", [Bounds(earliest=0, latest=19), Bounds(earliest=0, latest=0)])
def test_a_log_that_became_shorter_stops_the_topic(bounds: Bounds) -> None:  # B05, B14
    with pytest.raises(CursorAheadOfLog, match=f"the log ends at {bounds.latest}, before the committed offset 20"):
        planned({A: (0, 20)}, {A: bounds})


def test_bounds_that_make_no_sense_stop_the_topic() -> None:  # B14
    with pytest.raises(CursorAheadOfLog, match=r"\[10, 5\)"):
        planned({}, {A: Bounds(earliest=10, latest=5)})


def test_slices_end_at_cuts_near_the_target() -> None:
    bounds = {A: Bounds(earliest=0, latest=290, cuts=(40, 90, 130, 250))}
    assert planned({}, bounds) == [(A, 0, 90), (A, 90, 130), (A, 130, 250), (A, 250, 290)]


def test_a_capped_run_takes_at_least_one_slice_of_each_partition() -> None:
    log = Bounds(earliest=0, latest=300, cuts=(100, 200))
    assert planned({}, {A: log, B: log}, sizes=Sizes(slice=100, run=2)) == [(A, 0, 100), (B, 0, 100)]
    assert planned({}, {A: log}, sizes=Sizes(slice=100, run=150)) == [(A, 0, 100), (A, 100, 200)]


def test_a_backfill_takes_what_lies_before_and_a_capped_one_its_newest() -> None:
    log = Bounds(earliest=0, latest=400, cuts=(100, 200, 300))
    covered = {A: (300, 400)}
    assert ranges(plan_backfill(covered, {A: log}, sizes=ALL)) == [(A, 0, 100), (A, 100, 200), (A, 200, 300)]
    assert ranges(plan_backfill(covered, {A: log}, sizes=Sizes(slice=100, run=1))) == [(A, 200, 300)]
    assert plan_backfill({A: (0, 400)}, {A: log}, sizes=ALL) == []
    assert plan_backfill({}, {A: log}, sizes=ALL) == []


logs = st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True).map(sorted)


@given(logs, st.integers(1, 300))
def test_slices_cover_the_log_once_and_end_at_cuts_only(points: list[int], target: int) -> None:
    earliest, *cuts = points
    latest = points[-1] + 10
    slices = planned({}, {A: Bounds(earliest=earliest, latest=latest, cuts=tuple(cuts))}, sizes=Sizes(slice=target))
    assert [slices[0][1], *(stop for _, _, stop in slices)] == [*(start for _, start, _ in slices), latest]
    assert slices[0][1] == earliest
    assert {stop for _, _, stop in slices} <= {*cuts, latest}


@given(st.lists(st.integers(1, 1000), max_size=40), st.integers(1, 2000), st.integers(1, 8))
def test_tasks_hold_every_slice_once_and_are_balanced(sizes: list[int], target: int, least: int) -> None:  # S10
    slices = [Slice(id=BrokerPartition(0, number), start=0, stop=size) for number, size in enumerate(sizes)]
    tasks = into_tasks(slices, size=target, at_least=least)
    assert sorted(one for task in tasks for one in task) == sorted(slices)
    assert len(tasks) <= max(len(slices), 0)
    loads = [sum(one.size for one in task) for task in tasks]
    if loads:
        assert max(loads) - min(loads) <= max(sizes)
