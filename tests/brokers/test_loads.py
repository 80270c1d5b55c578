"""What real brokers do to a log: compaction, formats of several ages, times of their own."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from resources.settings import ClusterSettings
from tests.brokers.lakeside import Lakeside
from tests.brokers.reading import read
from tests.brokers.real import RealBroker
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]


# faults R20, R24: a compacted log has holes, and they are counted
def test_what_compaction_took_away_is_a_gap(topic: str, beside: Callable[..., Lakeside], tmp_path: Path) -> None:
    eagerly = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.001"}
    with RealBroker("3.9.1", tmp_path / "broker", config=eagerly) as broker:
        broker.create_topic(topic, config={"cleanup.policy": "compact", "segment.bytes": "100000"})
        for _ in range(8):
            broker.produce(topic, [(b"same", b"value " * 200)] * 50)
        wait_for_compaction(broker, topic)
        lakeside = beside(ClusterSettings(bootstrap=broker.bootstrap))
        assert lakeside.load(topic).error is None
        count = lakeside.table(topic).num_rows
        [part] = lakeside.prove(topic).partitions
        assert (part.offsets.start, part.offsets.stop, count + part.gaps["compacted"]) == (0, 400, 400)
        assert count < 400


# fault R28: as after upgrades; readers from 0.11 on are given what is in the log, unconverted
@pytest.mark.parametrize("version", ["2.8.2"])
def test_formats_of_three_ages_in_one_partition_are_one_stream(
    version: str, shared: Callable[[str], SharedBroker], topic: str, beside: Callable[..., Lakeside]
) -> None:
    there = shared(version)
    there.broker.create_topic(topic, config={"message.format.version": "0.9.0"})
    admin = AdminClient({"bootstrap.servers": there.broker.bootstrap})
    for message_format in ("0.9.0", "0.10.2", "0.11.0"):
        entry = ConfigEntry("message.format.version", message_format, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)
        for codec in ("none", "gzip", "lz4"):
            there.broker.produce(topic, [(b"key", message_format.encode() * 9)] * 100, codec=codec)
    lakeside = beside(there.found())
    assert (lakeside.load(topic).error, lakeside.prove(topic).problems) == (None, ())
    rows = lakeside.rows(topic)
    assert rows == read(there.broker, topic)
    assert [row.timestamp is None for row in rows] == [True] * 300 + [False] * 600


# fault R25: the broker's clock in the place of the producer's, also where records are compressed together
@pytest.mark.parametrize("version", ["0.10.2.2", "0.11.0.3", "4.1.0"])
def test_times_that_the_broker_gave_are_told_as_such(
    version: str, shared: Callable[[str], SharedBroker], topic: str, beside: Callable[..., Lakeside]
) -> None:
    there = shared(version)
    there.broker.create_topic(topic, config={"message.timestamp.type": "LogAppendTime"})
    for codec in there.release.codecs:
        there.broker.produce(topic, [(b"key", b"value" * 9)] * 100, codec=codec, details=[{"timestamp": 1}] * 100)
    lakeside = beside(there.found())
    assert lakeside.load(topic).error is None
    rows = lakeside.rows(topic)
    assert rows == read(there.broker, topic)
    assert {row.timestamp[0] if row.timestamp else None for row in rows} == {1}


def wait_for_compaction(broker: RealBroker, topic: str) -> None:
    """Until the first record is gone."""
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
