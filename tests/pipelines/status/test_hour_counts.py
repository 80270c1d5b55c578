"""The rows of hours are counted exactly, from no other files than those that can have some."""

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from pipelines.delta.open_version import DeltaVersion
from pipelines.layout.layout import EVENT_DAY, RAW, TYPED, TableLayout
from pipelines.status import hour_counts as counting
from pipelines.status.hour_counts import hour_counts
from pipelines.table.table_store import TableSnapshot
from tests.timed_table import DAY_MS, HOUR_MS, TimedTable

FIRST_MS = 1_767_225_600_000  # 2026-01-01 in UTC
HOURS = [FIRST_MS + hour * HOUR_MS for hour in range(4)]
TIME = pa.timestamp("us", tz="UTC")


def at(*hours: float) -> list[int | None]:
    """The times of these hours after FIRST_MS."""
    return [FIRST_MS + round(hour * HOUR_MS) for hour in hours]


@pytest.fixture
def timed(tmp_path: Path) -> TimedTable:
    return TimedTable(tmp_path / "lake")


def counted(timed: TimedTable, edges: Sequence[int], column: str = "timestamp", **options: Any) -> dict[int, int]:
    """The counts at the newest version, also if another program wrote it."""
    handle = timed.handle()
    opened = DeltaVersion.of_handle(handle)
    snapshot = TableSnapshot(version=handle.version(), entry=None, layout=opened.layout, open_table=opened)
    return dict(hour_counts(timed.table, snapshot, column, edges, **options))


def files_read(timed: TimedTable, edges: Sequence[int], column: str = "timestamp", **options: Any) -> int:
    """How many files are opened to count."""
    with patch.object(pq, "ParquetFile", side_effect=pq.ParquetFile) as opened:
        counted(timed, edges, column, **options)
    return int(opened.call_count)


def write(timed: TimedTable, rows: pa.Table, layout: TableLayout = TYPED, **options: Any) -> None:
    """Replace the table by one that another program writes, with the columns of a layout and these rows."""
    shutil.rmtree(timed.uri)
    more = [rows.field(name) for name in rows.column_names if name not in layout.table_schema.names]
    schema = pa.schema([*layout.table_schema, *more])
    columns = [
        rows.column(field.name) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    write_deltalake(timed.uri, pa.Table.from_arrays(columns, schema=schema), **options)


def test_each_window_has_the_rows_from_its_start_to_before_its_end(timed: TimedTable) -> None:
    timed.load_at([*at(-0.1, 0, 0.5, 0.9999, 1, 2.5, 3, 7), None])
    assert counted(timed, HOURS) == {HOURS[0]: 3, HOURS[1]: 1, HOURS[2]: 1}
    assert counted(timed, [HOURS[0], HOURS[3]]) == {HOURS[0]: 5}
    assert counted(timed, HOURS, only=[HOURS[2]]) == {HOURS[2]: 1}
    assert counted(timed, []) == counted(timed, HOURS[:1]) == counted(timed, HOURS, only=[]) == {}


def test_only_files_with_rows_of_wanted_windows_are_read(timed: TimedTable) -> None:
    for hour in range(6):
        timed.load_at(at(hour, hour + 0.99))
    timed.load_at([None])
    assert files_read(timed, HOURS) == 3
    assert files_read(timed, HOURS, only=[HOURS[0], HOURS[2]]) == 2
    assert files_read(timed, [FIRST_MS - DAY_MS, FIRST_MS - HOUR_MS]) == 0
    assert counted(timed, HOURS) == dict.fromkeys(HOURS[:3], 2)


def test_an_older_version_is_counted_as_it_was(timed: TimedTable) -> None:
    timed.load_at(at(0))
    before = timed.table.snapshot()
    timed.load_at(at(0, 0))
    assert hour_counts(timed.table, before, "timestamp", HOURS[:2]) == {HOURS[0]: 1}
    assert counted(timed, HOURS[:2]) == {HOURS[0]: 3}


@pytest.mark.parametrize(("layout", "files"), [(RAW, 3), (RAW.partitioned_by(EVENT_DAY), 1)])
def test_a_file_without_statistics_is_read_unless_its_folder_is_another_day(
    timed: TimedTable, layout: TableLayout, files: int
) -> None:
    times = pa.array(at(1, 25, 26, 49), pa.int64()).cast(pa.timestamp("ms")).cast(TIME)
    rows = pa.table({"timestamp": times, layout.partition_column: times.cast(pa.date32())})
    no_statistics = {"delta.dataSkippingNumIndexedCols": "0"}
    write(timed, rows, layout, partition_by=[layout.partition_column], configuration=no_statistics)
    assert "min.timestamp" not in pa.table(timed.handle().get_add_actions(flatten=True)).column_names
    day = [FIRST_MS + DAY_MS, FIRST_MS + 2 * DAY_MS]
    assert counted(timed, day) == {day[0]: 2}
    assert files_read(timed, day) == files


@pytest.mark.parametrize(
    ("kind", "per_ms"),
    [(pa.int64(), 1), (TIME, 1000), (pa.date32(), None), (pa.string(), None)],
)
def test_the_event_time_can_be_a_column_of_a_typed_table(
    timed: TimedTable, kind: pa.DataType, per_ms: int | None
) -> None:
    times = at(0, 0.9, 1) if per_ms else at(0, 0, 24)
    column = pa.array([time * per_ms for time in times if time] if per_ms else times, pa.int64())
    values = column if per_ms else column.cast(pa.timestamp("ms"))
    write(timed, pa.table({"created": values.cast(kind)}))
    rows = 0 if kind == pa.string() else 2
    assert counted(timed, HOURS[:2], "created") == {HOURS[0]: rows}
    assert counted(timed, HOURS[:2], "other") == {HOURS[0]: 0}
    assert files_read(timed, HOURS[:2], "other") == 0


def test_a_column_with_a_dot_in_its_name_is_not_the_field_of_another_column(timed: TimedTable) -> None:  # fault A08
    late, early = pa.array(at(0, 1), pa.int64()), pa.array([{"b": 1}, {"b": 2}], pa.struct({"b": pa.int64()}))
    write(timed, pa.table({"a": early, "a.b": late}))
    assert counted(timed, HOURS[:3], "a.b") == {HOURS[0]: 1, HOURS[1]: 1}
    path = Path(timed.uri, "file.parquet")
    pq.write_table(pa.table({"a": early, "a.b": late}), path, row_group_size=1)
    file, windows = pq.ParquetFile(path), counting._Windows(HOURS[:2], None)
    assert [times.to_pylist() for times, _ in counting._times_of(file, "a.b", windows)] == [at(0)]


def test_row_groups_without_rows_of_the_windows_are_skipped(timed: TimedTable) -> None:
    hours = pa.array(at(*range(50)), pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    facts = timed.write_at(at(0))
    path = Path(timed.uri, facts.files[0].path)
    pq.write_table(pa.table({"timestamp": hours}), path, row_group_size=1)
    file = pq.ParquetFile(path)
    windows = counting._Windows(HOURS, None)
    assert [number for number in range(50) if counting._may_have_rows(file, number, "timestamp", windows)] == [0, 1, 2]
    assert [rows for times, _ in counting._times_of(file, "timestamp", windows) for rows in [len(times)]] == [3]


def test_row_groups_without_statistics_are_read_and_files_older_than_the_column_have_no_times(
    timed: TimedTable,
) -> None:
    hours = pa.array(at(0, 1, 9), pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    path = Path(timed.uri, str(timed.write_at(at(0)).files[0].path))
    pq.write_table(pa.table({"timestamp": hours}), path, row_group_size=1, write_statistics=False)
    file, windows = pq.ParquetFile(path), counting._Windows(HOURS, None)
    assert [len(times) for times, _ in counting._times_of(file, "timestamp", windows)] == [3]
    assert list(counting._times_of(file, "a later column", windows)) == []


def test_the_first_time_comes_from_statistics_or_from_the_files_with_earlier_times_too(timed: TimedTable) -> None:
    timed.load_at(at(-1, 2, 3))
    timed.load_at(at(2.5, 4))

    def first(column: str, since_ms: int) -> int | None:
        return counting.first_time_ms(timed.table, timed.table.snapshot(), column, since_ms)

    assert first("timestamp", FIRST_MS - HOUR_MS) == FIRST_MS - HOUR_MS
    assert first("timestamp", FIRST_MS) == HOURS[2]
    assert first("timestamp", FIRST_MS + 9 * HOUR_MS) is None
    assert first("a later column", FIRST_MS) is None


@given(
    bounds=st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), max_size=6),
    edges=st.lists(st.integers(-9, 9), unique=True, max_size=5).map(sorted),
    only=st.none() | st.sets(st.integers(-9, 9)),
)
def test_a_file_is_read_exactly_if_its_bounds_touch_a_wanted_window(
    bounds: list[tuple[int, int]], edges: list[int], only: set[int] | None
) -> None:
    wanted = None if only is None else only & {*edges[:-1]}
    windows = counting._Windows(edges, wanted)
    pairs = [(a, b) for a, b in itertools.pairwise(edges) if wanted is None or a in wanted]
    arrays = [pa.array(times, pa.int64()).to_numpy() for times in ([a for a, _ in bounds], [a + n for a, n in bounds])]
    expected = [any(start <= first + n and stop > first for start, stop in pairs) for first, n in bounds]
    assert windows.overlap(*arrays).tolist() == expected


@pytest.mark.parametrize(
    ("edges", "only", "reason"), [([2, 1], None, "must ascend"), ([1, 2], [2], "does not begin at an edge")]
)
def test_windows_that_are_none_are_refused(
    timed: TimedTable, edges: list[int], only: list[int] | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        counted(timed, edges, only=only)
