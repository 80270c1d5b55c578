"""The group consumer: it reads the partitions that the group assigns to it, and commits its offsets.

The heartbeat thread keeps it a member. Everything else happens in the user's thread during `poll`: partitions are
assigned and revoked, callbacks run, offsets are committed.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.closing import Closing
from kafka_io.cluster.cluster import Cluster
from kafka_io.consumer.group.commits import OffsetCommitter, OffsetsToCommit, OnCommit
from kafka_io.consumer.group.coordinator import Heartbeater
from kafka_io.consumer.group.fetcher import ConsumedBatch, GroupFetcher
from kafka_io.consumer.group.member import PartitionsAssigned, PartitionsLost, RebalanceEvent
from kafka_io.consumer.group.offset_resolver import OffsetReset, OffsetResolver
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.consumer.group.topics import TopicSubscription
from kafka_io.errors import KafkaIOError, OffsetOutOfRange, Unsupported, Where
from kafka_io.model import BrokerPartition, Generation, TopicPartition

logger = logging.getLogger(__name__)

_ANY_PARTITION = BrokerPartition(None, 0)  # from 0.8 on the source is the same for all partitions
_TWO_ATTEMPTS = Backoff(attempts=2)  # the next poll tries again
_MAX_WAIT_S = 0.5
_ERROR_PAUSE_S = 0.1
Callback = Callable[[frozenset[TopicPartition]], None]


def _ignore(_partitions: frozenset[TopicPartition]) -> None:
    """The default callback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceListener:
    """Callbacks for a rebalance; they run in the thread that polls.

    Args:
        on_assigned: called with new partitions, before their first record is delivered; it may seek.
        on_revoked: called with partitions that move to another member; their offsets can still be committed.
        on_lost: called with partitions that another member may already read; None calls `on_revoked`.

    >>> from kafka_io import RebalanceListener, TopicPartition
    >>> listener = RebalanceListener(on_assigned=lambda partitions: print("assigned", *sorted(partitions)))
    >>> listener.on_assigned(frozenset([TopicPartition("clicks", 0)]))
    assigned clicks-0
    """

    on_assigned: Callback = _ignore
    on_revoked: Callback = _ignore
    on_lost: Callback | None = None


class GroupConsumer(Closing):
    """Reads topics as a member of a group: each partition is read by one member. A context manager; one thread uses it.

    The offsets of delivered records are committed every `auto_commit_s`, before partitions are revoked, and at the end
    unless the `with` block ends with an error.

        >>> with GroupConsumer(cluster, "readers", topics=["clicks"]) as consumer:
        ...     [batch] = consumer.poll(timeout_s=60)
        ...     consumer.commit()
        ...     partition = TopicPartition("clicks", 0)
        ...     committed = consumer.committed([partition])[partition]
        >>> [message.value for message in batch], committed
        ([b'one', b'two'], 2)
    """

    def __init__(
        self,
        cluster: Cluster,
        group: GroupSettings | str,
        *,
        topics: Iterable[str] | None = None,
        pattern: str | None = None,
        reset: OffsetReset | str = OffsetReset.EARLIEST,
        auto_commit_s: float | None = 5.0,
        listener: RebalanceListener | None = None,
        committed_only: bool | None = None,
    ) -> None:
        """Detect the brokers' generation; the first poll joins the group.

        Args:
            cluster: a cluster from 0.9 on. The consumer has its own connections: the cluster may be closed.
            group: the group's name, or the settings of this member.
            topics: the topics to read.
            pattern: a regular expression for the topics to read, in place of names; also for topics created later.
            reset: where to start partitions without a committed offset.
            auto_commit_s: how often offsets are committed; None leaves it to the user.
            listener: callbacks for a rebalance.
            committed_only: leave out records of transactions that are not committed; None: as the cluster's read
                settings say.

        Raises:
            Unsupported: the cluster is of 0.7.
            NetworkError: no broker can be reached.
            ValueError: neither topics nor a pattern is given, or a setting is not allowed.
        """
        if cluster.generation is Generation.V07:
            raise Unsupported("0.7 has no group coordinators: use a ConsumerConnector", Where(cluster=cluster.name))
        # Detected once here: otherwise each new connection would need seconds to detect a broker of 0.9.
        source = replace(cluster.source(_ANY_PARTITION), generation=cluster.generation)
        committed_only = source.read_settings.committed if committed_only is None else committed_only
        read_settings = replace(source.read_settings, committed=committed_only)
        self._settings = GroupSettings(group=group) if isinstance(group, str) else group
        self._topics = TopicSubscription.of(topics, pattern)
        self._reset = OffsetReset(reset)
        self._auto_commit_s = auto_commit_s
        self._listener = listener or RebalanceListener()
        self._metadata = source.connect(
            RetryPolicy(timeout_s=read_settings.retry_policy.timeout_s, backoff=_TWO_ATTEMPTS)
        )
        self._fetcher = GroupFetcher(self._metadata, read_settings)
        self._offset_resolver = OffsetResolver(self._metadata, committed=committed_only)
        self._committer = OffsetCommitter(source.connect(), self._settings.group)
        self._heartbeater = Heartbeater(source, self._settings, self._topics)
        self._assigned: frozenset[TopicPartition] | None = None  # None until the group is joined for the first time
        self._without_position: set[TopicPartition] = set()  # assigned, but the start offset is not known yet
        self._out_of_range: set[TopicPartition] = set()  # those of them whose committed offset is not in the log
        self._committed_offsets: dict[TopicPartition, int] = {}  # the last commits, so that nothing is committed twice
        self._commit_due_s = time.monotonic() + (auto_commit_s or 0)
        self._closed = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this member."""
        return self._assigned or frozenset()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return self._fetcher.paused

    def poll(self, timeout_s: float = 1.0) -> list[ConsumedBatch]:
        """The next records: at most one batch for each partition, none if there are no records in time.

        Raises:
            OffsetOutOfRange: a partition has no usable offset, and the offset reset is `none`.
            BrokerError: the group or a topic may not be read, or the group refuses this member.
            WireError: the bytes received are no valid records.
        """
        batch = self._next(time.monotonic() + timeout_s)
        batches: dict[TopicPartition, ConsumedBatch] = {}
        while batch is not None:
            batches[batch.topic_partition] = batch
            batch = self._fetcher.take(excluding=batches)
        return list(batches.values())

    def __iter__(self) -> Iterator[ConsumedBatch]:
        """Batches without end. A batch counts as processed when the next is requested. Raises what `poll` does."""
        while not self._closed:
            batch = self._next(time.monotonic() + _MAX_WAIT_S)
            if batch is not None:
                yield batch

    def _next(self, deadline_s: float) -> ConsumedBatch | None:
        """The next batch; rebalances and due commits come first."""
        while True:
            self._follow_group()
            batch = self._fetcher.take()
            remaining_s = deadline_s - time.monotonic()
            if batch is not None or remaining_s <= 0:
                return batch
            self._fetch(min(remaining_s, _MAX_WAIT_S))

    def _fetch(self, wait_s: float) -> None:
        failed = self._fetcher.fetch(wait_s)
        if failed is None:
            self._heartbeater.wait(wait_s)
            return
        for partition, error in failed.items():
            if isinstance(error, OffsetOutOfRange):
                self._out_of_range.add(partition)
                self._without_position.add(partition)
            elif not error.retriable:
                raise error
            else:
                logger.info("group %s: a fetch failed and is retried: %s", self._settings.group, error)
        if failed:
            self._heartbeater.wait(min(wait_s, _ERROR_PAUSE_S))

    def _follow_group(self) -> None:
        """Handle an event of the group, and due commits; find the start of new partitions."""
        if self._closed:
            raise ValueError("the consumer is closed")
        event = self._heartbeater.polled()
        if self._assigned is None:
            self._assigned = frozenset()
            self._heartbeater.ready((), self._topics)
        elif event is not None:
            try:
                self._handle(event)
            except BaseException:
                self._heartbeater.require_rejoin()  # a callback failed halfway: join again with the next poll
                raise
        self._committer.settle()
        if self._auto_commit_s is not None and time.monotonic() >= self._commit_due_s:
            self.commit_async(on_done=_log_failure)
        self._find_positions()

    def _handle(self, event: RebalanceEvent) -> None:
        if isinstance(event, PartitionsAssigned):
            self._assign(event.partitions)
        elif isinstance(event, PartitionsLost):
            logger.warning("group %s lost this member: %s", self._settings.group, event.reason)
            lost = self.assignment
            self._drop(lost)
            (self._listener.on_lost or self._listener.on_revoked)(lost)
            self._heartbeater.ready((), self._topics)
        else:
            self._auto_commit()
            if not self._settings.cooperative:
                self._revoke(self.assignment)
            self._heartbeater.ready(self.assignment, self._topics)

    def _assign(self, partitions: frozenset[TopicPartition]) -> None:
        before = self.assignment
        revoked, added = before - partitions, partitions - before
        if revoked:
            self._revoke(revoked)
        self._assigned = partitions
        self._without_position |= added
        self._listener.on_assigned(added)
        if revoked:
            # The second half of a cooperative rebalance (KIP-429): others wait for the partitions revoked just now.
            self._heartbeater.ready(partitions, self._topics)

    def _revoke(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            self._listener.on_revoked(partitions)
        self._drop(partitions)

    def _drop(self, partitions: frozenset[TopicPartition]) -> None:
        self._assigned = self.assignment - partitions
        self._fetcher.drop(partitions)
        self._without_position -= partitions
        self._out_of_range -= partitions
        self._committed_offsets = {
            partition: offset for partition, offset in self._committed_offsets.items() if partition not in partitions
        }

    def _find_positions(self) -> None:
        """Set the position of newly assigned partitions. After a retriable error the next poll tries again."""
        if not self._without_position:
            return
        try:
            unknown = self._without_position - self._out_of_range
            committed = self._committer.committed(unknown) if unknown else {}
            for partition, offset in committed.items():
                self._seek(partition, offset)
                self._committed_offsets[partition] = offset
            self._seek_all(self._offset_resolver.reset(self._without_position, self._reset))
        except KafkaIOError as error:
            if not error.retriable:
                raise
            logger.info("group %s: %s", self._settings.group, error)

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        self._fetcher.seek(partition, offset)
        self._without_position.discard(partition)
        self._out_of_range.discard(partition)

    def subscribe(self, topics: Iterable[str] | None = None, *, pattern: str | None = None) -> None:
        """Change the subscription; the next poll joins the group again.

        Raises:
            ValueError: neither topics nor a pattern.
        """
        self._topics = TopicSubscription.of(topics, pattern)
        self._heartbeater.require_rejoin()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver nothing of these partitions until `resume`; they stay assigned."""
        self._fetcher.pause(self._checked(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver these partitions again, from where they were paused."""
        self._fetcher.resume(self._checked(partitions))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue a partition at `offset`.

        Raises:
            ValueError: the partition is not assigned to this member, or the offset is negative.
        """
        if offset < 0:
            raise ValueError(f"an offset must not be negative: {offset}")
        [assigned] = self._checked([partition])
        self._seek(assigned, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue partitions at their first record.

        Raises:
            KafkaIOError: a leader did not answer; partitions whose leader answered are moved all the same.
            ValueError: as in `seek`.
        """
        self._seek_all(self._offset_resolver.reset(self._checked(partitions), OffsetReset.EARLIEST))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue partitions after their last record. Raises what `seek_to_beginning` does."""
        self._seek_all(self._offset_resolver.reset(self._checked(partitions), OffsetReset.LATEST))

    def seek_to_time(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> None:
        """Continue at the first record that is not older, or at the end. Raises what `seek_to_beginning` does."""
        self._seek_all(self._offset_resolver.at_time(self._checked(partitions), timestamp_ms))

    def _seek_all(self, answers: Mapping[TopicPartition, int | KafkaIOError]) -> None:
        for partition, offset in answers.items():
            if not isinstance(offset, KafkaIOError):
                self._seek(partition, offset)
        for error in answers.values():
            if isinstance(error, KafkaIOError):
                raise error

    def _checked(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        partitions = list(partitions)
        for partition in partitions:
            if partition not in self.assignment:
                raise ValueError(f"{partition} is not assigned to this member")
        return partitions

    def position(self, partition: TopicPartition) -> int | None:
        """The offset after the last delivered record; None while the start is not known.

        Raises:
            ValueError: the partition is not assigned to this member.
        """
        [assigned] = self._checked([partition])
        return None if assigned in self._without_position else self._fetcher.positions.get(assigned)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's committed offsets of those partitions that have one; the partitions need not be assigned.

        Raises:
            KafkaIOError: the coordinator did not answer, or refused.
        """
        return self._committer.committed(partitions)

    def commit(self, offsets: OffsetsToCommit | None = None) -> None:
        """Commit these offsets (None: those after all delivered records), and wait for it.

        Raises:
            BrokerError: the group is rebalancing (27), or continues without this member (22, 25).
            KafkaIOError: the outcome is unknown.
        """
        offsets, member = self._uncommitted() if offsets is None else offsets, self._heartbeater.member
        try:
            if offsets:
                self._committer.commit(offsets, member)
        except KafkaIOError as error:
            self._heartbeater.refused(error, member)
            raise
        self._remember_committed(offsets)

    def commit_async(
        self, offsets: OffsetsToCommit | None = None, *, on_done: OnCommit = lambda _offsets, _error: None
    ) -> None:
        """Start a commit without waiting; a later poll or `close` calls `on_done`."""
        self._commit_due_s = time.monotonic() + (self._auto_commit_s or 0)
        offsets, member = self._uncommitted() if offsets is None else dict(offsets), self._heartbeater.member

        def done(offsets: OffsetsToCommit, error: KafkaIOError | None) -> None:
            if error is None:
                self._remember_committed(offsets)
            else:
                self._heartbeater.refused(error, member)
            on_done(offsets, error)

        if offsets:
            self._committer.start(offsets, member, done)

    def _uncommitted(self) -> dict[TopicPartition, int]:
        """The offsets after delivered records that are not committed yet."""
        positions = self._fetcher.positions
        return {
            partition: offset
            for partition, offset in positions.items()
            if partition not in self._without_position and self._committed_offsets.get(partition) != offset
        }

    def _remember_committed(self, offsets: OffsetsToCommit) -> None:
        self._committed_offsets |= {
            partition: offset for partition, offset in offsets.items() if partition in self.assignment
        }

    def _auto_commit(self) -> None:
        if self._auto_commit_s is None:
            return
        offsets = self._uncommitted()
        try:
            self.commit(offsets)
        except KafkaIOError as error:
            _log_failure(offsets, error)

    def close(self) -> None:
        """Commit unless auto-commit is off, leave the group, end all connections; safe to call again."""
        if self._closed:
            return
        try:
            if self.assignment:
                self._auto_commit()
                self._revoke(self.assignment)
        finally:
            self._closed = True
            self._heartbeater.close()
            self._committer.close()
            self._metadata.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._auto_commit_s = None  # the last delivered records may not be processed
        self.close()


def _log_failure(offsets: OffsetsToCommit, error: KafkaIOError | None) -> None:
    """Log a failed auto-commit: no caller receives its error."""
    if error is not None:
        logger.warning("offsets of %d partitions were not committed: %s", len(offsets), error)
