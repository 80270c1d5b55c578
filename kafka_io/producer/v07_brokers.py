"""The brokers of 0.7 that a producer sends to: those registered in ZooKeeper, or a fixed list.

See [kafka-0.7: Producers].
"""

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from kafka_io.closing import Closing
from kafka_io.errors import RegistryError, Where
from kafka_io.model import Broker, BrokerPartition, TopicEntry
from kafka_io.registry.zookeeper import Registry
from kafka_io.v07.messages import RANDOM_PARTITION

_INCOMPLETE_LISTING_S = 1.0  # how long a listing is used while a broker has not registered the topic


class WritablePartitionSource07(Protocol):
    """Lists the brokers, and the partitions of a topic that can be written to."""

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions, sorted; at least one."""
        ...

    def unregistered(self, topic: str) -> AbstractSet[int]:
        """The ids of the brokers that have not registered the topic, from a new listing."""
        ...

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id; None if it is not known."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class FixedBrokers:
    """A fixed list of brokers, like `broker.list` of 0.7. Each broker picks a partition for each request."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = {broker.id: broker for broker in brokers}

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:  # noqa: ARG002 - the same for all topics
        """Partition -1 of each broker, which makes the broker pick one."""
        return [BrokerPartition(broker, RANDOM_PARTITION) for broker in sorted(self._brokers)]

    def unregistered(self, topic: str) -> AbstractSet[int]:  # noqa: ARG002 - the same for all topics
        """Always empty: without a registry there is no registration to wait for."""
        return frozenset()

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id; None if it is not in the list."""
        return self._brokers.get(broker_id)

    def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritablePartitions07:
    """The registered partitions of a topic on running brokers, and the running brokers that have not registered it."""

    registered: tuple[BrokerPartition, ...]
    unregistered: frozenset[int]

    @classmethod
    def of(cls, entry: TopicEntry | None, brokers: AbstractSet[int]) -> "WritablePartitions07":
        """From the registry's entry of a topic (None: not registered at all) and the ids of the running brokers."""
        partitions = entry.partitions if entry else ()
        registered = tuple(partition for partition in partitions if partition.holder in brokers)
        return cls(
            registered=registered, unregistered=frozenset(brokers - {partition.holder for partition in registered})
        )

    @property
    def all(self) -> tuple[BrokerPartition, ...]:
        """All writable partitions, sorted. A message to partition 0 makes an unregistered broker register the topic."""
        return tuple(sorted({*self.registered, *(BrokerPartition(broker, 0) for broker in self.unregistered)}))


class RegisteredBrokers(Closing):
    """The brokers that are registered in ZooKeeper; the list follows brokers that come and go.

    A watch may fail to fire (fault Z02), so a listing also expires by age.
    """

    def __init__(self, registry: Registry, *, max_age_s: float) -> None:
        self._registry = registry
        self._max_age_s = max_age_s
        self._brokers: Mapping[int, Broker] = {}
        self._listings: dict[str, tuple[WritablePartitions07, float]] = {}  # by topic, with the time of expiry
        self._changed = True
        registry.watch(self._on_change)

    def _on_change(self) -> None:
        self._changed = True

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The registered partitions, and partition 0 of each broker that has not registered the topic yet.

        Raises:
            RegistryError: no broker is registered, or ZooKeeper does not answer.
        """
        if self._changed:
            # The flag is cleared before the listing: a change during the listing sets it again.
            self._changed = False
            self._listings.clear()
        listing, expires_s = self._listings.get(topic, (None, 0.0))
        if listing is None or time.monotonic() >= expires_s:
            listing = self._list(topic)
        return listing.all

    def unregistered(self, topic: str) -> AbstractSet[int]:
        """The ids of the brokers that have not registered the topic. Raises what `partitions_for` does."""
        return self._list(topic).unregistered

    def _list(self, topic: str) -> WritablePartitions07:
        try:
            self._brokers = {broker.id: broker for broker in self._registry.brokers().found}
            entry = self._registry.topic(topic)
        except RegistryError:
            self._changed = True
            raise
        if not self._brokers:
            raise RegistryError("no broker is registered in ZooKeeper", Where(topic=topic))
        listing = WritablePartitions07.of(entry, self._brokers.keys())
        max_age_s = _INCOMPLETE_LISTING_S if listing.unregistered else self._max_age_s
        self._listings[topic] = listing, time.monotonic() + max_age_s
        return listing

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id, from the last listing."""
        return self._brokers.get(broker_id)

    def close(self) -> None:
        """End the session with ZooKeeper."""
        self._registry.close()
