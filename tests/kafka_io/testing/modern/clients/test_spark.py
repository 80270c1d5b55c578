"""Spark's own Kafka source and sink, which use Kafka's Java clients, write to the broker and read from it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_io.testing.modern.server import ModernBrokerServer
from tests.bench.spark_jars import kafka_source
from tests.kafka_io.testing.modern.clients.conftest import PARTITIONS, TOPIC, address, rows
from tests.kafka_io.testing.modern.clients.test_confluent import write

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

ROOT = Path(__file__).parents[5]
WRITTEN = 50


def test_spark_writes_and_reads(broker: ModernBrokerServer) -> None:
    write(broker, "zstd", 40)
    command = [sys.executable, "-m", "tests.kafka_io.testing.modern.clients.spark_program"]
    process = subprocess.run(
        [*command, kafka_source(), address(broker), TOPIC], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]
    rows_read = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    offsets = sorted((row["partition"], row["offset"]) for row in rows_read)
    ends = [sum(partition == number for partition, _ in offsets) for number in range(PARTITIONS)]
    assert offsets == [(number, offset) for number in range(PARTITIONS) for offset in range(ends[number])]
    expected = [value.decode() for _, _, value in rows("zstd", 40)] + [str(number) for number in range(WRITTEN)]
    assert sorted(row["value"] for row in rows_read) == sorted(expected)
