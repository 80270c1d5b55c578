"""Log directories of a genuine 0.7.2 broker, served as they are, loaded, and compared with its own client's reading."""

import json
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.load.load import Loader
from pipelines.verify.verify import verify
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.live import LiveCluster

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]

GOLDEN = Path(__file__).parents[2] / "golden" / "v07"
EXPECTED = [json.loads(file.read_text()) for file in sorted((GOLDEN / "expected").glob("*.json"))]


@pytest.fixture
def genuine(chroot: str, tmp_path: Path) -> Iterator[LiveCluster]:
    """A broker on copies of the genuine logs; `three` has partition 2, so every topic has three."""
    shutil.copytree(GOLDEN / "segments", tmp_path / "logs", ignore=shutil.ignore_patterns("*.txt"))
    # Modification times are what retention looks at: these logs are old.
    config = BrokerConfig07(broker_id=0, data_dir=tmp_path / "logs", partitions=3, retention_ms=10**14)
    with BrokerServer07(config, zookeeper=chroot) as broker:
        live = LiveCluster(zookeeper=chroot, home=tmp_path, brokers=[broker])
        live.configure()
        yield live


def rows_of(expected: dict[str, Any]) -> list[tuple[int, int, int, bytes]]:
    """(partition, offset, inner, value): messages of one wrapper follow each other and share its start."""
    groups = groupby(expected["messages"], key=lambda message: message["start"])
    return [
        (expected["partition"], start, inner, bytes.fromhex(message["payload_hex"]))
        for start, messages in groups
        for inner, message in enumerate(messages)
    ]


def test_genuine_logs_become_the_rows_their_own_client_read(genuine: LiveCluster, spark: SparkSession) -> None:
    settings = Settings.load(genuine.settings)
    lake = Lake(root=settings.lake)
    expected: dict[str, list[tuple[int, int, int, bytes]]] = {}
    for log in EXPECTED:
        expected.setdefault(log["topic"], []).extend(rows_of(log))
    with genuine.open() as cluster:
        topics = {entry.name for entry in cluster.topics().entries}
        loader = Loader.of(settings, cluster, lambda: spark)
        loads = {topic: loader.load(topic) for topic in sorted(topics)}
    assert topics == set(expected)
    assert {topic: load.error for topic, load in loads.items() if load.error} == {}
    for topic, rows in expected.items():
        table = DeltaTable(lake.table_uri("main", topic)).to_pyarrow_table()
        columns = ("partition", "offset", "inner", "value")
        assert sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True)) == sorted(rows), topic
        assert verify(DeltaLakeTable.of(lake, "main", topic)).proven
