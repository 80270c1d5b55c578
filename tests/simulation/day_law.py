"""The law of tables with folders of event days: a slice has few files, and each row is in the file of its day."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipelines.fetch.fetch_task import FetchTask
from pipelines.layout.event_days import EventDays
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.ledger import CommitKind
from tests.simulation.broken import require
from tests.simulation.store import Row, SimStore

_DAY_US = 86_400_000_000
_MAX_FILES = 17
_ODD_EVERY = 5
_DAYS = 40
_REST = "event_day=None"


def event_time_us(row: Row) -> int | None:
    """The time of a row's record: on one of 40 days, or none, or that of a wrong clock."""
    if row.payload % _ODD_EVERY == 0:
        return [None, 0, 2**60][row.payload % 3]
    return row.loaded_at_us - (row.payload * 7 % _DAYS) * _DAY_US


def rows_by_folder(work: FetchTask, rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    """The rows of each day, in the folder of the day, as Penstock's own code splits them."""
    times = pa.array([event_time_us(row) for row in rows], pa.int64()).cast(FILE_SCHEMA.field("timestamp").type)
    columns = {"number": pa.array(range(len(rows))), work.layout.time_column: times}
    days = EventDays(work.layout, work.loaded_at_us)
    for day, part in days.split(pa.RecordBatch.from_pydict(columns)):
        yield f"event_day={day}", [rows[number] for number in part.column("number").to_pylist()]


def check_days(store: SimStore, version: int) -> None:
    """Check the files of a load.

    Raises:
        Broken: a slice has too many files or lacks one, or a row is not in the file of its day.
    """
    entry = store.versions[version].entry
    if not store.is_by_day or entry is None or entry.kind is not CommitKind.LOAD:
        return
    for committed in entry.ranges:
        paths = committed.paths
        folders = [path.partition("/")[0] for path in paths]
        require(len(paths) <= _MAX_FILES, f"{committed} has {len(paths)} files")
        require(len(set(folders)) == len(folders), f"{committed} has two files of one day: {paths}")
        rows = [(folder, row) for folder, path in zip(folders, paths, strict=True) for row in store.staged[path]]
        require(len(rows) == committed.rows, f"the files of {committed} hold {len(rows)} of its {committed.rows} rows")
        for folder, row in rows:
            require(
                folder in {_REST, _folder(row)}, f"{row} of the time {event_time_us(row)} is in the folder {folder}"
            )


def _folder(row: Row) -> str:
    time_us = event_time_us(row)
    if time_us is None or not 0 < time_us <= row.loaded_at_us:
        return _REST
    return f"event_day={pa.scalar(time_us // _DAY_US, pa.int32()).cast(pa.date32()).as_py()}"
