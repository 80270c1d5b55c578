"""The partitions of 0.7 that a producer sends to: registered ones, and partition 0 of other running brokers."""

from kafka_io.model import BrokerPartition, TopicEntry
from kafka_io.producer.v07.brokers import writable_partitions


def partitions(*both: tuple[int, int]) -> tuple[BrokerPartition, ...]:
    return tuple(BrokerPartition(broker, partition) for broker, partition in both)


def test_an_unregistered_topic_goes_to_partition_0_of_each_broker() -> None:
    assert writable_partitions(None, {2, 1}) == (partitions((1, 0), (2, 0)), {1, 2})


def test_a_broker_that_has_not_registered_the_topic_has_partition_0() -> None:
    entry = TopicEntry(name="clicks", incarnation="7", partitions=partitions((1, 0), (1, 1)))
    assert writable_partitions(entry, {1, 2}) == (partitions((1, 0), (1, 1), (2, 0)), {2})


def test_the_partitions_of_a_broker_that_does_not_run_are_left_out() -> None:
    entry = TopicEntry(name="clicks", incarnation="7", partitions=partitions((1, 0), (3, 0)))
    assert writable_partitions(entry, {1}) == (partitions((1, 0)), set())
