"""Watches of topics and brokers, and names that never reach ZooKeeper."""

import queue
from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import NodeMalformed
from kafka_io.zookeeper.zookeeper import ZooKeeper

pytestmark = pytest.mark.zookeeper


# fault Z02
def test_a_watch_is_called_after_each_change_also_in_a_new_session(
    kafka: Any, zookeeper: ZooKeeper, expire: Callable[[ZooKeeper], None]
) -> None:
    hints: queue.SimpleQueue[int] = queue.SimpleQueue()
    zookeeper.watch(lambda: hints.put(1))
    for path in ("/brokers/topics/clicks", "/brokers/ids/0", "/brokers/topics/views"):
        zookeeper.topics()  # an answer behind the watches: they are set
        kafka.create(path)
        assert hints.get(timeout=30)
    expire(zookeeper)
    assert [hints.get(timeout=30), hints.get(timeout=30)]  # one per watched node: something may have been missed
    zookeeper.topics()
    kafka.create("/brokers/topics/more")
    assert hints.get(timeout=30)


def test_an_illegal_topic_is_not_registered(kafka: Any, zookeeper: ZooKeeper) -> None:
    with pytest.raises(NodeMalformed):
        zookeeper.register_topic("../ids", 0, 1)
    assert kafka.get_children("/brokers/ids") == []
