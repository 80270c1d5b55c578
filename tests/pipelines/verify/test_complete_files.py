"""A reader of a window of loading times opens only the files, and reads only the row groups, that may have its rows."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.delta.open_version import DeltaVersion
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.verify.complete_files import CompleteFiles, _in_window, _may_have_rows
from pipelines.verify.range_file import EARLIEST, LATEST, Window

if TYPE_CHECKING:
    from tests.small_table import SmallTable

TIMES = st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=4)
EDGES = st.none() | st.integers(0, 6)


def footer_of(times_us: Sequence[int | None], *, with_statistics: bool = True) -> pq.FileMetaData:
    """The footer of a file with one row group, whose rows have these loading times."""
    file = BytesIO()
    times = pa.array(times_us, FILE_SCHEMA.field("loaded_at").type)
    pq.write_table(pa.table({"loaded_at": times}), file, write_statistics=with_statistics)
    return pq.ParquetFile(file).metadata


def between(start: int | None, stop: int | None) -> Window:
    """The window with these edges; None stands for no edge."""
    return Window(EARLIEST if start is None else start, LATEST if stop is None else stop)


@given(times_us=TIMES, start=EDGES, stop=EDGES)
def test_a_row_group_is_read_if_its_times_overlap_the_window(
    times_us: list[int | None], start: int | None, stop: int | None
) -> None:
    """Rows without a time belong to the first window. A group without any time has no bounds, so it is always read."""
    known = [time for time in times_us if time is not None]
    overlaps = not known or ((start is None or max(known) >= start) and (stop is None or min(known) < stop))
    has_rows_without_time = start is None and None in times_us
    is_read = _may_have_rows(footer_of(times_us), 0, "loaded_at", between(start, stop))
    assert is_read == (overlaps or has_rows_without_time)


@pytest.mark.parametrize("name", ["loaded_at", "another column"])
def test_a_row_group_without_statistics_is_read(name: str) -> None:
    assert _may_have_rows(footer_of([3], with_statistics=name != "loaded_at"), 0, name, Window(8, 9))


@given(times_us=TIMES, start=EDGES, stop=EDGES)
def test_rows_are_in_the_window_of_their_time_or_without_one_in_the_first(
    times_us: list[int | None], start: int | None, stop: int | None
) -> None:
    inside = [
        start is None if time is None else (start is None or start <= time) and (stop is None or time < stop)
        for time in times_us
    ]
    assert _in_window(pa.array(times_us, pa.int64()), between(start, stop)).to_pylist() == inside


@pytest.mark.parametrize(
    ("start", "stop", "numbers"),
    [(None, None, [0, 1, 2]), (1_500, 2_500, [1]), (None, 1_500, [0]), (2_500, None, [2]), (3_500, None, [])],
)
def test_only_files_with_bounds_in_the_window_are_read(
    small: "SmallTable", start: int | None, stop: int | None, numbers: list[int]
) -> None:
    paths = []
    for number in range(3):
        small._loaded_at = (number + 1) * 1_000_000
        facts = small.write(number * 10, number * 10 + 10)
        small.commit(facts)
        paths.append(facts.files[0].path)
    window = between(start and start * 1_000, stop and stop * 1_000)
    read = CompleteFiles(small.table, DeltaVersion.of_handle(small.handle()))._paths_in(window)
    assert sorted(read) == sorted(str(paths[number]) for number in numbers)
