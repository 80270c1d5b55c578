"""The offset for a time is exact from 0.10 on. On older brokers it may be too early, but never too late."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import BrokerPartition
from resources.kafka import open_cluster
from resources.settings.settings import ClusterSettings, Settings
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.matrix("time bounds")]

COUNT = 300
FIRST_MS, INTERVAL_MS = 1_700_000_000_000, 1000
LAST_MS = FIRST_MS + INTERVAL_MS * (COUNT - 1)


def open_main(settings: ClusterSettings) -> Cluster:
    """A client of the cluster with these settings."""
    return open_cluster(Settings(lake="/nowhere", clusters={"main": settings}), "main")


def offsets_of_librdkafka(broker: RealBroker, topic: str, partitions: int, at_ms: int) -> list[int]:
    """The offset of a time in each partition, as librdkafka returns it."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        requested = [TopicPartition(topic, number, at_ms) for number in range(partitions)]
        return [partition.offset for partition in consumer.offsets_for_times(requested, timeout=30)]
    finally:
        consumer.close()


@pytest.mark.parametrize("version", [version for version in VERSIONS if RELEASES[version].times])
def test_the_offset_of_a_time_is_the_first_record_that_is_not_older(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    codecs = shared_broker.release.codecs
    shared_broker.broker.create_topic(topic, len(codecs))
    details = [{"timestamp": FIRST_MS + INTERVAL_MS * number} for number in range(COUNT)]
    records = [(None, b"value %d" % number) for number in range(COUNT)]
    for partition, codec in enumerate(codecs):
        shared_broker.broker.produce(topic, records, partition=partition, codec=codec, details=details)
    partitions = [BrokerPartition(None, number) for number in range(len(codecs))]
    with open_main(shared_broker.cluster_settings()) as cluster:
        for at_ms, offset in (
            (0, 0),
            (FIRST_MS + 41 * INTERVAL_MS, 41),
            (FIRST_MS + 41 * INTERVAL_MS + 1, 42),
            (LAST_MS, 299),
        ):
            assert cluster.offsets_at(topic, partitions, at_ms) == dict.fromkeys(partitions, offset)
            assert offsets_of_librdkafka(shared_broker.broker, topic, len(codecs), at_ms) == [offset] * len(codecs)
        assert cluster.offsets_at(topic, partitions, LAST_MS + 1) == dict.fromkeys(partitions, COUNT)


@pytest.mark.parametrize("version", [version for version in VERSIONS if not RELEASES[version].times])
def test_without_record_timestamps_the_offset_of_a_time_skips_no_record(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic, config={"segment.bytes": "5000"})
    began_ms = time.time_ns() // 1_000_000
    for number in range(10):
        shared_broker.broker.produce(topic, [(None, b"value %d" % number * 30)] * 10)
    [partition] = partitions = [BrokerPartition(None, 0)]
    with open_main(shared_broker.cluster_settings()) as cluster:
        # Some file systems round the time of a write to seconds.
        assert cluster.offsets_at(topic, partitions, began_ms - 2000) == {partition: 0}
        later = cluster.offsets_at(topic, partitions, began_ms + 3_600_000)[partition]
        assert isinstance(later, int)
        assert 0 < later <= 100
