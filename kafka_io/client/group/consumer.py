"""A consumer in a group: it reads the partitions that the group gives it, and commits how far it has read.

The keeper's thread keeps it a member. All else happens in the thread of the user, when it polls: partitions come and
go, callbacks are called, offsets are committed.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType

from kafka_io.client.cluster import Cluster
from kafka_io.client.group.commits import Commits, Offsets, OnCommit
from kafka_io.client.group.intake import Batch, Intake
from kafka_io.client.group.keeper import Keeper
from kafka_io.client.group.participation import Assigned, Lost, Notice
from kafka_io.client.group.positions import Bearings, Reset
from kafka_io.client.group.settings import GroupSettings
from kafka_io.client.group.topics import Topics
from kafka_io.client.link import Patience
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.cluster import ModernCluster
from kafka_io.client.modern.leading import Place
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.retry import Backoff
from kafka_io.client.source import Source
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError, OffsetOutOfRange, Unsupported, Where
from kafka_io.model import BrokerPartition

logger = logging.getLogger(__name__)

_ANY = BrokerPartition(None, 0)  # from 0.8 on every broker leads to all partitions
_BRIEFLY = Backoff(attempts=2)  # polling goes on by itself
_MOST_WAIT_S = 0.5
_REST_S = 0.1
Callback = Callable[[frozenset[Place]], None]


def _nothing(_places: frozenset[Place]) -> None:
    """What is done where no callback is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What to call when partitions come and go; always in the thread that polls.

    Args:
        on_assigned: those that are new, before the first of their records; it may seek them.
        on_revoked: those that another member is to have; their offsets can still be committed.
        on_lost: those that another may have by now; without it, `on_revoked` is called.

    >>> from kafka_io import Listener
    >>> listener = Listener(on_assigned=lambda places: print("assigned", sorted(places)))
    >>> listener.on_assigned(frozenset([("clicks", 0)]))
    assigned [('clicks', 0)]
    """

    on_assigned: Callback = _nothing
    on_revoked: Callback = _nothing
    on_lost: Callback | None = None


class GroupConsumer(Closing):
    """Reads topics as a member of a group: each partition is read by one member. A context manager; one thread uses it.

    A partition is a pair of its topic and its number. What was handed out is committed every `auto_commit_s`, before
    partitions are given up, and at the end, but not where the `with` block ends with an error.

        >>> with GroupConsumer(cluster, "readers", topics=["clicks"]) as consumer:
        ...     [batch] = consumer.poll(timeout_s=60)
        ...     consumer.commit()
        ...     committed = consumer.committed([("clicks", 0)])
        >>> [message.value for message in batch], committed
        ([b'one', b'two'], {('clicks', 0): 2})
    """

    def __init__(
        self,
        cluster: Cluster,
        group: GroupSettings | str,
        *,
        topics: Iterable[str] | None = None,
        pattern: str | None = None,
        reset: Reset | str = Reset.EARLIEST,
        auto_commit_s: float | None = 5.0,
        listener: Listener | None = None,
        committed_only: bool | None = None,
    ) -> None:
        """The brokers are asked what they speak; the group is joined with the first poll.

        Args:
            cluster: of 0.9 or later; it may be closed or used by others meanwhile.
            group: its name, or more about this member.
            topics: to read.
            pattern: the topics to read, instead of names: also those that are made later.
            reset: where to begin what the group has no offset of.
            auto_commit_s: how often offsets are committed; None leaves it to the user.
            listener: told of partitions that come and go.
            committed_only: leave out what transactions have not committed; as the cluster's reading says without it.

        Raises:
            Unsupported: the cluster is of 0.7.
            NetworkError: no broker can be reached.
            ValueError: neither topics nor a pattern, or settings that cannot be.
        """
        if not isinstance(cluster, ModernCluster):
            raise Unsupported("0.7 has no coordinators: its consumers meet in ZooKeeper", Where(cluster=cluster.name))
        # Found out once: each connection of ours would take seconds to find out that it is one of 0.9.
        source = replace(cluster.source(_ANY), generation=cluster.generation)
        committed_only = source.reading.committed if committed_only is None else committed_only
        reading = replace(source.reading, committed=committed_only)
        self._settings = GroupSettings(group=group) if isinstance(group, str) else group
        self._topics = Topics.of(topics, pattern)
        self._reset = Reset(reset)
        self._auto_commit_s = auto_commit_s
        self._listener = listener or Listener()
        self._brokers = _opened(source, Patience(timeout_s=reading.patience.timeout_s, backoff=_BRIEFLY))
        self._intake = Intake(self._brokers, reading)
        self._bearings = Bearings(self._brokers, committed=committed_only)
        self._commits = Commits(_opened(source, reading.patience), self._settings.group)
        self._keeper = Keeper(source, self._settings, self._topics)
        self._held: frozenset[Place] | None = None  # None until the group is joined for the first time
        self._unplaced: set[Place] = set()  # without a position, to be looked up
        self._expired: set[Place] = set()  # of those, whose offset is of no use
        self._kept: dict[Place, int] = {}  # what was committed last
        self._commit_due_s = time.monotonic() + (auto_commit_s or 0)
        self._closed = False

    @property
    def assignment(self) -> frozenset[Place]:
        """The partitions that the member reads now."""
        return self._held or frozenset()

    @property
    def paused(self) -> frozenset[Place]:
        """Those of which nothing is handed out."""
        return self._intake.paused

    def poll(self, timeout_s: float = 1.0) -> list[Batch]:
        """What there is to read, a batch for each partition at most; nothing if it does not come in time.

        Raises:
            OffsetOutOfRange: a partition has no offset to go on from, and the reset is `none`.
            BrokerError: the group or a topic may not be read, or the group does not take this member.
            WireError: what came are no records.
        """
        found = self._next(time.monotonic() + timeout_s)
        batches: dict[Place, Batch] = {}
        while found is not None:
            batches[found.place] = found
            found = self._intake.take(besides=batches)
        return list(batches.values())

    def __iter__(self) -> Iterator[Batch]:
        """Batch after batch, for ever; each is counted as read when the next is asked for. Same errors as `poll`."""
        while not self._closed:
            found = self._next(time.monotonic() + _MOST_WAIT_S)
            if found is not None:
                yield found

    def _next(self, deadline_s: float) -> Batch | None:
        """The next batch; whatever the group wants comes first."""
        while True:
            self._attend()
            found = self._intake.take()
            left_s = deadline_s - time.monotonic()
            if found is not None or left_s <= 0:
                return found
            self._fetch(min(left_s, _MOST_WAIT_S))

    def _fetch(self, wait_s: float) -> None:
        failed = self._intake.fetch(wait_s)
        if failed is None:
            self._keeper.wait(wait_s)
            return
        for place, error in failed.items():
            if isinstance(error, OffsetOutOfRange):
                self._expired.add(place)
                self._unplaced.add(place)
            elif not error.retriable:
                raise error
            else:
                logger.info("group %s: %s: it is tried again", self._settings.group, error)
        if failed:
            self._keeper.wait(min(wait_s, _REST_S))

    def _attend(self) -> None:
        """Do what the group wants, and what is due."""
        if self._closed:
            raise ValueError("the consumer is closed")
        notice = self._keeper.polled()
        if self._held is None:
            self._held = frozenset()
            self._keeper.ready((), self._topics)
        elif notice is not None:
            try:
                self._follow(notice)
            except BaseException:
                self._keeper.must_yield()  # a callback failed half-way: begin anew with the next poll
                raise
        self._commits.settle()
        if self._auto_commit_s is not None and time.monotonic() >= self._commit_due_s:
            self.commit_async(on_done=_log)
        self._place()

    def _follow(self, notice: Notice) -> None:
        if isinstance(notice, Assigned):
            self._assign(notice.places)
        elif isinstance(notice, Lost):
            logger.warning("group %s lost this member: %s", self._settings.group, notice.reason)
            lost = self.assignment
            self._let_go(lost)
            (self._listener.on_lost or self._listener.on_revoked)(lost)
            self._keeper.ready((), self._topics)
        else:
            self._auto_commit()
            if not self._settings.cooperative:
                self._revoke(self.assignment)
            self._keeper.ready(self.assignment, self._topics)

    def _assign(self, places: frozenset[Place]) -> None:
        before = self.assignment
        revoked, added = before - places, places - before
        if revoked:
            self._revoke(revoked)
        self._held = places
        self._unplaced |= added
        self._listener.on_assigned(added)
        if revoked:
            # Others wait for what was given up just now: the second half of a cooperative rebalance (KIP-429).
            self._keeper.ready(places, self._topics)

    def _revoke(self, places: frozenset[Place]) -> None:
        if places:
            self._listener.on_revoked(places)
        self._let_go(places)

    def _let_go(self, places: frozenset[Place]) -> None:
        self._held = self.assignment - places
        self._intake.drop(places)
        self._unplaced -= places
        self._expired -= places
        self._kept = {place: offset for place, offset in self._kept.items() if place not in places}

    def _place(self) -> None:
        """Find where to begin; what cannot be told now is asked for again with the next poll."""
        if not self._unplaced:
            return
        try:
            lacking = self._unplaced - self._expired
            found = self._commits.committed(lacking) if lacking else {}
            for place, offset in found.items():
                self._stand(place, offset)
                self._kept[place] = offset
            self._stand_at(self._bearings.reset(self._unplaced, self._reset))
        except KafkaIOError as error:
            if not error.retriable:
                raise
            logger.info("group %s: %s", self._settings.group, error)

    def _stand(self, place: Place, offset: int) -> None:
        self._intake.seek(place, offset)
        self._unplaced.discard(place)
        self._expired.discard(place)

    def subscribe(self, topics: Iterable[str] | None = None, *, pattern: str | None = None) -> None:
        """Read these topics from now on, as far as the group gives them.

        Raises:
            ValueError: neither topics nor a pattern.
        """
        self._topics = Topics.of(topics, pattern)
        self._keeper.must_yield()

    def pause(self, places: Iterable[Place]) -> None:
        """Hand out nothing of these partitions until they are resumed; the member goes on to have them."""
        self._intake.pause(self._own(places))

    def resume(self, places: Iterable[Place]) -> None:
        """Go on where they were paused."""
        self._intake.resume(self._own(places))

    def seek(self, place: Place, offset: int) -> None:
        """Go on from `offset`.

        Raises:
            ValueError: the member does not have the partition, or there can be no such offset.
        """
        if offset < 0:
            raise ValueError(f"{offset} is no offset")
        for one in self._own([place]):
            self._stand(one, offset)

    def seek_to_beginning(self, places: Iterable[Place]) -> None:
        """Go on from the first record there is.

        Raises:
            KafkaIOError: a leader cannot tell; what could be told is done.
            ValueError: as for `seek`.
        """
        self._stand_at(self._bearings.reset(self._own(places), Reset.EARLIEST))

    def seek_to_end(self, places: Iterable[Place]) -> None:
        """Go on behind the last record there is. Same errors as `seek_to_beginning`."""
        self._stand_at(self._bearings.reset(self._own(places), Reset.LATEST))

    def seek_to_time(self, places: Iterable[Place], timestamp_ms: int) -> None:
        """Go on from the first record that is not older, or the end. Same errors as `seek_to_beginning`."""
        self._stand_at(self._bearings.at(self._own(places), timestamp_ms))

    def _stand_at(self, answers: Mapping[Place, int | KafkaIOError]) -> None:
        for place, offset in answers.items():
            if not isinstance(offset, KafkaIOError):
                self._stand(place, offset)
        for error in answers.values():
            if isinstance(error, KafkaIOError):
                raise error

    def _own(self, places: Iterable[Place]) -> list[Place]:
        own = list(places)
        for place in own:
            if place not in self.assignment:
                raise ValueError(f"{place} is not assigned to this member")
        return own

    def position(self, place: Place) -> int | None:
        """The offset behind what was handed out; None while it is not known where to begin.

        Raises:
            ValueError: the member does not have the partition.
        """
        [own] = self._own([place])
        return None if own in self._unplaced else self._intake.positions.get(own)

    def committed(self, places: Iterable[Place]) -> dict[Place, int]:
        """What the group has committed of any partitions, of those where it has.

        Raises:
            KafkaIOError: it cannot be told.
        """
        return self._commits.committed(places)

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets, or behind all that was handed out, and wait until they are kept.

        Raises:
            BrokerError: the group shares out anew (27), or goes on without this member (22, 25).
            KafkaIOError: what became of them is not known.
        """
        offsets, member = self._due() if offsets is None else offsets, self._keeper.member
        try:
            if offsets:
                self._commits.commit(offsets, member)
        except KafkaIOError as error:
            self._keeper.refused(error, member)
            raise
        self._note(offsets)

    def commit_async(
        self, offsets: Offsets | None = None, *, on_done: OnCommit = lambda _offsets, _error: None
    ) -> None:
        """The same without waiting; `on_done` is told by a later poll, or at the end."""
        self._commit_due_s = time.monotonic() + (self._auto_commit_s or 0)
        offsets, member = self._due() if offsets is None else dict(offsets), self._keeper.member

        def done(offsets: Offsets, error: KafkaIOError | None) -> None:
            if error is None:
                self._note(offsets)
            else:
                self._keeper.refused(error, member)
            on_done(offsets, error)

        if offsets:
            self._commits.start(offsets, member, done)

    def _due(self) -> dict[Place, int]:
        """What was handed out and is not committed yet."""
        positions = self._intake.positions
        return {
            place: offset
            for place, offset in positions.items()
            if place not in self._unplaced and self._kept.get(place) != offset
        }

    def _note(self, offsets: Offsets) -> None:
        self._kept |= {place: offset for place, offset in offsets.items() if place in self.assignment}

    def _auto_commit(self) -> None:
        if self._auto_commit_s is None:
            return
        offsets = self._due()
        try:
            self.commit(offsets)
        except KafkaIOError as error:
            _log(offsets, error)

    def close(self) -> None:
        """Commit if that is automatic, leave the group, end all connections; safe to call again."""
        if self._closed:
            return
        try:
            if self.assignment:
                self._auto_commit()
                self._revoke(self.assignment)
        finally:
            self._closed = True
            self._keeper.close()
            self._commits.close()
            self._brokers.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._auto_commit_s = None  # what was handed out last may not have been dealt with
        self.close()


def _opened(source: Source, patience: Patience) -> Brokers:
    return open_brokers(
        source.brokers,
        replace(source.reading, patience=patience),
        cluster=source.cluster,
        generation=source.generation,
        security=source.security,
    )


def _log(offsets: Offsets, error: KafkaIOError | None) -> None:
    """What a user who does not commit is told of it."""
    if error is not None:
        logger.warning("offsets of %d partitions were not committed: %s", len(offsets), error)
