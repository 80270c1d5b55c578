"""The subscription of a consumer: topics by name, or all topics that match a pattern."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.errors import KafkaIOError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSubscription:
    """Topic names, or a regular expression for whole names; a pattern never matches Kafka's own topics.

    Raises:
        ValueError: none or both are given, or the pattern is not a regular expression.
    """

    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if bool(self.names) == (self.pattern is not None):
            raise ValueError("subscribe either to topics or to a pattern")

    @classmethod
    def of(cls, topics: Iterable[str] | None, pattern: str | None) -> "TopicSubscription":
        """From a caller's arguments. Raises what the class raises."""
        try:
            return cls(names=frozenset(topics or ()), pattern=re.compile(pattern) if pattern is not None else None)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error

    def resolve(self, metadata: ClusterMetadata) -> frozenset[str]:
        """The names of the subscribed topics; a pattern is matched with the topics that exist now.

        Raises:
            NetworkError: no broker can be reached.
        """
        if self.pattern is None:
            return self.names
        return frozenset(
            topic.name
            for topic in metadata.all_topics().topics
            if topic.name and not topic.is_internal and not topic.error_code and self.pattern.fullmatch(topic.name)
        )


def partition_counts(metadata: ClusterMetadata, topics: Iterable[str]) -> dict[str, int]:
    """The number of partitions of each topic, newly requested. Topics that do not exist or are forbidden are left out.

    Raises:
        NetworkError: no broker can be reached.
    """
    names = sorted(topics)
    for name in names:
        metadata.forget(name)
    metadata.learn(names)
    counts = {}
    for name in names:
        try:
            topic = metadata.topic(name)
        except KafkaIOError as error:
            if error.retriable:
                raise
            continue
        if topic is not None and topic.partitions:
            counts[name] = len(topic.partitions)
    return counts
