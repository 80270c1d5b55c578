"""Slices: they cover what is to be loaded once, and no partition takes from another what that could use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.slices import FULL, Sizes, Slice, cut, sliced

A, B, C = (BrokerPartition(None, number) for number in range(3))
OLD = BrokerPartition(0, 0)
LOG = Bounds(earliest=0, latest=1000)


def test_slices_of_0_7_end_at_cuts_near_the_target() -> None:
    found = sliced(OLD, 0, 290, (40, 90, 130, 250), 100)
    assert [(one.start, one.stop) for one in found] == [(0, 90), (90, 130), (130, 250), (250, 290)]


def test_slices_of_large_records_have_fewer_of_them() -> None:
    found = list(cut({A: (0, 100), B: (0, 100)}, {A: LOG, B: LOG}, Sizes(slice=100, slices={B: 25})))
    assert [one.size for one in found if one.id == A] == [100]
    assert [one.size for one in found if one.id == B] == [25] * 4


def test_a_hot_partition_is_split_in_the_same_step_as_small_ones_are_taken() -> None:  # S10
    small = {BrokerPartition(None, number): (0, 3) for number in range(1, 20)}
    ranges = {A: (0, 1000), **small}
    found = list(cut(ranges, dict.fromkeys(ranges, LOG), Sizes(slice=100, step=8)))
    assert sum(one.id == A for one in found) == 8
    assert {one.id for one in found} == ranges.keys()


def test_what_small_ones_leave_of_a_cap_is_for_the_others() -> None:
    wanted = {A: 10, B: 500, C: 900}
    assert Sizes(slice=1, run=410).shares(wanted) == {A: 10, B: 200, C: 200}
    assert Sizes(slice=1, run=2000).shares(wanted) == wanted
    assert Sizes(slice=100, slices={C: 50}, step=8).shares(wanted) == {A: 10, B: 395, C: 197}


logs = st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True).map(sorted)


@given(logs, st.integers(1, 300))
def test_slices_cover_the_log_once_and_end_at_cuts_only(points: list[int], target: int) -> None:
    earliest, *cuts = points
    latest = points[-1] + 10
    slices = list(sliced(OLD, earliest, latest, cuts, target))
    assert [slices[0].start, *(one.stop for one in slices)] == [*(one.start for one in slices), latest]
    assert slices[0].start == earliest
    assert {one.stop for one in slices} <= {*cuts, latest}


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.integers(1, 20_000))
def test_shares_use_a_cap_up_and_never_pass_it(sizes: list[int], most: int) -> None:
    wanted = {BrokerPartition(None, number): size for number, size in enumerate(sizes)}
    shares = Sizes(slice=100, run=most).shares(wanted)
    assert all(0 <= share <= wanted[id_] for id_, share in shares.items())
    assert min(most, sum(sizes)) - len(sizes) < sum(shares.values()) <= most


@pytest.mark.parametrize("parts", [[10], [5, 5], [3, 3, 4], [1] * 10])
def test_what_is_cut_of_one_full_slice_is_never_more_than_one(parts: list[int]) -> None:
    sizes = Sizes(slice=10)
    slices = [Slice(id=BrokerPartition(None, at), start=0, stop=size) for at, size in enumerate(parts)]
    assert sum(map(sizes.load, slices)) <= FULL
