"""Slices cover the wanted offsets exactly once, share the caps fairly, and are grouped into tasks of equal work."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import MAX_OFFSET, Bounds, BrokerPartition, OffsetRange
from pipelines.plan.slices import FULL, Order, SliceSizes, cut_slices, group_slices, sliced

A, B, C = (BrokerPartition(None, number) for number in range(3))
V07 = BrokerPartition(0, 0)
LOG = Bounds(earliest=0, latest=1000)


def partition(number: int) -> BrokerPartition:
    return BrokerPartition(None, number)


def test_slices_of_0_7_end_at_cuts_near_the_target() -> None:
    slices = sliced(OffsetRange(V07, 0, 290), (40, 90, 130, 250), 100)
    assert [(offsets.start, offsets.stop) for offsets in slices] == [(0, 90), (90, 130), (130, 250), (250, 290)]


@pytest.mark.parametrize(
    ("edges", "segment_starts", "slices"),
    [
        ((0, 200), (50, 100, 150), [(0, 100), (100, 200)]),
        ((40, 290), (40, 190), [(40, 190), (190, 290)]),
    ],
)
def test_a_slice_of_0_7_may_have_the_target_s_size_and_is_never_empty(
    edges: tuple[int, int], segment_starts: tuple[int, ...], slices: list[tuple[int, int]]
) -> None:
    pieces = sliced(OffsetRange(V07, *edges), segment_starts, 100)
    assert [(offsets.start, offsets.stop) for offsets in pieces] == slices


def test_a_partition_with_large_records_has_slices_with_fewer_records() -> None:
    wanted = [OffsetRange(A, 0, 100), OffsetRange(B, 0, 100)]
    slices = list(cut_slices(wanted, {A: LOG, B: LOG}, SliceSizes(slice=100, slices={B: 25})))
    assert [offsets.size for offsets in slices if offsets.partition == A] == [100]
    assert [offsets.size for offsets in slices if offsets.partition == B] == [25] * 4


def test_one_step_takes_many_slices_of_a_large_partition_and_all_small_partitions() -> None:  # fault S10
    small = [OffsetRange(partition(number), 0, 3) for number in range(1, 20)]
    partitions = {A, *(offsets.partition for offsets in small)}
    wanted = [OffsetRange(A, 0, 1000), *small]
    slices = list(cut_slices(wanted, dict.fromkeys(partitions, LOG), SliceSizes(slice=100, step=8)))
    assert sum(offsets.partition == A for offsets in slices) == 8
    assert {offsets.partition for offsets in slices} == partitions


@pytest.mark.parametrize("id_", [A, V07])
@pytest.mark.parametrize(("order", "expected"), [(iter, [(0, 100), (100, 200)]), (reversed, [(900, 1000), (800, 900)])])
def test_slices_are_taken_from_the_start_or_from_the_end(
    order: Order, expected: list[tuple[int, int]], id_: BrokerPartition
) -> None:
    log = replace(LOG, segment_starts=tuple(range(100, 1000, 100)))
    slices = cut_slices([OffsetRange(id_, 0, 1000)], {id_: log}, SliceSizes(slice=100, run=200), order=order)
    assert [(offsets.start, offsets.stop) for offsets in slices] == expected


@pytest.mark.parametrize("order", [iter, reversed])
def test_a_step_of_a_log_that_claims_2_to_the_60_records_is_cut_at_once(order: Order) -> None:  # fault H01
    claimed = Bounds(earliest=0, latest=MAX_OFFSET)
    sizes = SliceSizes(slice=10, run=MAX_OFFSET, step=32)
    slices = list(cut_slices([OffsetRange(A, 0, MAX_OFFSET)], {A: claimed}, sizes, order=order))
    assert 32 <= len(slices) <= 33
    assert 320 <= sum(offsets.size for offsets in slices) < 330


def test_what_small_partitions_leave_of_a_cap_is_shared_by_the_others() -> None:
    wanted = {A: 10, B: 500, C: 900}
    assert SliceSizes(slice=1, run=410).run_shares(wanted) == {A: 10, B: 200, C: 200}
    assert SliceSizes(slice=1, run=411).run_shares(wanted) == {A: 10, B: 200, C: 201}
    assert SliceSizes(slice=1, run=2000).run_shares(wanted) == wanted
    assert SliceSizes(slice=100, slices={C: 50}, step=8).step_shares(wanted) == {A: 10, B: 395, C: 197}


logs = st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True).map(sorted)


@given(logs, st.integers(1, 300))
def test_slices_cover_the_log_once_and_end_only_where_segments_start(points: list[int], target: int) -> None:
    earliest, *starts = points
    latest = points[-1] + 10
    slices = list(sliced(OffsetRange(V07, earliest, latest), starts, target))
    stops = [offsets.stop for offsets in slices]
    assert [slices[0].start, *stops] == [*(offsets.start for offsets in slices), latest]
    assert slices[0].start == earliest
    assert set(stops) <= {*starts, latest}


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.integers(1, 20_000))
def test_shares_use_a_cap_exactly(sizes: list[int], cap: int) -> None:
    wanted = {partition(number): size for number, size in enumerate(sizes)}
    shares = SliceSizes(slice=100, run=cap).run_shares(wanted)
    assert all(0 <= share <= wanted[id_] for id_, share in shares.items())
    assert sum(shares.values()) == min(cap, sum(sizes))


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.integers(1, 20_000), st.sampled_from([iter, reversed])
)
def test_the_slices_of_a_run_are_the_cap_to_the_record(sizes: list[int], cap: int, order: Order) -> None:  # fault U02
    wanted = [OffsetRange(partition(number), 0, size) for number, size in enumerate(sizes)]
    slices = list(
        cut_slices(wanted, dict.fromkeys(map(partition, range(30)), LOG), SliceSizes(slice=100, run=cap), order=order)
    )
    assert sum(offsets.size for offsets in slices) == min(cap, sum(sizes))
    for whole in wanted:
        of_partition = sorted(offsets for offsets in slices if offsets.partition == whole.partition)
        assert all(before.stop == after.start for before, after in pairwise(of_partition))
        edges = {(0 if order is iter else whole.stop)}
        assert not of_partition or edges & {of_partition[0].start, of_partition[-1].stop}


@pytest.mark.parametrize("parts", [[10], [5, 5], [3, 3, 4], [1] * 10])
def test_the_parts_of_a_full_slice_never_add_up_to_more_than_one(parts: list[int]) -> None:
    sizes = SliceSizes(slice=10)
    slices = [OffsetRange(partition(number), 0, size) for number, size in enumerate(parts)]
    assert sum(map(sizes.load, slices)) <= FULL


def test_slices_that_are_one_full_slice_together_are_one_task() -> None:
    slices = [OffsetRange(partition(number), 0, 25) for number in range(4)]
    assert group_slices(slices, SliceSizes(slice=100)) == [slices]
    assert len(group_slices(slices, SliceSizes(slice=99))) == 4
    assert group_slices([], SliceSizes(slice=100)) == []


def test_work_for_which_spark_would_take_longer_is_one_task() -> None:
    full = [OffsetRange(partition(0), start, start + 100) for start in range(0, 500, 100)]
    sizes = SliceSizes(slice=100, driver=4)
    assert group_slices(full[:4], sizes) == [full[:4]]
    assert len(group_slices(full, sizes)) == 5


def test_slices_without_much_in_them_are_work_too() -> None:
    """Each of them is opened, and its file is written."""
    tiny = [OffsetRange(partition(number), 0, 1) for number in range(3001)]
    sizes = SliceSizes(slice=1_000_000, driver=4)
    assert len(group_slices(tiny[:1200], sizes)) == 1
    assert [len(group_slices(tiny[:count], sizes)) for count in (1201, 3001)] == [5, 11]


def test_slices_of_a_large_partition_have_their_own_tasks_and_small_ones_share() -> None:  # fault S10
    large = [OffsetRange(partition(0), start, start + 100) for start in range(0, 1000, 100)]
    small = [OffsetRange(partition(number), 0, 1) for number in range(1, 1000)]
    tasks = group_slices([*large, *small], SliceSizes(slice=100))
    assert len(tasks) == 20
    assert all(sum(offsets in large for offsets in task) <= 1 for task in tasks)
    assert max(len(task) for task in tasks) <= 101


def test_a_slice_of_few_large_records_is_as_much_work_as_one_of_many_small_records() -> None:
    large = [OffsetRange(partition(0), start, start + 10) for start in range(0, 80, 10)]
    small = [OffsetRange(partition(1), start, start + 1000) for start in range(0, 8000, 1000)]
    tasks = group_slices([*large, *small], SliceSizes(slice=1000, slices={partition(0): 10}))
    assert [len(task) for task in tasks] == [1] * 16


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 2000)), max_size=40),
    st.integers(1, 2000),
)
def test_tasks_hold_every_slice_once_and_none_has_twice_its_share(  # fault S10
    parts: list[tuple[int, int]], target: int
) -> None:
    slices = [OffsetRange(partition(number), 0, size) for number, (size, _) in enumerate(parts)]
    targets = {partition(number): own for number, (_, own) in enumerate(parts) if own % 2}
    sizes = SliceSizes(slice=target, slices=targets)
    tasks = group_slices(slices, sizes)
    assert sorted(offsets for task in tasks for offsets in task) == slices
    loads = [sum(map(sizes.load, task)) for task in tasks]
    largest = max(map(sizes.load, slices), default=0)
    for load in loads:
        assert load <= 2 * max(largest, sum(loads) / len(loads))
