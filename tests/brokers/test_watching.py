"""What a status is made of, from every real broker: how long records are kept, and when one was written."""

import time
from collections.abc import Callable

import pytest

from kafka_io.cluster.retention import FOREVER, Retention
from kafka_io.model import BrokerPartition
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker
from tests.brokers.test_matrix_times import APART_MS, BEGAN_MS, opened

pytestmark = pytest.mark.brokers

COUNT = 100
KEPT_MS = 10 * 365 * 86_400_000
PART, EMPTY = BrokerPartition(None, 0), BrokerPartition(None, 1)
TELLING = ("0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "4.1.0")
"""They answer DescribeConfigs; of the others ZooKeeper has what a topic has of its own."""


@pytest.fixture
def filled(shared: Callable[[str], SharedBroker], topic: str) -> Callable[[str], SharedBroker]:
    """A broker of this version, with records a second apart in the topic's first partition."""

    def fill(version: str) -> SharedBroker:
        there = shared(version)
        there.broker.create_topic(topic, 2, config={"retention.ms": str(KEPT_MS)})
        details = [{"timestamp": BEGAN_MS + APART_MS * number} for number in range(COUNT)]
        records = [(None, b"value %d" % number) for number in range(COUNT)]
        there.broker.produce(topic, records, codec=there.release.codecs[-1], details=details)
        return there

    return fill


@pytest.mark.parametrize("version", VERSIONS)
def test_how_long_records_are_kept(version: str, filled: Callable[[str], SharedBroker], topic: str) -> None:
    size = FOREVER if version in TELLING else None
    with opened(filled(version).found()) as cluster:
        assert cluster.retention([topic]) == {topic: Retention(ms=KEPT_MS, bytes=size)}


@pytest.mark.parametrize("version", [version for version in VERSIONS if RELEASES[version].times])
def test_a_records_time_is_its_own(version: str, filled: Callable[[str], SharedBroker], topic: str) -> None:
    with opened(filled(version).found()) as cluster:
        for offset in (0, 41, COUNT - 1):
            times = cluster.times_at({topic: {PART: offset, EMPTY: 0}})
            assert times == {topic: {PART: BEGAN_MS + offset * APART_MS, EMPTY: None}}
        assert cluster.times_at({topic: {PART: COUNT}}) == {topic: {PART: None}}


@pytest.mark.parametrize("version", [version for version in VERSIONS if not RELEASES[version].times])
def test_where_records_have_no_times_it_is_the_last_write_to_the_segment(
    version: str, filled: Callable[[str], SharedBroker], topic: str
) -> None:
    before_ms = time.time_ns() // 1_000_000
    with opened(filled(version).found()) as cluster:
        times = cluster.times_at({topic: {PART: 41, EMPTY: 0}})[topic]
        assert cluster.times_at({topic: {PART: COUNT}}) == {topic: {PART: None}}
    last_write = times[PART]
    assert isinstance(last_write, int)
    # Some file systems keep the time of a write in whole seconds; and a second is the least age that is told.
    assert before_ms - 3000 <= last_write <= time.time_ns() // 1_000_000
    assert times[EMPTY] is None
