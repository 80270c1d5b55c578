"""Commits of a group's offsets: in order, on a thread of their own, whether or not the caller waits for them."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.closing import Closing
from kafka_io.consumer.coordinator_offsets import CoordinatorOffsets
from kafka_io.consumer.membership import GroupMembership
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition, TopicPartition

OffsetsToCommit = Mapping[TopicPartition, int]
OnCommit = Callable[[OffsetsToCommit, KafkaIOError | None], None]
"""Called with the offsets of a finished commit, and its error if it failed."""


class OffsetCommitter(Closing):
    """Commits to the coordinator of `group`. No other thread uses `metadata`."""

    def __init__(self, metadata: ClusterMetadata, group: str) -> None:
        self._metadata = metadata
        self._offsets = CoordinatorOffsets(metadata)
        self._group = group
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"penstock-commits-{group}")
        self._pending: deque[tuple[Future[None], OffsetsToCommit, OnCommit]] = deque()

    def commit(self, offsets: OffsetsToCommit, member: GroupMembership) -> None:
        """Commit offsets after the pending commits, and wait for it.

        Raises:
            KafkaIOError: see GroupOffsets.
        """
        self._thread.submit(self._commit, offsets, member).result()

    def start(self, offsets: OffsetsToCommit, member: GroupMembership, on_done: OnCommit) -> None:
        """Start a commit without waiting; a later `settle` calls `on_done`."""
        self._pending.append((self._thread.submit(self._commit, offsets, member), offsets, on_done))

    def settle(self) -> None:
        """Call `on_done` for the commits that have finished, in order, on the caller's thread."""
        while self._pending and self._pending[0][0].done():
            done, offsets, on_done = self._pending.popleft()
            error = done.exception()
            if error is not None and not isinstance(error, KafkaIOError):
                raise error
            on_done(offsets, error)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The committed offsets of those partitions that have one.

        Raises:
            KafkaIOError: the coordinator did not answer, or refused.
        """
        wanted = set(partitions)
        topics = {partition.topic for partition in wanted}
        fetched = self._thread.submit(self._offsets.fetch, self._group, topics).result()
        committed = {
            TopicPartition.of(topic, partition): offset
            for topic, offsets in fetched.items()
            for partition, offset in offsets.items()
            if offset is not None
        }
        return {partition: offset for partition, offset in committed.items() if partition in wanted}

    def _commit(self, offsets: OffsetsToCommit, member: GroupMembership) -> None:
        topics: dict[str, dict[BrokerPartition, int]] = {}
        for partition, offset in offsets.items():
            topics.setdefault(partition.topic, {})[partition.within_topic] = offset
        self._offsets.commit(self._group, topics, member=member)

    def close(self) -> None:
        """Wait for the pending commits, and end; safe to call again."""
        self._thread.shutdown()
        self._metadata.close()
        self.settle()
