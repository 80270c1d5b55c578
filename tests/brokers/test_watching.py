"""`penstock status` needs the retention time of a topic and the time of a record: every real broker returns them."""

import time
from collections.abc import Callable

import pytest

from kafka_io.cluster.retention import FOREVER, Retention
from kafka_io.model import BrokerPartition
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker
from tests.brokers.test_matrix_times import FIRST_MS, INTERVAL_MS, open_main

pytestmark = pytest.mark.brokers

COUNT = 100
RETENTION_MS = 10 * 365 * 86_400_000
FILLED, EMPTY = BrokerPartition(None, 0), BrokerPartition(None, 1)
WITH_DESCRIBE_CONFIGS = ("0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "4.1.0")
"""These versions answer DescribeConfigs. For older versions the settings of a topic are read from ZooKeeper."""


@pytest.fixture
def filled(shared: Callable[[str], SharedBroker], topic: str) -> Callable[[str], SharedBroker]:
    """Creates a topic on the broker of a version, with records one second apart in its first partition."""

    def fill(version: str) -> SharedBroker:
        shared_broker = shared(version)
        shared_broker.broker.create_topic(topic, 2, config={"retention.ms": str(RETENTION_MS)})
        details = [{"timestamp": FIRST_MS + INTERVAL_MS * number} for number in range(COUNT)]
        records = [(None, b"value %d" % number) for number in range(COUNT)]
        shared_broker.broker.produce(topic, records, codec=shared_broker.release.codecs[-1], details=details)
        return shared_broker

    return fill


@pytest.mark.parametrize("version", VERSIONS)
def test_the_retention_time_of_a_topic_is_read_from_its_settings(
    version: str, filled: Callable[[str], SharedBroker], topic: str
) -> None:
    size = FOREVER if version in WITH_DESCRIBE_CONFIGS else None
    with open_main(filled(version).cluster_settings()) as cluster:
        assert cluster.retention([topic]) == {topic: Retention(ms=RETENTION_MS, bytes=size)}


@pytest.mark.parametrize("version", [version for version in VERSIONS if RELEASES[version].times])
def test_the_time_of_a_record_is_its_timestamp(version: str, filled: Callable[[str], SharedBroker], topic: str) -> None:
    with open_main(filled(version).cluster_settings()) as cluster:
        for offset in (0, 41, COUNT - 1):
            times = cluster.times_at({topic: {FILLED: offset, EMPTY: 0}})
            assert times == {topic: {FILLED: FIRST_MS + offset * INTERVAL_MS, EMPTY: None}}
        assert cluster.times_at({topic: {FILLED: COUNT}}) == {topic: {FILLED: None}}


@pytest.mark.parametrize("version", [version for version in VERSIONS if not RELEASES[version].times])
def test_without_record_timestamps_the_time_of_a_record_is_the_last_write_to_its_segment(
    version: str, filled: Callable[[str], SharedBroker], topic: str
) -> None:
    before_ms = time.time_ns() // 1_000_000
    with open_main(filled(version).cluster_settings()) as cluster:
        times = cluster.times_at({topic: {FILLED: 41, EMPTY: 0}})[topic]
        assert cluster.times_at({topic: {FILLED: COUNT}}) == {topic: {FILLED: None}}
    last_write = times[FILLED]
    assert isinstance(last_write, int)
    # Some file systems round the time of a write to seconds, and an age of less than a second counts as one second.
    assert before_ms - 3000 <= last_write <= time.time_ns() // 1_000_000
    assert times[EMPTY] is None
