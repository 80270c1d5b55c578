"""Windows give each range once, and each window has few ranges, even if the history is long."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.verify import range_file
from pipelines.verify.range_file import EARLIEST, LATEST, RangeFile


def contents(times: Iterable[int]) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """The start and the stop of each window, and the loading time and the number of each range in it."""
    with RangeFile() as ranges:
        for number, time in enumerate(times):
            ranges.add(time, 0, number, number + 1, 1, 1, 0, 0)
        return [
            (window.start, window.stop, list(zip(columns.loaded_us.tolist(), columns.starts.tolist(), strict=True)))
            for window, columns in ranges.windows()
        ]


@given(st.lists(st.integers(0, 50), max_size=40))
def test_every_range_is_in_the_one_window_with_its_time(times: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_file, "_RANGES_AT_ONCE", 4)
        windows = contents(times)
    assert sorted(number for _, _, ranges in windows for _, number in ranges) == list(range(len(times)))
    assert all(times[number] == time for _, _, ranges in windows for time, number in ranges)
    assert all(start <= time < stop for start, stop, ranges in windows for time, _ in ranges)
    assert windows[0][0] == EARLIEST
    assert windows[-1][1] == LATEST
    assert [stop for _, stop, _ in windows[:-1]] == [start for start, _, _ in windows[1:]]


# fault U19
@pytest.mark.parametrize("commits", [100, 1_000])
def test_a_window_does_not_grow_with_the_history(commits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten ranges a commit, from the newest to the oldest; the clock of every seventh run is a little wrong."""
    monkeypatch.setattr(range_file, "_RANGES_AT_ONCE", 50)
    times = [10 * commit - (25 if commit % 7 == 0 else 0) for commit in range(commits, 0, -1) for _ in range(10)]
    assert max(len(ranges) for _, _, ranges in contents(times)) <= 100
