"""What cannot be gone on with is refused, with the range or the life it is about, and the table stays as it is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from resources.settings import ClusterSettings
from tests.brokers.lakeside import Lakeside
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

WITHOUT_DELETE_RECORDS = VERSIONS[:3]
RECORDS = [(b"key %d" % number, b"value " * number) for number in range(40)]


def refused(lakeside: Lakeside, topic: str) -> str:
    """Why the next load fails; it changes nothing."""
    rows, proof = lakeside.rows(topic), lakeside.prove(topic)
    load = lakeside.load(topic)
    assert load.error is not None
    assert (load.rows, lakeside.rows(topic), lakeside.prove(topic)) == (0, rows, proof)
    return load.error


# faults B05, B06: told by the topic's id where it has one, else by its node in ZooKeeper; the new log is as long as the
# old
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.matrix("recreated")
def test_a_topic_that_was_deleted_and_made_anew_is_refused(
    version: str, shared: Callable[[str], SharedBroker], topic: str, beside: Callable[..., Lakeside]
) -> None:
    there = shared(version)
    lakeside = beside(there.found())
    there.broker.create_topic(topic)
    there.broker.produce(topic, RECORDS)
    assert lakeside.load(topic).rows == len(RECORDS)
    there.broker.delete_topic(topic)
    there.broker.create_topic(topic)
    there.broker.produce(topic, RECORDS * 2)
    assert refused(lakeside, topic).startswith("TopicRecreated")


# fault B07
@pytest.mark.parametrize("version", [version for version in VERSIONS if version not in WITHOUT_DELETE_RECORDS])
@pytest.mark.matrix("expired")
def test_records_that_are_gone_before_they_were_loaded_are_told_as_a_range(
    version: str, shared: Callable[[str], SharedBroker], topic: str, beside: Callable[..., Lakeside]
) -> None:
    there = shared(version)
    lakeside = beside(there.found())
    there.broker.create_topic(topic)
    there.broker.produce(topic, RECORDS)
    assert lakeside.load(topic).rows == len(RECORDS)
    there.broker.produce(topic, RECORDS)
    admin = AdminClient({"bootstrap.servers": there.broker.bootstrap})
    gone = TopicPartition(topic, 0, len(RECORDS) + 7)
    admin.delete_records([gone])[gone].result(30)
    assert refused(lakeside, topic).startswith("CursorExpired: offsets [40, 47) expired before they were loaded")


# fault B07: these have no request for it, so we take away a segment as retention does
@pytest.mark.parametrize("version", WITHOUT_DELETE_RECORDS)
@pytest.mark.matrix("expired")
def test_segments_that_are_gone_before_they_were_loaded_are_told_as_a_range(
    version: str, chroot: str, topic: str, beside: Callable[..., Lakeside], tmp_path: Path
) -> None:
    lakeside = beside(ClusterSettings(zookeeper=chroot))
    with RealBroker(version, tmp_path / "broker", zookeeper=chroot) as broker:
        broker.create_topic(topic, config={"segment.bytes": "20000"})
        broker.produce(topic, RECORDS)
        assert lakeside.load(topic).rows == len(RECORDS)
        for _ in range(10):
            broker.produce(topic, RECORDS)
        broker.stop()
        *old, newest = sorted((tmp_path / "broker" / "logs" / f"{topic}-0").glob("*.log"))
        for segment in old:
            for file in segment.parent.glob(f"{segment.stem}.*"):
                file.unlink()
        broker.start()
        begins = int(newest.stem)
        assert begins > len(RECORDS)
        assert refused(lakeside, topic).startswith(f"CursorExpired: offsets [40, {begins}) expired")
