"""Our registry reads what real brokers write to ZooKeeper."""

import base64
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_io.model import Broker, BrokerPartition
from kafka_io.zookeeper.zookeeper import Registry
from tests.brokers.real import RealBroker
from tests.registry_nodes import partition_states, registered_endpoints

pytestmark = pytest.mark.brokers


def until(holds: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# fault B06
@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2", "2.8.2"])
def test_the_registry_contains_the_brokers_and_topics_of_a_real_cluster(
    version: str, chroot: str, tmp_path: Path
) -> None:
    listeners = {} if version == "0.8.2.2" else {"INTERNAL": "PLAINTEXT"}
    with (
        RealBroker(version, tmp_path, zookeeper=chroot, broker_id=7, listeners=listeners) as broker,
        Registry.open(chroot) as registry,
    ):
        assert registry.is_v07() is False
        assert registry.brokers().entries == (Broker(7, "127.0.0.1", broker.port),)
        (endpoints,) = registered_endpoints(registry).entries
        assert {endpoint.listener: endpoint.broker.port for endpoint in endpoints} == broker.ports
        assert (registry.cluster_id() is not None) == (version != "0.8.2.2")
        assert registry.topics().entries == ()

        broker.create_topic("clicks", 3)
        (topic,) = registry.topics().entries
        assert topic.name == "clicks"
        assert topic.partitions == tuple(BrokerPartition(None, number) for number in range(3))
        states = partition_states(registry, "clicks")
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
        until(lambda: registry.topic("clicks") is None)
        broker.create_topic("clicks", 1)
        recreated = registry.topic("clicks")
        assert recreated is not None
        assert not {recreated.incarnation, *recreated.also} & {topic.incarnation, *topic.also}
    with Registry.open(chroot) as registry:
        assert registry.brokers().entries == ()
        assert registry.is_v07() is False
        assert [registered_topic.incarnation for registered_topic in registry.topics().entries] == [
            recreated.incarnation
        ]


def test_a_topic_that_is_only_marked_for_deletion_is_skipped_but_can_be_looked_up(chroot: str, tmp_path: Path) -> None:
    """0.8 and 0.9 delete topics only with delete.topic.enable. Otherwise the mark stays and the topic still works."""
    config = {"delete.topic.enable": "false"}
    with (
        RealBroker("0.8.2.2", tmp_path, zookeeper=chroot, config=config) as broker,
        Registry.open(chroot) as registry,
    ):
        broker.create_topic("clicks")
        nodes = KazooClient(chroot)
        nodes.start()
        nodes.create("/admin/delete_topics/clicks")
        nodes.stop()
        nodes.close()
        assert [node.path for node in registry.topics().skipped] == ["/brokers/topics/clicks"]
        topic = registry.topic("clicks")
        assert topic is not None
        assert topic.partitions == (BrokerPartition(None, 0),)
