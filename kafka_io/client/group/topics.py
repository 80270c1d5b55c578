"""What a consumer subscribes to: topics by their names, or all that a pattern matches now."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kafka_io.client.modern.brokers import Brokers
from kafka_io.errors import KafkaIOError


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Names, or a regular expression that the whole name of a topic must match; Kafka's own topics never do.

    Raises:
        ValueError: neither is given, or both are, or a pattern that is none.
    """

    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if bool(self.names) == (self.pattern is not None):
            raise ValueError("a subscription is either to topics or to a pattern")

    @classmethod
    def of(cls, topics: Iterable[str] | None, pattern: str | None) -> "Topics":
        """As a caller says it. Same errors as the class."""
        try:
            return cls(names=frozenset(topics or ()), pattern=re.compile(pattern) if pattern is not None else None)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error

    def among(self, brokers: Brokers) -> frozenset[str]:
        """The topics themselves, by what the brokers have now.

        Raises:
            NetworkError: no broker can be reached.
        """
        if self.pattern is None:
            return self.names
        listed = brokers.all_topics().topics
        return frozenset(
            one.name
            for one in listed
            if one.name and not one.is_internal and not one.error_code and self.pattern.fullmatch(one.name)
        )


def partition_counts(brokers: Brokers, topics: Iterable[str]) -> dict[str, int]:
    """How many partitions each topic has, asked afresh. Those that are not there or cannot be looked at are left out.

    Raises:
        NetworkError: no broker can be reached.
    """
    names = sorted(topics)
    for name in names:
        brokers.forget(name)
    brokers.learn(names)
    counts = {}
    for name in names:
        try:
            found = brokers.topic(name)
        except KafkaIOError as error:
            if error.retriable:
                raise
            continue
        if found is not None and found.partitions:
            counts[name] = len(found.partitions)
    return counts
