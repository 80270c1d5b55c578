"""Where a producer of 0.7 sends: what is registered, and partition 0 where the topic is not yet."""

from kafka_io.model import BrokerPartition, TopicEntry
from kafka_io.producer.v07_brokers import writable_partitions


def partitions(*both: tuple[int, int]) -> tuple[BrokerPartition, ...]:
    return tuple(BrokerPartition(broker, partition) for broker, partition in both)


def test_a_topic_that_is_nowhere_goes_to_partition_0_of_each_broker() -> None:
    assert writable_partitions(None, {2, 1}) == (partitions((1, 0), (2, 0)), {1, 2})


def test_a_broker_that_lacks_the_topic_gets_partition_0_beside_what_is_registered() -> None:
    entry = TopicEntry(name="clicks", incarnation="7", partitions=partitions((1, 0), (1, 1)))
    assert writable_partitions(entry, {1, 2}) == (partitions((1, 0), (1, 1), (2, 0)), {2})


def test_a_broker_that_is_away_is_not_sent_to() -> None:
    entry = TopicEntry(name="clicks", incarnation="7", partitions=partitions((1, 0), (3, 0)))
    assert writable_partitions(entry, {1}) == (partitions((1, 0)), set())
