"""A topic whose table has folders of event days, loaded from a fake cluster."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.layout.layout import TableLayout
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from pipelines.rewrites.replay_result import TopicReplay
from resources.kafka import open_cluster
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import loader_of
from tests.fakes.typed import TypedTopic, no_spark

DAY_MS = 86_400_000
FIRST_DAY = date(2024, 3, 1)
FIRST_MS = int(datetime(2024, 3, 1, tzinfo=UTC).timestamp() * 1000)
HOUR_MS = DAY_MS // 24
_BATCH = 10


def append_at(log: Log, times_ms: Sequence[int], values: Sequence[bytes] | None = None) -> None:
    """Append records with these times, in batches of ten. By default their values have their offset."""
    records = [
        Record(
            offset=log.end + number,
            timestamp=time_ms,
            key=b"%d" % number,
            value=values[number] if values else b'{"id": %d}' % (log.end + number),
        )
        for number, time_ms in enumerate(times_ms)
    ]
    for first in range(0, len(records), _BATCH):
        batch = records[first : first + _BATCH]
        log.entries.append((batch[-1].offset, record_batch(batch)))
    log.end += len(records)


def log_at(times_ms: Sequence[int], values: Sequence[bytes] | None = None, *, leader: int = 0) -> Log:
    """A log with records of these times. A broker of a fake cluster answers only questions about one partition."""
    log = Log(entries=[], end=0, leader=leader)
    append_at(log, times_ms, values)
    return log


class DayTopic(TypedTopic):
    """The topic `clicks` with folders of event days, and what its table shows."""

    def load(self, **options: Any) -> TopicLoad:
        """Load the topic in this process, also if it has many slices."""
        return super().load(**{"fetch": fetch_here, **options})

    def replay(self, since: str = "earliest", until: str = "latest", partitions: Sequence[str] = ()) -> TopicReplay:
        """Fetch records again and replace their rows, in this process."""
        request = ReplayRequest.parse("clicks", since, until, partitions, now=datetime(2026, 1, 1, tzinfo=UTC))
        with open_cluster(self.settings, "main") as cluster:
            return replay(loader_of(self.settings, cluster, no_spark, fetch=fetch_here).run, self.table, request)

    @property
    def handle(self) -> DeltaTable:
        """A new handle of the table."""
        return DeltaTable(self.table.uri)

    @property
    def layout(self) -> TableLayout:
        """The layout that the table's schema says."""
        return TableLayout.of_delta(self.handle.schema().to_json())

    @property
    def files(self) -> list[date | None]:
        """The day of each data file."""
        adds = pa.table(self.handle.get_add_actions(flatten=True))
        days = adds.column(f"partition.{self.layout.partition_column}").to_pylist()
        return sorted(days, key=lambda day: day or date.max)

    def days(self) -> dict[int, date | None]:
        """The day of each row of partition 0, by offset."""
        names = [self.layout.name("partition"), self.layout.name("offset"), self.layout.partition_column]
        rows = self.handle.to_pyarrow_table(columns=names).to_pylist()
        return {
            row[names[1]]: row[names[2]] for row in sorted(rows, key=lambda row: row[names[1]]) if not row[names[0]]
        }

    def problems(self) -> tuple[str, ...]:
        """The problems that `verify` and `verify --deep` find."""
        return self.deep().problems


def day_topic(fake: FakeCluster, folder: Any, format_: Mapping[str, Any]) -> DayTopic:
    """The topic with these settings of its section, with small slices."""
    return DayTopic(
        fake=fake, folder=folder, format_={"partition_by": "event_day", **format_}, caps={"slice_records": 60}
    )
