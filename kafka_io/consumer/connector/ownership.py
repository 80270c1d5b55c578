"""The partitions that a member owns: taken and released as the group changes, and their offsets committed.

One lock covers every change in ZooKeeper, so that no commit comes between the steps of a rebalance. A genuine consumer
releases all its partitions in a rebalance and takes its new share. This one releases only the partitions that move to
others, and reads the rest without a break.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.consumer.connector.claim import PartitionClaim
from kafka_io.consumer.connector.fetcher import ConnectorFetcher
from kafka_io.consumer.connector.options import ConnectorOptions
from kafka_io.errors import KafkaIOError, RegistryUnavailable
from kafka_io.model import TopicPartition
from kafka_io.registry.dialect import RegistryFormat
from kafka_io.registry.listing import NodeVanished
from kafka_io.registry.members import ConsumerSubscription, thread_id
from kafka_io.registry.membership import ConsumerGroupView, ConsumerRegistration
from kafka_io.registry.rebalance import assign

_LOG = logging.getLogger(__name__)

EVERY_TOPIC = ""
"""Stands for a topic's name where streams read all topics that a filter allows."""


@dataclass(frozen=True, slots=True)
class _OwnedPartition:
    claim: PartitionClaim
    fetcher: ConnectorFetcher

    def stays_with(self, fetcher: ConnectorFetcher | None) -> bool:
        """Whether this fetcher continues to read it. A revoked claim was not released in time and is taken again."""
        return fetcher is self.fetcher and not self.claim.revoked


class PartitionOwnership:
    """The claims of one member. Any thread may use it.

    Args:
        streams: the fetchers of the streams in order, by topic or for EVERY_TOPIC.
        on_change: called on another thread when the group, its topics or the brokers may have changed.
    """

    def __init__(
        self,
        registration: ConsumerRegistration,
        *,
        subscription: ConsumerSubscription,
        registry_format: RegistryFormat,
        streams: Mapping[str, Sequence[ConnectorFetcher]],
        options: ConnectorOptions,
        on_change: Callable[[], None],
    ) -> None:
        self._registration = registration
        self._subscription = subscription
        self._value = subscription.value(registry_format, timestamp_ms=time.time_ns() // 1_000_000)
        self._streams = streams
        self._fetchers = [fetcher for fetchers in streams.values() for fetcher in fetchers]
        self._options = options
        self._on_change = on_change
        self._lock = threading.RLock()
        self._session_id: int | None = None
        self._owned: dict[TopicPartition, _OwnedPartition] = {}

    def rebalance(self) -> bool:
        """Take this member's share of the group's partitions; False while others still own some of it.

        Raises:
            RegistryError: ZooKeeper does not answer, or its nodes are not valid. Owned partitions are read on.
        """
        with self._lock:
            session_id = self._registration.session_id
            if not self._registration.join(self._value):
                _LOG.warning("another consumer with the name %r is in the group", self._registration.member)
                return False
            view = self._registration.group_view(self._subscription, _skip)
            if self._registration.watch(view.partitions, self._on_change):
                # A change between the listing and the new watches would go unnoticed: list once more.
                view = self._registration.group_view(self._subscription, _skip)
            if self._session_id not in {None, session_id}:
                _LOG.warning("the session with ZooKeeper was replaced by a new one: the group is joined again")
            self._session_id = session_id
            share = self._share(view)
            self._release([key for key, owned in self._owned.items() if not owned.stays_with(share.get(key))])
            complete = self._take(share)
            for fetcher in self._fetchers:
                fetcher.assign(owned.claim for owned in self._owned.values() if owned.fetcher is fetcher)
            return complete

    def commit(self, offset_of: Callable[[PartitionClaim], int | None]) -> None:
        """Commit the offsets of all claims that differ from those in ZooKeeper.

        Raises:
            RegistryUnavailable: no answer, or the session is lost and the ownership with it.
        """
        with self._lock:
            self._commit([owned.claim for owned in self._owned.values()], offset_of)

    def commit_claim(self, claim: PartitionClaim) -> None:
        """Commit the offset of one claim, unless it is revoked.

        Raises:
            RegistryUnavailable: as in `commit`.
        """
        with self._lock:
            if not claim.revoked:
                self._commit([claim], lambda claim: claim.processed)

    def revoke_all(self) -> None:
        """Deliver no more messages."""
        with self._lock:
            for owned in self._owned.values():
                owned.claim.revoke()

    def _share(self, view: ConsumerGroupView) -> dict[TopicPartition, ConnectorFetcher]:
        """This member's partitions, each with the fetcher of the stream that consumes it."""
        share = {}
        for topic, partitions in view.partitions.items():
            assigned = assign(partitions, view.threads[topic])
            for stream, fetcher in enumerate(self._streams.get(topic) or self._streams[EVERY_TOPIC]):
                for partition in assigned.get(thread_id(self._registration.member, stream), ()):
                    share[TopicPartition.of(topic, partition)] = fetcher
        return share

    def _release(self, partitions: Sequence[TopicPartition]) -> None:
        """Release partitions; those of a lost session are only dropped.

        The order matters: nothing more is delivered, then the offsets are committed, then the owner nodes are deleted.
        The next owner starts at the committed offsets.
        """
        claims = [self._owned[partition].claim for partition in partitions]
        for claim in claims:
            claim.revoke()
        current = [claim for claim in claims if claim.session_id == self._session_id]
        self._commit(current, lambda claim: claim.processed)
        self._registration.release([claim.topic_partition for claim in current], self._session_id)
        for partition in partitions:
            del self._owned[partition]

    def _take(self, share: Mapping[TopicPartition, ConnectorFetcher]) -> bool:
        """Take the partitions of the share that are not owned in this session; False if others still own some.

        A partition that was owned in a lost session, and that another consumer has now, is revoked.
        """
        missing = {
            partition: thread_id(self._registration.member, self._stream_of(fetcher))
            for partition, fetcher in share.items()
            if partition not in self._owned or self._owned[partition].claim.session_id != self._session_id
        }
        taken = self._registration.take(missing, self._session_id)
        offsets = self._registration.offsets({partition.topic for partition in taken})
        for partition in missing:
            previous = self._owned.pop(partition, None)
            offset = offsets.get(partition)
            if previous and partition in taken and previous.claim.committed == offset:
                # The committed offset did not change, so nobody else read the partition: it is read on without a break.
                previous.claim.session_id = self._session_id
                self._owned[partition] = previous
                continue
            if previous:
                previous.claim.revoke()
            if partition in taken:
                claim = PartitionClaim(partition, self._session_id, offset, fetch_bytes=self._options.fetch_bytes)
                self._owned[partition] = _OwnedPartition(claim, share[partition])
        not_taken = missing.keys() - taken
        if not_taken:
            _LOG.info(
                "others still own %d partitions of this consumer's share, first %s", len(not_taken), min(not_taken)
            )
        return not not_taken

    def _stream_of(self, fetcher: ConnectorFetcher) -> int:
        return next(fetchers.index(fetcher) for fetchers in self._streams.values() if fetcher in fetchers)

    def _commit(self, claims: Sequence[PartitionClaim], offset_of: Callable[[PartitionClaim], int | None]) -> None:
        offsets = {claim: offset_of(claim) for claim in claims}
        moved = {claim: offset for claim, offset in offsets.items() if offset is not None and offset != claim.committed}
        lost = any(claim.session_id != self._session_id for claim in moved)
        by_partition = {claim.topic_partition: offset for claim, offset in moved.items()}
        if lost or not self._registration.commit(by_partition, self._session_id):
            raise RegistryUnavailable(
                "the session with ZooKeeper was lost, and the ownership of partitions with it: no offset is committed"
            )
        for claim, offset in moved.items():
            claim.committed = offset


def _skip(path: str, error: KafkaIOError) -> None:
    if not isinstance(error, NodeVanished):
        _LOG.warning("a topic of the group is skipped because of the node %r: %s", path, error)
