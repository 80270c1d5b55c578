"""Loads of special logs of real brokers: compacted, in old message formats, and with append times."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from resources.settings.settings import ClusterSettings
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.reading import read
from tests.brokers.real import RealBroker
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]


# faults R20, R24: compaction leaves holes in the offsets; `verify` counts them
def test_compacted_records_are_counted_as_a_gap(
    topic: str, open_lake: Callable[..., BrokerLake], tmp_path: Path
) -> None:
    eager_cleaner = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.001"}
    with RealBroker("3.9.1", tmp_path / "broker", config=eager_cleaner) as broker:
        broker.create_topic(topic, config={"cleanup.policy": "compact", "segment.bytes": "100000"})
        for _ in range(8):
            broker.produce(topic, [(b"same", b"value " * 200)] * 50)
        wait_for_compaction(broker, topic)
        lake = open_lake(ClusterSettings(bootstrap=broker.bootstrap))
        assert lake.load(topic).error is None
        count = lake.table(topic).num_rows
        [partition] = lake.prove(topic).partitions
        assert (partition.offsets.start, partition.offsets.stop, count + partition.gaps["compacted"]) == (0, 400, 400)
        assert count < 400


# fault R28: an upgraded cluster has such logs. Clients from 0.11 on receive the log without conversion.
@pytest.mark.parametrize("version", ["2.8.2"])
def test_a_partition_in_three_message_formats_is_loaded_completely(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic, config={"message.format.version": "0.9.0"})
    admin = AdminClient({"bootstrap.servers": shared_broker.broker.bootstrap})
    for message_format in ("0.9.0", "0.10.2", "0.11.0"):
        entry = ConfigEntry("message.format.version", message_format, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)
        for codec in ("none", "gzip", "lz4"):
            shared_broker.broker.produce(topic, [(b"key", message_format.encode() * 9)] * 100, codec=codec)
    lake = open_lake(shared_broker.cluster_settings())
    assert (lake.load(topic).error, lake.prove(topic).problems) == (None, ())
    rows = lake.rows(topic)
    assert rows == read(shared_broker.broker, topic)
    # The broker learns of a new format a moment after the admin client, and keeps the old one until then.
    without_time = [row.timestamp is None for row in rows]
    assert sorted(without_time, reverse=True) == without_time
    assert 300 <= sum(without_time) < 600


# fault R25: the broker's time replaces the producer's time, also in compressed batches
@pytest.mark.parametrize("version", ["0.10.2.2", "0.11.0.3", "4.1.0"])
def test_a_log_append_time_is_loaded_with_its_timestamp_type(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic, config={"message.timestamp.type": "LogAppendTime"})
    for codec in shared_broker.release.codecs:
        shared_broker.broker.produce(
            topic, [(b"key", b"value" * 9)] * 100, codec=codec, details=[{"timestamp": 1}] * 100
        )
    lake = open_lake(shared_broker.cluster_settings())
    assert lake.load(topic).error is None
    rows = lake.rows(topic)
    assert rows == read(shared_broker.broker, topic)
    assert {row.timestamp[0] if row.timestamp else None for row in rows} == {1}


def wait_for_compaction(broker: RealBroker, topic: str) -> None:
    """Wait until compaction has removed the first record."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            consumer.assign([TopicPartition(topic, 0, 0)])
            message = consumer.poll(10)
            if message is not None and not message.error() and message.offset():
                return
            consumer.unassign()
            time.sleep(0.2)
        pytest.fail("the broker did not compact its log")
    finally:
        consumer.close()
