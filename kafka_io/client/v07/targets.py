"""Where a producer of 0.7 sends a topic's messages (facts, 7)."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from kafka_io.model import BrokerPartition, TopicEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The partitions that are registered on brokers that are up, and the brokers that lack the topic."""

    registered: tuple[BrokerPartition, ...]
    lacking: frozenset[int]

    @classmethod
    def of(cls, entry: TopicEntry | None, brokers: AbstractSet[int]) -> Self:
        """Those of a topic that may not be registered at all."""
        registered = tuple(one for one in entry.partitions if one.holder in brokers) if entry else ()
        return cls(registered=registered, lacking=frozenset(brokers - {one.holder for one in registered}))

    @property
    def all(self) -> tuple[BrokerPartition, ...]:
        """Sorted; of a broker that lacks the topic partition 0, which makes it register the topic."""
        return tuple(sorted({*self.registered, *(BrokerPartition(broker, 0) for broker in self.lacking)}))
