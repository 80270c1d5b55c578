"""The query of the page about folders gives the same rows in each layout."""

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from tests.docs.pages import ROOT, run_blocks
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import TypedTopic

PAGE = ROOT / "docs" / "layout.md"
BEFORE, FIRST, LAST, AFTER = (
    datetime(2026, 11, 23, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2026, 11, 24, tzinfo=UTC),
    datetime(2026, 11, 24, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2026, 11, 25, tzinfo=UTC),
)


@pytest.mark.parametrize("partition_by", ["loaded", "event_day"])
def test_the_query_counts_a_day_in_each_layout(partition_by: str, tmp_path: Path) -> None:
    records = [
        Record(offset=offset, timestamp=int(time.timestamp() * 1000), key=None, value=b"a")
        for offset, time in enumerate((BEFORE, FIRST, LAST, AFTER))
    ]
    log = Log(entries=[(records[-1].offset, record_batch(records))], start=0, end=len(records))
    with FakeCluster(logs={0: log}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"partition_by": partition_by})
        assert topic.load().error is None
    [query] = run_blocks(PAGE, "sql")
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")  # as the page says
        database.register("clicks", DeltaTable(topic.table.uri).to_pyarrow_dataset())
        assert database.sql(query.text).fetchall() == [(2,)]
