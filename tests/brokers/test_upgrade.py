"""A cluster is upgraded from 0.10 with ZooKeeper to 4.1 with KRaft; its tables recognise their topic all the way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.settings.settings import ClusterSettings
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.migration import Migration
from tests.brokers.reading import read
from tests.brokers.real import RealBroker

pytestmark = pytest.mark.brokers

CODECS = ("none", "gzip")  # of the records in partitions 0 and 1
RECORDS = 100  # in each partition before each load
# How the loads into each lake find the cluster: by ZooKeeper (Z) or by bootstrap (B). Each version has two loads.
ADDRESSES = {
    "ZooKeeper as long as it exists": "ZZ ZZ BB",
    "bootstrap since 3.9": "ZZ BB BB",
    "always bootstrap": "BB BB BB",
    "to and fro": "ZB ZB BB",
}
LOADS = 6


class UpgradedTopic:
    """A topic of one broker that is loaded into several lakes."""

    def __init__(self, name: str, zookeeper: str, folder: Path) -> None:
        self._name = name
        self._zookeeper = zookeeper
        self._folder = folder
        self.loads = 0

    def load(self, broker: RealBroker) -> None:
        """Write new records, and load them into every lake."""
        self.produce(broker)
        for lake in ADDRESSES:
            address = ADDRESSES[lake].replace(" ", "")[self.loads]
            load = self.lake(lake, broker, address).load(self._name)
            assert (load.error, load.rows) == (None, RECORDS * len(CODECS)), (broker.version, lake)
        self.loads += 1

    def produce(self, broker: RealBroker) -> None:
        """Write new records into each partition."""
        first = self.loads * RECORDS
        records = [(b"key %d" % number, b"value " * (number % 9)) for number in range(first, first + RECORDS)]
        for partition, codec in enumerate(CODECS):
            broker.produce(self._name, records, partition=partition, codec=codec)

    def lakes(self, broker: RealBroker) -> Iterator[tuple[str, BrokerLake]]:
        """All lakes with their names, for loads by bootstrap."""
        return ((name, self.lake(name, broker, "B")) for name in ADDRESSES)

    def lake(self, name: str, broker: RealBroker, address: str) -> BrokerLake:
        """A lake, with settings that find the cluster by this address."""
        settings = {"Z": ClusterSettings(zookeeper=self._zookeeper), "B": ClusterSettings(bootstrap=broker.bootstrap)}
        return BrokerLake(self._folder / name, None, settings[address])


# faults N05, P08, P11, R28
def test_a_topic_that_is_loaded_before_between_and_after_upgrades_has_each_record_once(
    chroot: str, topic: str, tmp_path: Path
) -> None:
    upgraded, data = UpgradedTopic(topic, chroot, tmp_path / "lakes"), tmp_path / "broker"
    with RealBroker("0.10.2.2", data, zookeeper=chroot) as broker:
        broker.create_topic(topic, partitions=len(CODECS))
        upgraded.load(broker)
        upgraded.load(broker)
    with Migration(chroot, tmp_path / "controller") as migration:
        with RealBroker("3.9.1", data, zookeeper=chroot, config=migration.broker_config) as broker:
            upgraded.load(broker)
            migration.begin("3.9.1")
            upgraded.load(broker)
        migration.finish("3.9.1")
        with RealBroker("4.1.0", data, joins=migration.quorum) as broker:
            upgraded.load(broker)
            migration.finish("4.1.0")
            upgraded.load(broker)
            check_tables(upgraded, broker, topic)
            broker.delete_topic(topic)
            broker.create_topic(topic, partitions=len(CODECS))
            upgraded.produce(broker)
            for name, lake in upgraded.lakes(broker):
                assert str(lake.load(topic).error).startswith("TopicRecreated"), name


def check_tables(upgraded: UpgradedTopic, broker: RealBroker, topic: str) -> None:
    """Check that each lake has each record once, that no choice was needed, and which ids it has learned."""
    records, topic_ids = read(broker, topic, len(CODECS)), set()
    assert len(records) == upgraded.loads * RECORDS * len(CODECS)
    for name, lake in upgraded.lakes(broker):
        assert lake.rows(topic) == records, name
        assert lake.prove_deeply(topic).problems == (), name
        entries = lake.entries(topic)
        assert [entry.choices for entry in entries] == [()] * LOADS, name
        ids = entries[0].state.ids
        assert bool(ids.created_zxid) == ("Z" in ADDRESSES[name]), name
        topic_ids.add(ids.topic_id)
    [topic_id] = topic_ids
    assert topic_id
