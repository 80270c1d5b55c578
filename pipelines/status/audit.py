"""Reads how many records producers have sent: the counts in the table of a counts topic, summed up for each hour.

A count is a running total: the number of records of a window that a producer has sent since its session began. So of
all counts of a window, producer and session the largest one is valid, however often and in whichever order they arrive.
The sum over windows, producers and sessions is what was sent.

The counts of some hours are read, in batches. DuckDB sums them up, and goes to disk if there are many.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.errors import Where
from kafka_io.values.json.settings import columns_of_settings
from pipelines.layout.columns import TOMBSTONE_COLUMN
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import AuditUnknown, LakeUnavailable
from resources.machines.duckdb_connections import connect_duckdb
from resources.settings.topic_audit import COUNT_COLUMNS
from resources.stores.lake import lake_errors

if TYPE_CHECKING:  # processes of Dagster import this module; most of them sum up no counts
    import duckdb

HOUR_MS = 3_600_000
_MAX_TIME_MS = 253_402_300_799_999
"""The end of the year 9999: a larger number is in another unit than milliseconds."""
_BATCH_ROWS = 65_536
_BATCHES_AHEAD = 2
_MEMORY = "512MiB"
_TOTALS = """
create table totals (hour bigint, start bigint, size bigint, producer varchar, session varchar, total bigint)
"""
_SIZE = "case when window_ms between 1000 and 3600000 then window_ms end"
"""The size of a window; null if it makes no sense, because DuckDB may compute a condition before it needs it."""
_IS_USABLE = f"""
topic is not null and producer is not null and session is not null
and 3600000 % ({_SIZE}) = 0 and window_start_ms % ({_SIZE}) = 0
and window_start_ms between $start and $last and count between 0 and 1000000000000000
"""
_TAKE = f"""
insert into totals
select window_start_ms - window_start_ms % 3600000, window_start_ms, window_ms, producer, session, max(count)
from arriving where {_IS_USABLE} group by window_start_ms, window_ms, producer, session
"""  # noqa: S608 - its parts are constants
_MALFORMED = f"select count(*) from arriving where not coalesce({_IS_USABLE}, false)"  # noqa: S608
_BY_HOUR = """
select hour, sum(total)
from (select hour, max(total) as total from totals group by hour, start, size, producer, session)
group by hour
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRecords:
    """The records that producers counted.

    Args:
        by_hour: their number by the start of the hour, in ms since 1970; hours without any are left out.
        malformed: the number of count messages that cannot be used.
    """

    by_hour: Mapping[int, int]
    malformed: int


def sent_records(counts: LakeTable, snapshot: TableSnapshot, topic: str, *, start_ms: int, stop_ms: int) -> SentRecords:
    """The records of a topic that producers counted in the hours from `start_ms` to `stop_ms`.

    Count messages that name no such hour are malformed if they were sent since `start_ms` and say no sensible window.

    Raises:
        AuditUnknown: the table has other columns than those of counts.
        LakeUnavailable: a file of the table cannot be read.
    """
    check_columns(snapshot, counts.where)
    span = {"start": start_ms, "last": stop_ms - 1}
    malformed = 0
    with _database() as database:
        database.execute(_TOTALS)
        for batch in _batches(counts, snapshot, topic, start_ms, stop_ms):
            with _duckdb_errors(counts):
                database.register("arriving", pa.table(batch))
                database.execute(_TAKE, span)
                [(unusable,)] = database.execute(_MALFORMED, span).fetchall()
                database.unregister("arriving")
            malformed += unusable
        with _duckdb_errors(counts):
            by_hour = {int(hour): int(total) for hour, total in database.execute(_BY_HOUR).fetchall()}
    return SentRecords(by_hour=by_hour, malformed=malformed)


def check_columns(snapshot: TableSnapshot, where: Where) -> None:
    """Check that a table has the columns of counts.

    Raises:
        AuditUnknown: one of them is missing, or has another type.
    """
    values = snapshot.layout.values
    for field in columns_of_settings(COUNT_COLUMNS):
        if field.name not in values.names or values.field(field.name).type != field.type:
            kind = COUNT_COLUMNS[field.name]
            raise AuditUnknown(f"the table of counts has no column `{field.name}` of the type {kind}", where)


def _batches(
    counts: LakeTable, snapshot: TableSnapshot, topic: str, start_ms: int, stop_ms: int
) -> Iterator[pa.RecordBatch]:
    """The counts of these hours, and those that say no time although they were sent since then."""
    start, name = pc.field("window_start_ms"), pc.field("topic")
    sent_at = pc.field(snapshot.layout.name("timestamp"))
    in_span = (start >= start_ms) & (start < stop_ms)
    says_no_time = start.is_null() | (start < 0) | (start > _MAX_TIME_MS)
    since = sent_at >= pa.scalar(start_ms * 1000, pa.timestamp("us", "UTC"))
    wanted = (name.is_null() | (name == topic)) & ~pc.field(TOMBSTONE_COLUMN) & (in_span | (since & says_no_time))
    with lake_errors(counts.uri):
        yield from snapshot.opened.dataset().to_batches(
            columns=list(COUNT_COLUMNS),
            filter=wanted,
            batch_size=_BATCH_ROWS,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=1,
        )


@contextmanager
def _database() -> Iterator["duckdb.DuckDBPyConnection"]:
    with tempfile.TemporaryDirectory(prefix="penstock-audit-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "temp_directory": folder,
            "preserve_insertion_order": "false",
        }
        with connect_duckdb(config=config) as database:
            yield database


@contextmanager
def _duckdb_errors(counts: LakeTable) -> Iterator[None]:
    import duckdb  # noqa: PLC0415 - see TYPE_CHECKING

    try:
        yield
    except duckdb.Error as error:
        raise LakeUnavailable(
            "the counts of producers cannot be summed up: the disk for temporary files may be full", counts.where
        ) from error
