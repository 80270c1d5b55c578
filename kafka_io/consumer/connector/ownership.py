"""The partitions that a member owns: taken and released as the group changes, and their offsets committed.

One lock covers every change in ZooKeeper, so that no commit comes between the steps of a rebalance. A genuine consumer
releases all its partitions in a rebalance and takes its new share. This one releases only the partitions that move to
others, and reads the rest without a break.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_io.consumer.connector.stream_partition import StreamPartition
from kafka_io.errors import KafkaIOError, RegistryUnavailable
from kafka_io.model import TopicPartition
from kafka_io.zookeeper.listing import NodeVanished
from kafka_io.zookeeper.members import ConsumerSubscription, assign, thread_id
from kafka_io.zookeeper.membership import ConsumerGroupView, ConsumerRegistration
from kafka_io.zookeeper.node_format import NodeFormat

_LOG = logging.getLogger(__name__)


class PartitionOwnership:
    """The partitions of one member. Any thread may use it."""

    def __init__(
        self, registration: ConsumerRegistration, subscription: ConsumerSubscription, node_format: NodeFormat
    ) -> None:
        self._registration = registration
        self._subscription = subscription
        self._value = subscription.value(node_format, timestamp_ms=time.time_ns() // 1_000_000)
        self._lock = threading.RLock()
        self._session_id: int | None = None
        self._owned: dict[TopicPartition, StreamPartition] = {}

    @property
    def owned_partitions(self) -> tuple[StreamPartition, ...]:
        """The partitions that this member owns now."""
        with self._lock:
            return tuple(self._owned.values())

    def rebalance(self, on_change: Callable[[], None]) -> bool:
        """Take this member's share of the group's partitions; False while others still own some of it.

        `on_change` is called on another thread when the group, its topics or the brokers may have changed.

        Raises:
            RegistryError: ZooKeeper does not answer, or its nodes are not valid. Owned partitions are read on.
        """
        with self._lock:
            session_id = self._registration.session_id
            if not self._registration.join(self._value):
                _LOG.warning("another consumer with the name %r is in the group", self._registration.member)
                return False
            view = self._registration.group_view(self._subscription, _skip)
            if self._registration.watch(view.partitions, on_change):
                # A change between the listing and the new watches would go unnoticed: list once more.
                view = self._registration.group_view(self._subscription, _skip)
            if self._session_id not in {None, session_id}:
                _LOG.warning("the session with ZooKeeper was replaced by a new one: the group is joined again")
            self._session_id = session_id
            share = self._share(view)
            # A revoked partition was not released in time: it is released now, and may be taken again.
            self._release(
                [
                    owned
                    for partition, owned in self._owned.items()
                    if owned.revoked or share.get(partition) != owned.stream
                ]
            )
            return self._take(share)

    def commit_processed(self, owned: StreamPartition | None = None) -> None:
        """Commit the processed offset of one partition, unless it is revoked, or of all partitions.

        Errors are logged: the offsets are committed later, or their messages are read again.
        """
        with self._lock:
            try:
                if owned is None or not owned.revoked:
                    self._commit([owned] if owned else self.owned_partitions)
            except KafkaIOError as error:
                _LOG.warning("offsets cannot be committed now: %s", error)

    def commit_delivered(self) -> None:
        """Commit the offsets of all delivered messages, which count as processed from here on.

        Otherwise the next automatic commit would take the offset of the last message back.

        Raises:
            RegistryUnavailable: no answer, or the session is lost and the ownership with it.
        """
        with self._lock:
            for owned in self.owned_partitions:
                owned.mark_processed()
            self._commit(self.owned_partitions)

    def revoke_all(self) -> None:
        """Deliver no more messages."""
        for owned in self.owned_partitions:
            owned.revoke()

    def _share(self, view: ConsumerGroupView) -> dict[TopicPartition, int]:
        """This member's partitions, each with the number of the stream that reads it."""
        share = {}
        for topic, partitions in view.partitions.items():
            assigned = assign(partitions, view.threads[topic])
            for stream in range(self._subscription.streams_of(topic)):
                for partition in assigned.get(thread_id(self._registration.member, stream), ()):
                    share[TopicPartition.of(topic, partition)] = stream
        return share

    def _release(self, owned_partitions: Sequence[StreamPartition]) -> None:
        """Release partitions; those of a lost session are only dropped.

        The order matters: nothing more is delivered, then the offsets are committed, then the owner nodes are deleted.
        The next owner starts at the committed offsets.
        """
        for owned in owned_partitions:
            owned.revoke()
        current = [owned for owned in owned_partitions if owned.session_id == self._session_id]
        self._commit(current)
        self._registration.release([owned.topic_partition for owned in current], self._session_id)
        for owned in owned_partitions:
            del self._owned[owned.topic_partition]

    def _take(self, share: Mapping[TopicPartition, int]) -> bool:
        """Take the partitions of the share that are not owned in this session; False if others still own some.

        A partition that was owned in a lost session, and that another consumer has now, is revoked.
        """
        missing = {
            partition: thread_id(self._registration.member, stream)
            for partition, stream in share.items()
            if partition not in self._owned or self._owned[partition].session_id != self._session_id
        }
        taken = self._registration.take(missing, self._session_id)
        offsets = self._registration.offsets({partition.topic for partition in taken})
        for partition in missing:
            previous, offset = self._owned.pop(partition, None), offsets.get(partition)
            if previous and partition in taken and previous.committed == offset:
                # The committed offset did not change, so nobody else read the partition: it is read on without a break.
                previous.session_id = self._session_id
                self._owned[partition] = previous
                continue
            if previous:
                previous.revoke()
            if partition in taken:
                self._owned[partition] = StreamPartition(partition, self._session_id, offset, stream=share[partition])
        not_taken = missing.keys() - taken
        if not_taken:
            _LOG.info(
                "others still own %d partitions of this consumer's share, first %s", len(not_taken), min(not_taken)
            )
        return not not_taken

    def _commit(self, owned_partitions: Iterable[StreamPartition]) -> None:
        """Commit the processed offsets that differ from those in ZooKeeper."""
        offsets = {owned: owned.processed for owned in owned_partitions}
        moved = {owned: offset for owned, offset in offsets.items() if offset is not None and offset != owned.committed}
        lost = any(owned.session_id != self._session_id for owned in moved)
        by_partition = {owned.topic_partition: offset for owned, offset in moved.items()}
        if lost or not self._registration.commit(by_partition, self._session_id):
            raise RegistryUnavailable(
                "the session with ZooKeeper was lost, and the ownership of partitions with it: no offset is committed"
            )
        for owned, offset in moved.items():
            owned.committed = offset


def _skip(path: str, error: KafkaIOError) -> None:
    if not isinstance(error, NodeVanished):
        _LOG.warning("a topic of the group is skipped because of the node %r: %s", path, error)
