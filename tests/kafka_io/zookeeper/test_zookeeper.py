"""Watches of the registry, and names that never reach ZooKeeper."""

import queue
from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import NodeMalformed
from kafka_io.zookeeper.zookeeper import Registry

pytestmark = pytest.mark.zookeeper


# fault Z02
def test_a_watch_is_called_after_each_change_also_in_a_new_session(
    kafka: Any, registry: Registry, expire: Callable[[Registry], None]
) -> None:
    hints: queue.SimpleQueue[int] = queue.SimpleQueue()
    registry.watch(lambda: hints.put(1))
    for path in ("/brokers/topics/clicks", "/brokers/ids/0", "/brokers/topics/views"):
        registry.topics()  # an answer behind the watches: they are set
        kafka.create(path)
        assert hints.get(timeout=30)
    expire(registry)
    assert [hints.get(timeout=30), hints.get(timeout=30)]  # one per watched node: something may have been missed
    registry.topics()
    kafka.create("/brokers/topics/more")
    assert hints.get(timeout=30)


def test_an_illegal_topic_is_not_registered(kafka: Any, registry: Registry) -> None:
    with pytest.raises(NodeMalformed):
        registry.register_topic("../ids", 0, 1)
    assert kafka.get_children("/brokers/ids") == []
