"""Sends requests about many partitions to their leaders: one request to each leader, however many it leads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata, Leader
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import TopicPartition

T = TypeVar("T")

PartitionLeaders = Mapping[TopicPartition, Leader]
PartitionAnswers = dict[TopicPartition, T | KafkaIOError]


def ask_leaders(
    metadata: ClusterMetadata,
    partitions: Iterable[TopicPartition],
    ask: Callable[[ModernBrokerConnection, PartitionLeaders], PartitionAnswers[T]],
) -> PartitionAnswers[T]:
    """The answer or the error for each partition. After a retriable error the request is repeated at the new leader.

    Args:
        metadata: the metadata of the cluster.
        partitions: partitions of any topics.
        ask: sends a request to one leader, about partitions that it leads. An error that it raises counts for all of
            these partitions.
    """
    answers: PartitionAnswers[T] = {}
    pending = sorted(set(partitions))

    def attempt() -> None:
        nonlocal pending
        errors: dict[TopicPartition, KafkaIOError] = {}
        for connection, leaders in _group_by_leader(metadata, pending, errors):
            try:
                received = ask(connection, leaders)
            except KafkaIOError as error:
                received = dict.fromkeys(leaders, error)
            for partition, answer in received.items():
                if isinstance(answer, KafkaIOError):
                    errors[partition] = answer.with_context(_where(partition).within(connection.where))
                else:
                    answers[partition] = answer
        answers.update(errors)
        pending = sorted(partition for partition, error in errors.items() if error.retriable)
        if pending:
            for topic in by_topic(pending):
                metadata.forget(topic)
            raise errors[pending[0]]

    try:
        metadata.retry(attempt)
    except KafkaIOError as error:
        # The last attempt has stored the errors of its partitions, unless it failed before the first request.
        for partition in pending:
            answers.setdefault(partition, error.with_context(_where(partition)))
    return answers


def for_each(partitions: Iterable[TopicPartition], answer: Callable[[TopicPartition], T]) -> PartitionAnswers[T]:
    """The answer for each partition; an error that `answer` raises is that of its partition only."""
    answers: PartitionAnswers[T] = {}
    for partition in partitions:
        try:
            answers[partition] = answer(partition)
        except KafkaIOError as error:
            answers[partition] = error
    return answers


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions by topic, in the given order."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _group_by_leader(
    metadata: ClusterMetadata, partitions: Sequence[TopicPartition], errors: dict[TopicPartition, KafkaIOError]
) -> Iterable[tuple[ModernBrokerConnection, PartitionLeaders]]:
    """Each leader with its partitions; the error of a partition without a leader is added to `errors`."""
    metadata.learn(by_topic(partitions))
    groups: dict[ModernBrokerConnection, dict[TopicPartition, Leader]] = {}
    leaders_by_partition = for_each(partitions, lambda partition: metadata.leader(partition.topic, partition.partition))
    for partition, leader in leaders_by_partition.items():
        if isinstance(leader, KafkaIOError):
            errors[partition] = leader
        else:
            groups.setdefault(leader.connection, {})[partition] = leader
    return groups.items()


def _where(partition: TopicPartition) -> Where:
    return Where(topic=partition.topic, partition=partition.partition)
