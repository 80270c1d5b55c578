"""Committed offsets of groups on real brokers: other clients see our commits, and we see those of other clients."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_io.consumer.group_offsets import OffsetStorage, group_offsets
from kafka_io.model import BrokerPartition
from resources.kafka import open_cluster
from tests.brokers.broker_lake import CLUSTER, BrokerLake
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

RECORDS = [(b"key", b"value %d" % number) for number in range(40)]
P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)


@pytest.mark.parametrize("version", ["3.9.1"])
def test_another_client_sees_mirrored_cursors_and_its_commits_are_seen(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic, partitions=2)
    for partition, count in ((0, 40), (1, 15)):
        shared_broker.broker.produce(topic, RECORDS[:count], partition=partition)
    lake = open_lake(shared_broker.cluster_settings(mirror_group=topic))
    load = lake.load(topic)
    assert (load.error, load.rows, load.warnings) == (None, 55, ())
    address = f"{shared_broker.broker.host}:{shared_broker.broker.ports['PLAINTEXT']}"
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic})
    try:
        requested = [TopicPartition(topic, partition) for partition in (0, 1)]
        assert [committed.offset for committed in consumer.committed(requested, timeout=60)] == [40, 15]
        consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    finally:
        consumer.close()
    with open_cluster(lake.settings, CLUSTER) as cluster:
        assert group_offsets(cluster).fetch(topic) == {topic: {P0: 7, P1: 15}}


@pytest.mark.parametrize("storage", list(OffsetStorage))
@pytest.mark.parametrize("version", ["0.8.2.2", "0.9.0.1"])
def test_old_brokers_store_offsets_in_zookeeper_and_in_kafka(
    version: str,
    storage: OffsetStorage,
    shared: Callable[[str], SharedBroker],
    topic: str,
    open_lake: Callable[..., BrokerLake],
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic, partitions=2)
    with open_cluster(open_lake(shared_broker.cluster_settings()).settings, CLUSTER) as cluster:
        offsets = group_offsets(cluster, storage)
        assert offsets.fetch(topic, [topic])[topic].get(P0) is None
        offsets.commit(topic, {topic: {P0: 7}})
        assert offsets.fetch(topic, [topic])[topic][P0] == 7
