"""Of the files of a table, only the row groups are read that may have rows of a window of loading times."""

from collections.abc import Sequence
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.loading.complete_files import _may_have_rows
from pipelines.loading.range_file import Window
from pipelines.loading.rows import FILE_SCHEMA

TIMES = st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=4)
EDGES = st.none() | st.integers(0, 6)


def row_group(times_us: Sequence[int | None], *, with_statistics: bool = True) -> pq.RowGroupMetaData:
    """A row group whose rows have these loading times."""
    file = BytesIO()
    times = pa.array(times_us, FILE_SCHEMA.field("loaded_at").type)
    pq.write_table(pa.table({"loaded_at": times}), file, write_statistics=with_statistics)
    return pq.ParquetFile(file).metadata.row_group(0)


@given(times_us=TIMES, start=EDGES, stop=EDGES)
def test_a_row_group_is_read_if_its_times_overlap_the_window(
    times_us: list[int | None], start: int | None, stop: int | None
) -> None:
    """Rows without a time belong to the first window. A group without any time has no bounds, so it is always read."""
    known = [time for time in times_us if time is not None]
    overlaps = not known or ((start is None or max(known) >= start) and (stop is None or min(known) < stop))
    has_rows_without_time = start is None and None in times_us
    is_read = _may_have_rows(row_group(times_us), "loaded_at", Window(start, stop))
    assert is_read == (overlaps or has_rows_without_time)


@pytest.mark.parametrize("name", ["loaded_at", "another column"])
def test_a_row_group_without_statistics_is_read(name: str) -> None:
    assert _may_have_rows(row_group([3], with_statistics=name != "loaded_at"), name, Window(8, 9))
