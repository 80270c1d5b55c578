"""Each row of a slice gets into the file of its day, and many open days need no more memory than one."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.reader import PlannedRange
from pipelines.fetch import day_files
from pipelines.fetch.day_files import DayFiles
from pipelines.fetch.fetch_task import FetchTask
from pipelines.layout.layout import EVENT_DAY
from pipelines.layout.rows import table_rows
from tests.small_table import SOURCE

DAY_MS = 24 * 60 * 60 * 1_000
LOADED_MS = 20_000 * DAY_MS


@pytest.fixture
def task(tmp_path: Path) -> FetchTask:
    return FetchTask(
        spark_task=0,
        source=SOURCE,
        planned=PlannedRange(topic="clicks", offsets=OffsetRange(BrokerPartition(None, 0), 0, 9), incarnation="7"),
        table_uri=str(tmp_path),
        folder="",
        options={},
        parquet_codec="zstd",
        loaded_at_us=LOADED_MS * 1000,
        partition_by=EVENT_DAY,
    )


def rows(ages: Sequence[int | None], size: int = 1) -> pa.RecordBatch:
    """A row of this size for each age in days; None for a row without a time."""
    times = [None if age is None else LOADED_MS - age * DAY_MS for age in ages]
    columns = {
        "offset": pa.array(range(len(ages)), pa.int64()),
        "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
        "value": pa.array([b"x" * size] * len(ages), pa.binary()),
    }
    constants = {"topic": "clicks", "partition": 0, "loaded_at": LOADED_MS * 1000}
    return table_rows(pa.RecordBatch.from_pydict(columns), constants)


def written(files: DayFiles, folder: Path) -> list[tuple[str, list[int]]]:
    """The folder of each file, and the sizes of its row groups."""
    footers = [(file.path.partition("/")[0], pq.read_metadata(folder / file.path)) for file in files.files]
    return [
        (name, [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]) for name, footer in footers
    ]


def test_each_day_has_a_file_and_the_rows_without_a_day_have_the_last_one(task: FetchTask, tmp_path: Path) -> None:
    with DayFiles(task) as files:
        files.write(rows([0, None, 1]))
        files.write(rows([1, 1, 400]))  # no slice has a day so long ago open
    assert (files.rows, sum(file.rows for file in files.files)) == (6, 6)
    assert written(files, tmp_path) == [
        ("event_day=2024-10-03", [3]),
        ("event_day=2024-10-04", [1]),
        ("event_day=__HIVE_DEFAULT_PARTITION__", [2]),
    ]


def test_the_day_with_the_most_waiting_rows_is_written_when_they_need_too_much_memory(
    task: FetchTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_files, "_MAX_WAITING_BYTES", 10_000)
    with DayFiles(task) as files:
        for _ in range(2):
            files.write(rows([1] * 3, size=100))
            files.write(rows([0] * 6, size=2_000))
    assert [sizes for _, sizes in written(files, tmp_path)] == [[6], [6, 6]]
