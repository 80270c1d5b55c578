"""The brokers of 0.7 that a producer sends to: as ZooKeeper has them now, or a fixed list (seeds 000 and 003)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_io.client.v07.targets import Targets
from kafka_io.closing import Closing
from kafka_io.errors import RegistryError, Where
from kafka_io.model import Broker, BrokerPartition
from kafka_io.registry.zookeeper import Registry
from kafka_io.v07.messages import RANDOM_PARTITION

_INCOMPLETE_S = 1.0  # how long a listing holds in which a broker has not registered the topic yet


class Brokers07(Protocol):
    """Which brokers there are, and which partitions of a topic they have."""

    def targets(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions, sorted; one at least."""
        ...

    def broker(self, broker_id: int) -> Broker | None:
        """Where a broker is; None if there is no such."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class FixedBrokers:
    """A list of brokers, as 0.7's `broker.list`: each of them picks a partition for each request."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = {broker.id: broker for broker in brokers}

    def targets(self, topic: str) -> Sequence[BrokerPartition]:  # noqa: ARG002 - all topics are alike
        """Partition -1 of each broker."""
        return [BrokerPartition(broker, RANDOM_PARTITION) for broker in sorted(self._brokers)]

    def broker(self, broker_id: int) -> Broker | None:
        """Where a broker is."""
        return self._brokers.get(broker_id)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """The targets of a topic, and until when they may be taken as true."""

    targets: tuple[BrokerPartition, ...]
    until_s: float


class RegisteredBrokers(Closing):
    """Brokers as they are registered: one that comes or goes changes the list.

    The watch on brokers and topics is a hint that makes everything be listed anew (Z02); so does the age of a listing.
    """

    def __init__(self, registry: Registry, *, max_age_s: float) -> None:
        self._registry = registry
        self._max_age_s = max_age_s
        self._brokers: Mapping[int, Broker] = {}
        self._topics: dict[str, _Listed] = {}
        self._changed = True
        registry.watch(self._change)

    def _change(self) -> None:
        self._changed = True

    def targets(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions that are registered, and partition 0 of each broker that has not registered the topic yet.

        Raises:
            RegistryError: no broker is registered, or ZooKeeper gives no answer.
        """
        if self._changed:
            self._changed = False  # first: what changes from here on is seen the next time
            self._topics.clear()
        listed = self._topics.get(topic)
        if listed is None or time.monotonic() >= listed.until_s:
            listed = self._topics[topic] = self._list(topic)
        return listed.targets

    def _list(self, topic: str) -> _Listed:
        try:
            self._brokers = {broker.id: broker for broker in self._registry.brokers().found}
            entry = self._registry.topic(topic)
        except RegistryError:
            self._changed = True
            raise
        if not self._brokers:
            raise RegistryError("no broker is registered", Where(topic=topic))
        found = Targets.of(entry, self._brokers.keys())
        holds_s = _INCOMPLETE_S if found.lacking else self._max_age_s
        return _Listed(targets=found.all, until_s=time.monotonic() + holds_s)

    def broker(self, broker_id: int) -> Broker | None:
        """Where a broker is, as it was listed last."""
        return self._brokers.get(broker_id)

    def close(self) -> None:
        """End the session with ZooKeeper."""
        self._registry.close()
