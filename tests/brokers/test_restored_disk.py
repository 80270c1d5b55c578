"""A load stops if the disk of a broker was put back to an older copy, although the topic still has the same id."""

import shutil
from pathlib import Path

import pytest

from kafka_io.model import Bounds, BrokerPartition
from resources.kafka import open_cluster
from resources.settings.choices import Choices
from resources.settings.settings import ClusterSettings
from tests.brokers.broker_lake import CLUSTER, BrokerLake
from tests.brokers.reading import read
from tests.brokers.real import RealBroker

pytestmark = pytest.mark.brokers

ONLY = BrokerPartition(None, 0)
FIRST, SECOND, OTHER = ([(b"key", b"%s %d" % (kind, number)) for number in range(60)] for kind in (b"1", b"2", b"3"))


def shown(lake: BrokerLake, topic: str) -> tuple[str, int]:
    """The topic id and the leader epoch that the broker shows now."""
    with open_cluster(lake.settings, CLUSTER) as cluster:
        entry, bounds = cluster.topic(topic), cluster.bounds(topic, [ONLY])[ONLY]
    assert entry is not None
    assert isinstance(bounds, Bounds)
    return entry.ids.topic_id, bounds.epoch


# faults A01, A02, B02: each start of the broker has another leader epoch
def test_a_disk_that_was_put_back_stops_the_load_with_a_lower_and_with_an_equal_epoch(
    topic: str, tmp_path: Path
) -> None:
    # A broker that ends in order gives up its partitions, so the next start has another epoch.
    broker = RealBroker("3.9.1", tmp_path / "broker", config={"controlled.shutdown.enable": "true"})
    copy, disk = tmp_path / "copy", tmp_path / "broker" / "logs"
    lake = BrokerLake(tmp_path, None, ClusterSettings(bootstrap=broker.bootstrap))
    with broker:
        broker.create_topic(topic)
        broker.produce(topic, FIRST)
    shutil.copytree(disk, copy)
    with broker:
        pass
    with broker:
        broker.produce(topic, SECOND)
        assert (lake.load(topic).error, lake.table(topic).num_rows) == (None, 120)
        topic_id, epoch = shown(lake, topic)
    shutil.rmtree(disk)
    shutil.copytree(copy, disk)
    with broker:
        broker.produce(topic, [*OTHER, *OTHER])
        assert shown(lake, topic)[0] == topic_id
        assert shown(lake, topic)[1] < epoch
        check_refused(lake, topic)
    with broker:
        assert shown(lake, topic) == (topic_id, epoch)
        check_refused(lake, topic)
        lake.settings = lake.settings.model_copy(update={"choices": Choices(on_truncated="rewind")})
        assert lake.load(topic).error is None
        assert lake.rows(topic) == read(broker, topic)
        assert lake.prove_deeply(topic).problems == ()


def check_refused(lake: BrokerLake, topic: str) -> None:
    """Check that a load stops, and says from which offset on the log has other records."""
    load = lake.load(topic)
    assert str(load.error).startswith("LogTruncated: offsets [60, 120) are in the table, but the log was truncated")
    assert (load.rows, lake.table(topic).num_rows) == (0, 120)
