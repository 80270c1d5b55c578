"""A broker with topics, and a lake with their tables, for the commands that compare both."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.build import Record, record_batch
from pipelines.cli.main import main
from pipelines.commit.commit import LoadChange, commit
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.identity.identity import table_state
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.kafka_io.testing.modern.talk import Client

WRITTEN_H = 2.5


@dataclass(slots=True, kw_only=True)
class World:
    """An embedded broker, a lake, and the settings of both."""

    settings_file: Path
    port: int

    def publish(self, topic: str, count: int = 20) -> None:
        """Publish records that were written two and a half hours ago, to one partition."""
        then_ms = int(time.time() * 1000 - WRITTEN_H * 3_600_000)
        records = [Record(offset=number, timestamp=then_ms, value=b"v") for number in range(count)]
        with Client(self.port) as client:
            assert client.create(topic) == 0
            client.produce(topic, record_batch(records))

    def load(self, topic: str, stop: int) -> None:
        """Commit `[0, stop)` of a topic without rows."""
        settings = Settings.load(self.settings_file)
        with open_cluster(settings, "main") as cluster:
            entry = cluster.topic(topic)
            assert entry
            identity = TopicIdentity(
                cluster="main",
                cluster_id=cluster.cluster_id() or "",
                name=topic,
                incarnation=entry.incarnation,
            )
        table = DeltaLakeTable.of(Lake.of(settings), "main", topic)
        snapshot = table.snapshot()
        facts = SliceFacts(
            range=CommittedRange(
                offsets=OffsetRange(BrokerPartition(None, 0), 0, stop), loaded_at_us=time.time_ns() // 1000
            )
        )
        commit(
            table,
            snapshot,
            LoadChange(state=table_state(snapshot, identity), facts=(facts,), run="run"),
            sleep=lambda _: None,
        )

    def penstock(self, *arguments: str) -> Result:
        """Run a command."""
        return CliRunner().invoke(main, ["--settings", str(self.settings_file), *arguments])


Make = Callable[..., World]
