"""A typed table of the topic `clicks`, loaded from a fake cluster."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.comparison.deep_verify import DeepProof, deep_verify
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.load import Loader
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from pipelines.rewrites.replay_result import TopicReplay
from pipelines.table.table_store import TableSnapshot
from resources.kafka import open_cluster, open_schema_registry
from resources.settings.settings import Caps, Settings
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import loader_of
from tests.fakes.records import table


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def log_of(values: Sequence[bytes | None], first: int = 0) -> Log:
    """A log with one batch of records with these values, and their numbers as keys."""
    records = [
        Record(offset=first + number, timestamp=1_700_000_000_000 + number, key=b"%d" % number, value=value)
        for number, value in enumerate(values)
    ]
    entries = [(records[-1].offset, record_batch(records))] if records else []
    return Log(entries=entries, start=first, end=first + len(records))


def append(log: Log, values: Sequence[bytes | None]) -> None:
    """Append a batch of records to the log."""
    more = log_of(values, first=log.end)
    log.entries += more.entries
    log.end = more.end


@dataclass(kw_only=True)
class TypedTopic:
    """The topic `clicks` of a fake cluster with the settings `format_` of `[topics.clicks]`, and its table."""

    fake: FakeCluster
    folder: Path
    format_: Mapping[str, Any]
    caps: Mapping[str, Any] = field(default_factory=dict)
    registries: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings, as in a file."""
        bootstrap = ",".join(broker.address for broker in self.fake.bootstrap)
        return Settings.model_validate(
            {
                "lake": str(self.folder),
                "clusters": {"main": {"bootstrap": bootstrap}},
                "registries": self.registries,
                "secrets": self.secrets,
                "topics": {"clicks": self.format_},
                "choices": self.choices,
                "caps": Caps.model_validate(
                    {"attempts": 1, "request_timeout_s": 5, "registry_wait_s": 0, **self.caps}
                ).model_dump(),
            }
        )

    @property
    def table(self) -> DeltaLakeTable:
        """The topic's table."""
        return table(self.folder)

    @property
    def snapshot(self) -> TableSnapshot:
        """The newest version of the table."""
        snapshot = self.table.existing()
        assert snapshot is not None
        return snapshot

    @property
    def entry(self) -> LedgerEntry:
        """The newest entry of the table."""
        assert self.snapshot.entry is not None
        return self.snapshot.entry

    def load(self, **options: Any) -> TopicLoad:
        """Load the topic in this process."""
        with open_cluster(self.settings, "main") as cluster:
            return loader_of(self.settings, cluster, no_spark, **options).load("clicks")

    def deep(self) -> DeepProof:
        """Compare the table with the brokers."""
        with open_cluster(self.settings, "main") as cluster:
            return deep_verify(
                self.table,
                cluster,
                format_=self.settings.format_of("clicks"),
                open_registry=partial(open_schema_registry, self.settings),
            )

    def replay(self, since: str = "earliest", until: str = "latest", partitions: Sequence[str] = ()) -> TopicReplay:
        """Fetch records again and replace their rows."""
        request = ReplayRequest.parse("clicks", since, until, partitions, now=datetime(2026, 1, 1, tzinfo=UTC))
        with open_cluster(self.settings, "main") as cluster:
            return replay(Loader.of(self.settings, cluster, no_spark).run, self.table, request)

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        """The rows of the table in order of partition and offset, with these columns."""
        order = ["_kafka_partition", "_kafka_offset"]
        rows: pa.Table = DeltaTable(self.table.uri).to_pyarrow_table().sort_by([(name, "ascending") for name in order])
        return list(rows.select(list(columns)).to_pylist())


class CountedFetches:
    """Fetches slices in this process, and counts the offsets of each call."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, tasks: Sequence[FetchTask], on_progress: Any, _ahead: object = ()) -> list[SliceFacts]:
        """Fetch the slices of the tasks."""
        self.sizes.append(sum(task.offsets.size for task in tasks))
        return fetch_here(tasks, on_progress)


@contextmanager
def registered_topic(
    fake: FakeCluster, folder: Path, registry: EmbeddedSchemaRegistry, **format_: Any
) -> Iterator[TypedTopic]:
    """The topic with these settings of its format, whose schemas are in the registry. The cluster runs."""
    with fake:
        registries = {"main": {"url": registry.url}}
        yield TypedTopic(fake=fake, folder=folder / "lake", format_=format_, registries=registries)
