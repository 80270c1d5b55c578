"""A load that cannot continue is refused: the topic was recreated, or records expired. The table does not change."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from resources.settings.settings import ClusterSettings
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

WITHOUT_DELETE_RECORDS = VERSIONS[:3]
RECORDS = [(b"key %d" % number, b"value " * number) for number in range(40)]


def refused(lake: BrokerLake, topic: str) -> str:
    """The error of the next load. Checks that this load does not change the table."""
    rows, proof = lake.rows(topic), lake.prove(topic)
    load = lake.load(topic)
    assert load.error is not None
    assert (load.rows, lake.rows(topic), lake.prove(topic)) == (0, rows, proof)
    return load.error


# faults B05, B06: the topic id changes, or in older versions the creation zxid of the node in ZooKeeper
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.matrix("recreated")
def test_a_recreated_topic_is_refused(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    lake = open_lake(shared_broker.cluster_settings())
    shared_broker.broker.create_topic(topic)
    shared_broker.broker.produce(topic, RECORDS)
    assert lake.load(topic).rows == len(RECORDS)
    shared_broker.broker.delete_topic(topic)
    shared_broker.broker.create_topic(topic)
    shared_broker.broker.produce(topic, RECORDS * 2)
    assert refused(lake, topic).startswith("TopicRecreated")


# fault B07
@pytest.mark.parametrize("version", [version for version in VERSIONS if version not in WITHOUT_DELETE_RECORDS])
@pytest.mark.matrix("expired")
def test_records_that_expired_before_they_were_loaded_are_reported_as_a_range(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    lake = open_lake(shared_broker.cluster_settings())
    shared_broker.broker.create_topic(topic)
    shared_broker.broker.produce(topic, RECORDS)
    assert lake.load(topic).rows == len(RECORDS)
    shared_broker.broker.produce(topic, RECORDS)
    admin = AdminClient({"bootstrap.servers": shared_broker.broker.bootstrap})
    deleted_before = TopicPartition(topic, 0, len(RECORDS) + 7)
    admin.delete_records([deleted_before])[deleted_before].result(30)
    assert refused(lake, topic).startswith("CursorExpired: offsets [40, 47) expired before they were loaded")


# fault B07: these versions have no DeleteRecords, so the test deletes segment files, as retention does
@pytest.mark.parametrize("version", WITHOUT_DELETE_RECORDS)
@pytest.mark.matrix("expired")
def test_segments_that_expired_before_they_were_loaded_are_reported_as_a_range(
    version: str, chroot: str, topic: str, open_lake: Callable[..., BrokerLake], tmp_path: Path
) -> None:
    lake = open_lake(ClusterSettings(zookeeper=chroot))
    with RealBroker(version, tmp_path / "broker", zookeeper=chroot) as broker:
        broker.create_topic(topic, config={"segment.bytes": "20000"})
        broker.produce(topic, RECORDS)
        assert lake.load(topic).rows == len(RECORDS)
        for _ in range(10):
            broker.produce(topic, RECORDS)
        broker.stop()
        *expired, newest = sorted((tmp_path / "broker" / "logs" / f"{topic}-0").glob("*.log"))
        for segment in expired:
            for file in segment.parent.glob(f"{segment.stem}.*"):
                file.unlink()
        broker.start()
        start = int(newest.stem)
        assert start > len(RECORDS)
        assert refused(lake, topic).startswith(f"CursorExpired: offsets [40, {start}) expired")
