"""Our client of ZooKeeper reads what real brokers write to ZooKeeper."""

import base64
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_io.model import Broker, BrokerPartition
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.brokers.real import RealBroker
from tests.zookeeper_nodes import partition_states, registered_endpoints

pytestmark = pytest.mark.brokers


def until(holds: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# fault B06
@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2", "2.8.2"])
def test_zookeeper_contains_the_brokers_and_topics_of_a_real_cluster(version: str, chroot: str, tmp_path: Path) -> None:
    listeners = {} if version == "0.8.2.2" else {"INTERNAL": "PLAINTEXT"}
    with (
        RealBroker(version, tmp_path, zookeeper=chroot, broker_id=7, listeners=listeners) as broker,
        ZooKeeper.open(chroot) as zookeeper,
    ):
        assert zookeeper.is_v07() is False
        assert zookeeper.brokers().entries == (Broker(7, "127.0.0.1", broker.port),)
        (endpoints,) = registered_endpoints(zookeeper).entries
        assert {endpoint.listener: endpoint.broker.port for endpoint in endpoints} == broker.ports
        assert (zookeeper.cluster_id() is not None) == (version != "0.8.2.2")
        assert zookeeper.topics().entries == ()

        broker.create_topic("clicks", 3)
        (topic,) = zookeeper.topics().entries
        assert topic.name == "clicks"
        assert topic.partitions == tuple(BrokerPartition(None, number) for number in range(3))
        states = partition_states(zookeeper, "clicks")
        assert {number: (state.leader, state.isr) for number, state in states.items()} == dict.fromkeys(
            range(3), (7, (7,))
        )
        if version == "2.8.2":
            assert len(base64.urlsafe_b64decode(topic.incarnation + "==")) == 16
            assert [topic_id.isdecimal() for topic_id in topic.also] == [True]
        else:
            assert topic.incarnation.isdecimal()
            assert topic.also == ()

        broker.delete_topic("clicks")
        until(lambda: zookeeper.topic("clicks") is None)
        broker.create_topic("clicks", 1)
        recreated = zookeeper.topic("clicks")
        assert recreated is not None
        assert not {recreated.incarnation, *recreated.also} & {topic.incarnation, *topic.also}
    with ZooKeeper.open(chroot) as zookeeper:
        assert zookeeper.brokers().entries == ()
        assert zookeeper.is_v07() is False
        assert [registered_topic.incarnation for registered_topic in zookeeper.topics().entries] == [
            recreated.incarnation
        ]


def test_a_topic_that_is_only_marked_for_deletion_is_skipped_but_can_be_looked_up(chroot: str, tmp_path: Path) -> None:
    """0.8 and 0.9 delete topics only with delete.topic.enable. Otherwise the mark stays and the topic still works."""
    config = {"delete.topic.enable": "false"}
    with (
        RealBroker("0.8.2.2", tmp_path, zookeeper=chroot, config=config) as broker,
        ZooKeeper.open(chroot) as zookeeper,
    ):
        broker.create_topic("clicks")
        nodes = KazooClient(chroot)
        nodes.start()
        nodes.create("/admin/delete_topics/clicks")
        nodes.stop()
        nodes.close()
        assert [node.path for node in zookeeper.topics().skipped] == ["/brokers/topics/clicks"]
        topic = zookeeper.topic("clicks")
        assert topic is not None
        assert topic.partitions == (BrokerPartition(None, 0),)
