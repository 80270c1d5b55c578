"""A broker from 0.8 on registers itself and its topics in a real ZooKeeper."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_io.messages.delete_topics import DeleteTopic, DeleteTopicsRequest
from kafka_io.model import Broker, Generation
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import TIMEOUT_S
from tests.zookeeper_nodes import PartitionState, partition_states

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def nodes(chroot: str) -> Iterator[Any]:
    client = KazooClient(chroot)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def zookeeper(chroot: str) -> Iterator[ZooKeeper]:
    with ZooKeeper.open(chroot) as opened:
        yield opened


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def topics(zookeeper: ZooKeeper) -> dict[str, int]:
    return {topic.name: len(topic.partitions) for topic in zookeeper.topics().entries}


@pytest.mark.parametrize(("generation", "version"), [(Generation.V08, 1), (Generation.MODERN, 4)])
def test_a_broker_is_registered_while_it_runs(
    start_modern: StartModern, chroot: str, zookeeper: ZooKeeper, nodes: Any, generation: Generation, version: int
) -> None:
    broker = start_modern(zookeeper=chroot, broker_id=3, generation=generation)
    assert json.loads(nodes.get("/brokers/ids/3")[0])["version"] == version
    assert list(zookeeper.brokers().entries) == [Broker(3, "127.0.0.1", broker.port)]
    assert (zookeeper.cluster_id() is None) == (generation is Generation.V08)
    assert zookeeper.is_v07() is False
    broker.stop()
    assert list(zookeeper.brokers().entries) == []


def test_created_and_deleted_topics_appear_and_disappear_in_zookeeper(
    start_modern: StartModern, connect: Connect, chroot: str, zookeeper: ZooKeeper
) -> None:
    client = connect(start_modern(zookeeper=chroot, broker_id=3))
    client.create("clicks", 2)
    until(lambda: topics(zookeeper) == {"clicks": 2})
    state = PartitionState(leader=3, leader_epoch=0, isr=(3,), controller_epoch=1)
    until(lambda: partition_states(zookeeper, "clicks") == {0: state, 1: state})
    client.ask(DeleteTopicsRequest(topics=(DeleteTopic(name="clicks"),), timeout_ms=1))
    until(lambda: topics(zookeeper) == {})
    client.create("clicks", 1)
    until(lambda: topics(zookeeper) == {"clicks": 1})


def test_a_restart_registers_the_topics_of_the_data_directory(
    start_modern: StartModern, connect: Connect, chroot: str, zookeeper: ZooKeeper, nodes: Any
) -> None:
    """ZooKeeper has other partitions of the one topic, and no node of the other."""
    broker = start_modern(zookeeper=chroot)
    client = connect(broker)
    client.create("clicks", 2)
    client.create("views", 1)
    until(lambda: topics(zookeeper) == {"clicks": 2, "views": 1})
    before = zookeeper.topics().entries
    broker.stop()
    nodes.set("/brokers/topics/clicks", json.dumps({"version": 1, "partitions": {"0": [9]}}).encode())
    nodes.delete("/brokers/topics/views", recursive=True)
    start_modern(zookeeper=chroot)
    after = zookeeper.topics().entries
    assert [(topic.name, topic.incarnation, topic.partitions) for topic in after] == [
        (topic.name, topic.incarnation, topic.partitions) for topic in before
    ]
