"""A topic whose producers count what they send, with its table and the table of the counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result

from kafka_io.producer.audit_counts import AuditCounts
from kafka_io.producer.message import Message
from kafka_io.producer.opening import open_producer
from pipelines.cli.main import main
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.load.load import Loader
from pipelines.status.audit import HOUR_MS
from pipelines.status.audited_hours import Audit, AuditedHours
from pipelines.status.completeness import wait_until_complete
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from resources.stores.lake import Lake

COUNTS = "clicks-counts"
SEVEN = 1_769_842_800_000  # 2026-01-31T07:00Z
EIGHT = SEVEN + HOUR_MS


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


@dataclass
class Shop:
    """The topic `clicks`, whose producers count what they send."""

    home: Path
    bootstrap: str

    @property
    def file(self) -> Path:
        """The settings file."""
        return self.home / "penstock.toml"

    @property
    def settings(self) -> Settings:
        """The settings."""
        return Settings.load(self.file)

    def configure(self, more: str = "", audit: str = f'audit = "{COUNTS}"') -> None:
        """Write the settings file."""
        self.file.write_text(
            f'lake = "lake"\n[clusters.main]\nbootstrap = "{self.bootstrap}"\n'
            f'[topics.clicks]\nevent_time = "timestamp"\n{audit}\n{more}'
        )

    def send(self, times_ms: Sequence[int], *, producer: str | None = "web-1", window_ms: int = HOUR_MS) -> None:
        """Send a click at each of these times, in a session of its own, counted if the producer has a name."""
        audit = AuditCounts(COUNTS, producer=producer, window_ms=window_ms) if producer else None
        with open_producer(bootstrap=self.bootstrap, audit=audit) as sender:
            sender.send_many([Message(topic="clicks", value=b"x", timestamp_ms=time_ms) for time_ms in times_ms])

    def send_values(self, *values: bytes | None, topic: str = COUNTS) -> None:
        """Send values as they are."""
        with open_producer(bootstrap=self.bootstrap) as sender:
            sender.send_many([Message(topic=topic, value=value, key=b"k") for value in values])

    def load(self, *topics: str) -> None:
        """Load these topics, or both."""
        with open_cluster(self.settings, "main") as cluster:
            for topic in topics or ("clicks", COUNTS):
                assert Loader.of(self.settings, cluster, no_spark).load(topic).error is None

    def table(self, topic: str = "clicks") -> DeltaLakeTable:
        """The table of a topic."""
        return DeltaLakeTable.of(Lake.of(self.settings), "main", topic)

    def compare(self, through_ms: int = EIGHT, **options: Any) -> AuditedHours:
        """The comparison of the hours before a time."""
        audit = Audit.of(self.settings, "main", "clicks", **options)
        audited = wait_until_complete(self.table(), through_ms, 0, audit=audit).audited
        assert audited is not None
        return audited

    def penstock(self, *words: str) -> Result:
        """Run a command."""
        return CliRunner().invoke(main, ["--settings", str(self.file), *words])
