"""The thread that keeps a member alive: it joins, beats, looks for new topics, and leaves.

It speaks to the coordinator over connections of its own and touches nothing of the consumer's but the participation,
under one lock. What the consumer has to do about it waits there until it polls.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka_io.client.group.assignors import Member, Shares
from kafka_io.client.group.participation import Notice, Participation
from kafka_io.client.group.settings import GroupSettings
from kafka_io.client.group.topics import Topics, partition_counts
from kafka_io.client.link import Patience
from kafka_io.client.membership import Membership
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.coordinating import Coordinating
from kafka_io.client.modern.leading import Place
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.retry import LEAST_PAUSE_S, Backoff
from kafka_io.client.source import Source
from kafka_io.closing import Closing
from kafka_io.errors import ConnectionLost, KafkaIOError, Unsupported
from kafka_io.messages.leave_group import LeaveGroupRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.model import Generation

logger = logging.getLogger(__name__)

_JOIN_SLACK_S = 5.0  # Java's too: the coordinator itself gives the slowest member `max_poll_s`
_MOMENT_S = 1.0
_ONCE = Backoff(attempts=1)
_Act = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """What the generation was begun with: our topics, and for the leader all members' with their partitions."""

    topics: frozenset[str] = frozenset()
    everyones: frozenset[str] = frozenset()
    counts: Mapping[str, int] = field(default_factory=dict)


class Keeper(Closing):
    """Keeps one member of a group. Its thread starts with the first `ready`, and ends with `close`.

    Args:
        source: where the brokers are.
        settings: of the member.
        topics: what to read.
    """

    def __init__(self, source: Source, settings: GroupSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics
        self._backoff = source.reading.patience.backoff
        self._timeout_s = source.reading.patience.timeout_s
        self._brokers = _opened(source, self._timeout_s)
        # A join is answered when all members are there: its link waits longer than others.
        self._waiting = _opened(source, max(self._timeout_s, settings.max_poll_s + _JOIN_SLACK_S))
        self._closers = _opened(source, self._timeout_s)
        self._coordinating = Coordinating(self._brokers, settings.group)
        self._participation = Participation(settings)
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"penstock-group-{settings.group}", daemon=True)
        self._closing = False
        self._polled_s = self._beat_s = self._looked_s = time.monotonic()
        self._watched = _Watched()
        self._failures = 0

    @property
    def member(self) -> Membership:
        """Who commits."""
        with self._changed:
            return self._participation.member

    def polled(self) -> Notice | None:
        """The consumer polls; what it has to do first, if anything.

        Raises:
            KafkaIOError: the group cannot be a member of.
        """
        with self._changed:
            self._polled_s = time.monotonic()
            if self._participation.failure is not None:
                raise self._participation.failure
            return self._participation.take()

    def wait(self, timeout_s: float) -> None:
        """Wait for a notice."""
        with self._changed:
            self._changed.wait_for(self._has_news, max(0.0, timeout_s))

    def _has_news(self) -> bool:
        return self._participation.notice is not None or self._participation.failure is not None

    def ready(self, held: Iterable[Place], topics: Topics) -> None:
        """The consumer has given up what it must and holds `held`: the group is joined, to read `topics`."""
        with self._changed:
            self._topics = topics
            self._participation.ready(held)
            self._changed.notify_all()
        if self._thread.ident is None:
            self._thread.start()

    def must_yield(self) -> None:
        """Have the group share out anew, once the consumer is ready."""
        with self._changed:
            self._participation.must_yield()
            self._changed.notify_all()

    def refused(self, error: KafkaIOError, member: Membership) -> None:
        """A commit of `member` was refused; if that still is who we are, we may be nobody any longer."""
        with self._changed:
            if self._participation.is_alive and self._participation.member == member:
                self._participation.commit_refused(error)

    def close(self) -> None:
        """Leave the group, unless the member is static: it may come again. Safe to call again."""
        with self._changed:
            self._closing = True
            joining, member = self._participation.is_joining, self._participation.member
            self._changed.notify_all()
        if self._thread.is_alive():
            leaves = member.instance is None and bool(member.id)
            if joining and leaves:
                self._leave(Coordinating(self._closers, self._settings.group))  # whereupon the join is answered
            # A join that nobody knows how to call off is answered some time; the thread ends with that.
            self._thread.join(self._timeout_s if leaves or not joining else _MOMENT_S)
        self._closers.close()

    def _run(self) -> None:
        try:
            while act := self._next():
                self._attempt(act)
            self._leave(self._coordinating)
        finally:
            self._brokers.close()
            self._waiting.close()

    def _next(self) -> _Act | None:
        """What to do now; waits until there is something. None at the end."""
        with self._changed:
            while not self._closing:
                act, due_s = self._due()
                left_s = due_s - time.monotonic()
                if left_s <= 0:
                    return act
                self._changed.wait(left_s)
        return None

    def _due(self) -> tuple[_Act, float]:
        """What is to be done next, and when."""
        if self._participation.is_joining:
            return self._join, 0.0
        if not self._participation.is_alive:
            return self._beat, time.monotonic() + self._settings.max_poll_s
        return min(
            (
                (self._beat, self._beat_s),
                (self._give_up, self._polled_s + self._settings.max_poll_s),
                (self._look, self._looked_s + self._settings.refresh_s),
            ),
            key=lambda due: due[1],
        )

    def _attempt(self, act: _Act) -> None:
        try:
            act()
        except KafkaIOError as error:
            self._failures += 1
            logger.info("group %s: %s", self._settings.group, error)
            with self._changed:
                self._participation.refused(error)
                if error.retriable:
                    self._coordinating.forget()
                self._changed.notify_all()
                # What is not retriable has changed the participation, which says what comes next.
                pause_s = self._backoff.pause_s(self._failures) if error.retriable else LEAST_PAUSE_S
                self._changed.wait_for(lambda: self._closing, pause_s)
        except Exception as error:  # noqa: BLE001 - an assignor may be anybody's; poll raises what it raised
            with self._changed:
                self._participation.fail(error)
                self._changed.notify_all()
        else:
            self._failures = 0

    def _join(self) -> None:
        topics = self._topics.among(self._brokers)
        near = self._coordinating.link()
        self._check_groups(near)
        link = self._waiting.link(near.broker)
        with self._changed:
            request = self._participation.join_request(topics)
        answer = link.request(request)
        with self._changed:
            members = self._participation.joined(answer)
        if members is None:
            return
        shares = self._shared(members, topics)
        with self._changed:
            sync = self._participation.sync_request(shares)
        told = link.request(sync)
        link.close()  # until the next time, which may be far off
        with self._changed:
            self._participation.synced(told)
            self._beat_s = time.monotonic() + self._settings.heartbeat_s
            self._changed.notify_all()

    @staticmethod
    def _check_groups(link: ModernLink) -> None:
        """0.8 and 0.9 look alike, but for this: 0.8 closes when it is asked for groups (FINDINGS, brokers)."""
        if link.versions and link.generation is Generation.V08:
            try:
                link.request(ListGroupsRequest())
            except ConnectionLost as error:
                raise Unsupported("brokers of 0.8 keep no groups: its consumers meet in ZooKeeper") from error

    def _shared(self, members: tuple[Member, ...], topics: frozenset[str]) -> Shares:
        """What the leader shares out; nothing for others, who only watch their own topics."""
        everyones = frozenset[str]().union(*(member.topics for member in members))
        counts = partition_counts(self._brokers, everyones)
        self._watched = _Watched(topics=topics, everyones=everyones, counts=counts)
        self._looked_s = time.monotonic()
        return self._participation.assignor.assign(members, counts)

    def _look(self) -> None:
        """Share out anew where topics are others than were joined with, or, for the leader, their partitions."""
        self._looked_s = time.monotonic()
        everyones = self._watched.everyones
        found = _Watched(
            topics=self._topics.among(self._brokers),
            everyones=everyones,
            counts=partition_counts(self._brokers, everyones),
        )
        if found != self._watched:
            self.must_yield()

    def _beat(self) -> None:
        self._beat_s = time.monotonic() + self._settings.heartbeat_s
        with self._changed:
            request = self._participation.beat()
        answer = self._coordinating.once(lambda link: link.request(request))
        with self._changed:
            self._participation.beaten(answer)

    def _give_up(self) -> None:
        """The consumer does not poll: let others read what it has."""
        self._leave(self._coordinating)
        with self._changed:
            self._participation.left(f"the consumer has not polled for {self._settings.max_poll_s:g} s")
            self._changed.notify_all()

    def _leave(self, coordinating: Coordinating) -> None:
        """Static members and those that never were any just go."""
        with self._changed:
            member = self._participation.member
        if member.instance is not None or not member.id:
            return
        try:
            coordinating.once(self._leave_over)
        except KafkaIOError as error:
            logger.info("group %s: left without a word: %s", self._settings.group, error)

    def _leave_over(self, link: ModernLink) -> None:
        version = link.versions.pick(LeaveGroupRequest.API)
        link.request(self._participation.leave_request(version))


def _opened(source: Source, timeout_s: float) -> Brokers:
    """Connections that are not tried again: the keeper goes on by itself."""
    return open_brokers(
        source.brokers,
        replace(source.reading, patience=Patience(timeout_s=timeout_s, backoff=_ONCE)),
        cluster=source.cluster,
        generation=source.generation,
        security=source.security,
    )
