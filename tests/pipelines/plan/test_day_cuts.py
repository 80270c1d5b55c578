"""Backlogs are cut where days begin, with few questions, whatever the brokers answer."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import NetworkError
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.plan.day_cuts import day_cuts
from pipelines.plan.slices import SliceSizes, cut_slices, sliced

A, B, V07 = BrokerPartition(None, 0), BrokerPartition(None, 1), BrokerPartition(0, 0)
DAY_MS = 86_400_000
TODAY = 20_000
NOW_MS = TODAY * DAY_MS + DAY_MS // 2


class Logs:
    """Answers the offset of a time from the times of the records, which ascend; None stands for no answer."""

    def __init__(self, times_ms: dict[BrokerPartition, list[int] | None]) -> None:
        self.times_ms = times_ms
        self.questions = 0

    def offsets_at(self, topic: str, partitions: Iterable[BrokerPartition], time_ms: int) -> dict[BrokerPartition, Any]:
        """See Cluster."""
        assert topic == "clicks"
        self.questions += 1
        return {partition: self._offset(partition, time_ms) for partition in partitions}

    def _offset(self, partition: BrokerPartition, time_ms: int) -> Any:
        times = self.times_ms[partition]
        return NetworkError("no answer") if times is None else bisect_left(times, time_ms)

    def cuts(self, *wanted: OffsetRange) -> dict[BrokerPartition, tuple[int, ...]]:
        """The cuts of these ranges."""
        cluster = cast("Cluster", Mock(spec=Cluster, offsets_at=self.offsets_at))
        return dict(day_cuts(cluster, "clicks", wanted, now_ms=NOW_MS))


def daily(*days_ago: int) -> list[int]:
    """Ten records on each of these days."""
    return [(TODAY - ago) * DAY_MS + number for ago in days_ago for number in range(10)]


def test_new_records_need_one_question_and_no_cut() -> None:
    logs = Logs({A: daily(0, 0)})
    assert logs.cuts(OffsetRange(A, 5, 20)) == {A: ()}
    assert logs.questions == 1


def test_a_range_over_midnight_is_cut_once() -> None:
    logs = Logs({A: daily(1, 0)})
    assert logs.cuts(OffsetRange(A, 5, 20)) == {A: (10,)}
    assert logs.questions == 2


def test_each_recent_day_begins_a_slice() -> None:
    logs = Logs({A: daily(6, 5, 4, 2, 1, 0), B: daily(3)})
    assert logs.cuts(OffsetRange(A, 0, 60), OffsetRange(B, 0, 10)) == {A: (10, 20, 30, 40, 50), B: ()}
    assert logs.questions < 30


def test_older_records_are_cut_every_few_days() -> None:
    logs = Logs({A: daily(*range(400, 300, -1))})
    [cuts] = logs.cuts(OffsetRange(A, 0, 1000)).values()
    sizes = [stop - start for start, stop in pairwise([0, *cuts, 1000])]
    assert max(sizes) <= 80
    assert len(sizes) <= 30
    assert logs.questions < 60


def test_records_without_times_and_partitions_without_an_answer_get_no_cut() -> None:
    logs = Logs({A: [0] * 10, B: None})
    assert logs.cuts(OffsetRange(A, 0, 10), OffsetRange(B, 0, 10)) == {A: (), B: ()}
    logs = Logs({A: [2**60] * 10})
    assert logs.cuts(OffsetRange(A, 0, 10)) == {A: ()}


def test_a_backfill_and_new_records_are_one_search() -> None:
    logs = Logs({A: daily(3, 2, 1, 0)})
    assert logs.cuts(OffsetRange(A, 0, 5), OffsetRange(A, 35, 40)) == {A: (10, 20, 30)}


def test_logs_of_0_7_and_empty_ranges_are_not_asked() -> None:
    logs = Logs({})
    assert logs.cuts(OffsetRange(V07, 0, 100), OffsetRange(A, 5, 5)) == {}
    assert logs.questions == 0


@given(
    st.lists(st.integers(0, 60).map(lambda days: (TODAY - days) * DAY_MS), max_size=60).map(sorted),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_slices_with_cuts_cover_the_range_without_a_hole(times: list[int], first: int, second: int) -> None:
    wanted = OffsetRange(A, min(first, second), max(first, second))
    cuts = Logs({A: times}).cuts(wanted)
    for order in (iter, reversed):
        pieces = list(sliced(wanted, cuts.get(A, ()), 7, order=order))
        pieces = pieces if order is iter else pieces[::-1]
        assert [piece.start for piece in pieces[1:]] == [piece.stop for piece in pieces[:-1]]
        assert (pieces[0].start, pieces[-1].stop) == (wanted.start, wanted.stop)
        assert max(piece.size for piece in pieces) <= 7


@pytest.mark.parametrize(("run", "expected"), [(None, [10, 10, 10, 10]), (25, [10, 10, 5])])
def test_a_cap_ends_a_run_inside_of_a_day(run: int | None, expected: list[int]) -> None:
    bounds = {A: Bounds(earliest=0, latest=40)}
    sizes = SliceSizes(slice=1000, run=run, cuts={A: (10, 20, 30)})
    slices = cut_slices([OffsetRange(A, 0, 40)], bounds, sizes)
    assert [piece.size for piece in slices] == expected
