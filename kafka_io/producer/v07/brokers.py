"""The brokers of 0.7 that a producer sends to: those registered in ZooKeeper, or a fixed list.

See [kafka-0.7: Producers].
"""

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kafka_io.brokers.bootstrap import BOOTSTRAP_ID
from kafka_io.closing import Closing
from kafka_io.errors import RegistryError, Where
from kafka_io.model import Broker, BrokerPartition, TopicEntry
from kafka_io.v07.messages import RANDOM_PARTITION
from kafka_io.zookeeper.zookeeper import ZooKeeper

_INCOMPLETE_LISTING_S = 1.0  # how long a listing is used while a broker has not registered the topic


class FixedBrokers:
    """A fixed list of brokers, like `broker.list` of 0.7. A broker picks a partition per request.

    0.7 has no request for the id of a broker. Without ids in the list, partitions name the place in it, from 0 on.
    """

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._has_ids = all(broker.id != BOOTSTRAP_ID for broker in brokers)
        by_place = (replace(broker, id=place) for place, broker in enumerate(brokers))
        self._brokers = {broker.id: broker for broker in (brokers if self._has_ids else by_place)}

    def stored_at(self, partition: BrokerPartition) -> BrokerPartition:
        """The partition as `Delivered` names it: a place in the list is no id, so its broker is None."""
        return partition if self._has_ids else replace(partition, broker=None)

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:  # noqa: ARG002 - the same for all topics
        """Partition -1 of each broker, which makes the broker pick one."""
        return [BrokerPartition(broker, RANDOM_PARTITION) for broker in sorted(self._brokers)]

    def unregistered(self, topic: str) -> AbstractSet[int]:  # noqa: ARG002 - the same for all topics
        """Always empty: without ZooKeeper there is no registration to wait for."""
        return frozenset()

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id or place; None if it is not in the list."""
        return self._brokers.get(broker_id)

    def close(self) -> None:
        """Nothing to release."""


def writable_partitions(
    entry: TopicEntry | None, brokers: AbstractSet[int]
) -> tuple[tuple[BrokerPartition, ...], AbstractSet[int]]:
    """The partitions of a topic that messages can be sent to, sorted, and the brokers that have not registered it.

    A broker registers a topic some time after its first message, which must go to partition 0. Partitions of brokers
    that do not run are left out.

    Args:
        entry: the topic in ZooKeeper; None if no broker has registered it.
        brokers: the ids of the running brokers.
    """
    registered = [partition for partition in (entry.partitions if entry else ()) if partition.holder in brokers]
    unregistered = brokers - {partition.holder for partition in registered}
    return tuple(sorted({*registered, *(BrokerPartition(broker, 0) for broker in unregistered)})), unregistered


class RegisteredBrokers(Closing):
    """The brokers that are registered in ZooKeeper; the list follows brokers that come and go.

    A watch may fail to fire (fault Z02), so a listing also expires by age.
    """

    def __init__(self, zookeeper: ZooKeeper, *, max_age_s: float) -> None:
        self._zookeeper = zookeeper
        self._max_age_s = max_age_s
        self._brokers: Mapping[int, Broker] = {}
        self._listings: dict[str, tuple[tuple[BrokerPartition, ...], float]] = {}  # by topic, with the time of expiry
        self._changed = True
        zookeeper.watch(self._on_change)

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
        partitions, expires_s = self._listings.get(topic, ((), 0.0))
        if not partitions or time.monotonic() >= expires_s:
            partitions, _ = self._list(topic)
        return partitions

    def unregistered(self, topic: str) -> AbstractSet[int]:
        """The ids of the brokers that have not registered the topic. Raises what `partitions_for` does."""
        _, unregistered = self._list(topic)
        return unregistered

    def _list(self, topic: str) -> tuple[tuple[BrokerPartition, ...], AbstractSet[int]]:
        try:
            self._brokers = {broker.id: broker for broker in self._zookeeper.brokers().entries}
            entry = self._zookeeper.topic(topic)
        except RegistryError:
            self._changed = True
            raise
        if not self._brokers:
            raise RegistryError("no broker is registered in ZooKeeper", Where(topic=topic))
        partitions, unregistered = writable_partitions(entry, self._brokers.keys())
        max_age_s = _INCOMPLETE_LISTING_S if unregistered else self._max_age_s
        self._listings[topic] = partitions, time.monotonic() + max_age_s
        return partitions, unregistered

    def stored_at(self, partition: BrokerPartition) -> BrokerPartition:
        """The partition as `Delivered` names it: brokers are registered with their ids."""
        return partition

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id, from the last listing."""
        return self._brokers.get(broker_id)

    def close(self) -> None:
        """End the session with ZooKeeper."""
        self._zookeeper.close()
