"""The group consumer: it reads the partitions that the group assigns to it, and commits its offsets.

The heartbeat thread keeps it a member. Everything else happens in the user's thread during `poll`: partitions are
assigned and revoked, callbacks run, offsets are committed.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.brokers.retry import Backoff
from kafka_io.closing import Closing
from kafka_io.cluster.bounds import offsets_at
from kafka_io.cluster.cluster import Cluster
from kafka_io.consumer.coordinator_offsets import CoordinatorOffsets
from kafka_io.consumer.group.coordinator import Heartbeater
from kafka_io.consumer.group.fetcher import AssignedPartition, ConsumedBatch, GroupFetcher
from kafka_io.consumer.group.member import PartitionsAssigned, PartitionsLost, RebalanceEvent
from kafka_io.consumer.group.offset_reset import OffsetReset, reset_offsets
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.consumer.group.topics import TopicSubscription
from kafka_io.consumer.membership import GroupMembership
from kafka_io.errors import KafkaIOError, OffsetOutOfRange, Unsupported, Where
from kafka_io.model import BrokerPartition, Generation, TopicPartition
from kafka_io.zookeeper.offsets import offsets_by_partition, offsets_by_topic

logger = logging.getLogger(__name__)

_ANY_PARTITION = BrokerPartition(None, 0)  # from 0.8 on the source is the same for all partitions
_TWO_ATTEMPTS = Backoff(attempts=2)  # the next poll tries again
_MAX_WAIT_S = 0.5
_ERROR_PAUSE_S = 0.1
Callback = Callable[[frozenset[TopicPartition]], None]
OffsetsToCommit = Mapping[TopicPartition, int]
OnCommit = Callable[[OffsetsToCommit, KafkaIOError | None], None]
"""Called with the offsets of a finished commit, and its error if it failed."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """A commit that was started, as this member of the group."""

    offsets: OffsetsToCommit
    member: GroupMembership
    done: Future[None]


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
            Unsupported: the cluster runs 0.7.
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
        subscription = TopicSubscription(topics, pattern)
        self._reset = OffsetReset(reset)
        self._committed_only = committed_only
        self._auto_commit_s = auto_commit_s
        self._listener = listener or RebalanceListener()
        self._metadata = source.connect(
            RetryPolicy(timeout_s=read_settings.retry_policy.timeout_s, backoff=_TWO_ATTEMPTS)
        )
        self._fetcher = GroupFetcher(self._metadata, read_settings)
        self._partitions = self._fetcher.partitions
        self._heartbeater = Heartbeater(source, self._settings, subscription)
        # Commits are made in order on a thread of their own, which has its own connections.
        self._commit_thread = ThreadPoolExecutor(1, thread_name_prefix=f"penstock-commits-{self._settings.group}")
        self._commit_metadata = source.connect()
        self._offsets = CoordinatorOffsets(self._commit_metadata)
        self._commits: deque[tuple[_Commit, OnCommit]] = deque()  # those that no caller waits for
        self._commit_due_s = time.monotonic() + (auto_commit_s or 0)
        self._closed = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this member."""
        return frozenset(self._partitions)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return frozenset(key for key, partition in self._partitions.items() if partition.paused)

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
        for key, error in failed.items():
            if isinstance(error, OffsetOutOfRange):
                self._partitions[key].position, self._partitions[key].out_of_range = None, True
            elif not error.retriable:
                raise error
            else:
                logger.info("group %s: a fetch failed and is retried: %s", self._settings.group, error)
        if failed:
            self._heartbeater.wait(min(wait_s, _ERROR_PAUSE_S))

    def _follow_group(self) -> None:
        """Handle an event of the group, then commits, then partitions without a position.

        The order matters: a commit before the event could name partitions that are revoked, and an event can add
        partitions whose start offset is not known.
        """
        if self._closed:
            raise ValueError("the consumer is closed")
        event = self._heartbeater.polled()
        if event is not None:
            try:
                self._handle(event)
            except BaseException:
                self._heartbeater.require_rejoin()  # a callback failed halfway: join again with the next poll
                raise
        self._settle_commits()
        if self._auto_commit_s is not None and time.monotonic() >= self._commit_due_s:
            self.commit_async(on_done=_log_failure)
        self._find_positions()

    def _handle(self, event: RebalanceEvent) -> None:
        if isinstance(event, PartitionsAssigned):
            self._assign(event.partitions)
        elif isinstance(event, PartitionsLost):
            logger.warning("group %s lost this member: %s", self._settings.group, event.reason)
            lost = self.assignment
            self._partitions.clear()
            (self._listener.on_lost or self._listener.on_revoked)(lost)
            self._heartbeater.ready(())
        else:
            self._auto_commit()
            if not self._settings.cooperative:
                self._revoke(self.assignment)
            self._heartbeater.ready(self.assignment)

    def _assign(self, partitions: frozenset[TopicPartition]) -> None:
        """Take the assigned partitions. Only a cooperative member still owns others here, which it revokes now."""
        revoked, added = self.assignment - partitions, partitions - self.assignment
        self._revoke(revoked)
        self._partitions.update({partition: AssignedPartition() for partition in added})
        self._listener.on_assigned(added)
        if revoked:
            # The second half of a cooperative rebalance (KIP-429): others wait for the partitions revoked just now.
            self._heartbeater.ready(partitions)

    def _revoke(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            self._listener.on_revoked(partitions)
        for partition in partitions:
            del self._partitions[partition]

    def _find_positions(self) -> None:
        """Set the position of newly assigned partitions. After a retriable error the next poll tries again."""
        missing = {key: partition for key, partition in self._partitions.items() if partition.position is None}
        unknown = [key for key, partition in missing.items() if not partition.out_of_range]
        try:
            for key, offset in (self.committed(unknown) if unknown else {}).items():
                missing[key].committed = offset
                missing.pop(key).seek(offset)
            self._seek_all(self._reset_offsets(missing, self._reset))
        except KafkaIOError as error:
            if not error.retriable:
                raise
            logger.info("group %s: %s", self._settings.group, error)

    def _reset_offsets(self, partitions: Iterable[TopicPartition], reset: OffsetReset) -> PartitionAnswers[int]:
        return reset_offsets(self._metadata, partitions, reset, committed=self._committed_only)

    def subscribe(self, topics: Iterable[str] | None = None, *, pattern: str | None = None) -> None:
        """Change the subscription; the next poll joins the group again.

        Raises:
            ValueError: neither topics nor a pattern.
        """
        self._heartbeater.subscribe(TopicSubscription(topics, pattern))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver nothing of these partitions until `resume`; they stay assigned."""
        for partition in self._checked(partitions).values():
            partition.paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver these partitions again, from where they were paused."""
        for partition in self._checked(partitions).values():
            partition.paused = False

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue a partition at `offset`.

        Raises:
            ValueError: the partition is not assigned to this member, or the offset is negative.
        """
        if offset < 0:
            raise ValueError(f"an offset must not be negative: {offset}")
        [assigned] = self._checked([partition]).values()
        assigned.seek(offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue partitions at their first record.

        Raises:
            KafkaIOError: a leader did not answer; partitions whose leader answered are moved all the same.
            ValueError: as in `seek`.
        """
        self._seek_all(self._reset_offsets(self._checked(partitions), OffsetReset.EARLIEST))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue partitions after their last record. Raises what `seek_to_beginning` does."""
        self._seek_all(self._reset_offsets(self._checked(partitions), OffsetReset.LATEST))

    def seek_to_time(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> None:
        """Continue at the first record that is not older, or at the end. Raises what `seek_to_beginning` does."""
        answers = offsets_at(self._metadata, self._checked(partitions), timestamp_ms, committed=self._committed_only)
        self._seek_all(answers)

    def _seek_all(self, answers: PartitionAnswers[int]) -> None:
        for key, offset in answers.items():
            if not isinstance(offset, KafkaIOError):
                self._partitions[key].seek(offset)
        for error in answers.values():
            if isinstance(error, KafkaIOError):
                raise error

    def _checked(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, AssignedPartition]:
        checked = {}
        for key in partitions:
            if key not in self._partitions:
                raise ValueError(f"{key} is not assigned to this member")
            checked[key] = self._partitions[key]
        return checked

    def position(self, partition: TopicPartition) -> int | None:
        """The offset after the last delivered record; None while the start is not known.

        Raises:
            ValueError: the partition is not assigned to this member.
        """
        [assigned] = self._checked([partition]).values()
        return assigned.position

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's committed offsets of those partitions that have one; the partitions need not be assigned.

        Raises:
            KafkaIOError: the coordinator did not answer, or refused.
        """
        wanted = set(partitions)
        topics = {partition.topic for partition in wanted}
        fetched = self._commit_thread.submit(self._offsets.fetch, self._settings.group, topics).result()
        return {key: offset for key, offset in offsets_by_partition(fetched).items() if key in wanted}

    def commit(self, offsets: OffsetsToCommit | None = None) -> None:
        """Commit these offsets (None: those after all delivered records), and wait for it.

        Raises:
            BrokerError: the group is rebalancing (27), or continues without this member (22, 25).
            KafkaIOError: the outcome is unknown.
        """
        commit = self._start_commit(offsets)
        error = self._finish(commit) if commit else None
        if error is not None:
            raise error

    def commit_async(
        self, offsets: OffsetsToCommit | None = None, *, on_done: OnCommit = lambda _offsets, _error: None
    ) -> None:
        """Start a commit without waiting; a later poll or `close` calls `on_done`."""
        self._commit_due_s = time.monotonic() + (self._auto_commit_s or 0)
        if commit := self._start_commit(offsets):
            self._commits.append((commit, on_done))

    def _start_commit(self, offsets: OffsetsToCommit | None) -> _Commit | None:
        """Commit these offsets, or those after delivered records that are not committed yet; None if there are none."""
        if offsets is None:
            offsets = {
                key: partition.position
                for key, partition in self._partitions.items()
                if partition.position is not None and partition.position != partition.committed
            }
        if not offsets:
            return None
        offsets, member = dict(offsets), self._heartbeater.member
        group, by_topic = self._settings.group, offsets_by_topic(offsets)
        done = self._commit_thread.submit(self._offsets.commit, group, by_topic, member=member)
        return _Commit(offsets=offsets, member=member, done=done)

    def _finish(self, commit: _Commit) -> KafkaIOError | None:
        """Wait for a commit, and remember what it stored; returns its error."""
        try:
            commit.done.result()
        except KafkaIOError as error:
            self._heartbeater.refused(error, commit.member)
            return error
        for key in commit.offsets.keys() & self._partitions.keys():
            self._partitions[key].committed = commit.offsets[key]
        return None

    def _settle_commits(self) -> None:
        """Call `on_done` for the asynchronous commits that have finished, in order."""
        while self._commits and self._commits[0][0].done.done():
            commit, on_done = self._commits.popleft()
            on_done(commit.offsets, self._finish(commit))

    def _auto_commit(self) -> None:
        if self._auto_commit_s is not None and (commit := self._start_commit(None)):
            _log_failure(commit.offsets, self._finish(commit))

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
            self._commit_thread.shutdown()
            self._commit_metadata.close()
            self._metadata.close()
            self._settle_commits()

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
