"""The subscription of a consumer: topics by name, or all topics that match a pattern."""

import re
from collections.abc import Iterable

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.errors import KafkaIOError
from kafka_io.messages.listed_topics import is_topic_name


class TopicSubscription:
    """Topic names, or a regular expression for whole names; a pattern never matches Kafka's own topics.

    Raises:
        ValueError: none or both are given, or the pattern is not a regular expression.
    """

    def __init__(self, topics: Iterable[str] | None, pattern: str | None) -> None:
        self._names = frozenset(topics or ())
        if bool(self._names) == (pattern is not None):
            raise ValueError("subscribe either to topics or to a pattern")
        try:
            self._pattern = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error

    def resolve(self, metadata: ClusterMetadata) -> frozenset[str]:
        """The names of the subscribed topics; a pattern is matched with the topics that exist now.

        Raises:
            NetworkError: no broker can be reached.
        """
        if self._pattern is None:
            return self._names
        return frozenset(
            name
            for topic in metadata.all_topics().topics
            if not topic.is_internal and not topic.error_code and (name := topic.name) and is_topic_name(name)
            if self._pattern.fullmatch(name)
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
