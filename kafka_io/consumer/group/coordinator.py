"""The heartbeat thread of a group member: it joins, sends heartbeats, looks for new topics, and leaves.

It has its own connections to the coordinator. It shares only the member's state with the consumer, under one lock.
Events for the consumer wait in that state until it polls.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.brokers.retry import MIN_PAUSE_S, Backoff
from kafka_io.closing import Closing
from kafka_io.consumer.group.assignors import AssignorMember, PartitionAssignments
from kafka_io.consumer.group.member import GroupMemberState, RebalanceEvent
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.consumer.group.topics import TopicSubscription, partition_counts
from kafka_io.consumer.membership import GroupMembership
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, ConnectionLost, KafkaIOError, Unsupported
from kafka_io.messages.leave_group import LeaveGroupRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.model import Generation, TopicPartition
from kafka_io.reader.source import Source

logger = logging.getLogger(__name__)

_JOIN_SLACK_S = 5.0  # Java's too: the coordinator itself gives the slowest member `max_poll_s`
_SHORT_WAIT_S = 1.0
_ONE_ATTEMPT = Backoff(attempts=1)
_Act = Callable[[], None]


@dataclass(slots=True, kw_only=True)
class _Times:
    """When the consumer polled last, when topics were compared last, and when the next heartbeat is due."""

    polled_s: float
    refreshed_s: float
    heartbeat_due_s: float


class Heartbeater(Closing):
    """Keeps one member in its group. Its thread starts with the first `ready`, and ends with `close`.

    Args:
        source: where the brokers are.
        settings: the member's settings.
        topics: the topics to read.
    """

    def __init__(self, source: Source, settings: GroupSettings, topics: TopicSubscription) -> None:
        self._settings = settings
        self._topics = topics
        self._retry_policy = source.read_settings.retry_policy
        # The connections do not retry: the heartbeat thread itself tries again.
        one_attempt = RetryPolicy(timeout_s=self._retry_policy.timeout_s, backoff=_ONE_ATTEMPT)
        self._metadata = source.connect(one_attempt)
        # A join is answered when all members have joined, so its connection needs a longer deadline.
        join_timeout_s = max(one_attempt.timeout_s, settings.max_poll_s + _JOIN_SLACK_S)
        self._join_metadata = source.connect(replace(one_attempt, timeout_s=join_timeout_s))
        self._connect = partial(source.connect, one_attempt)
        self._coordinator = CoordinatorConnection(self._metadata, settings.group)
        self._state = GroupMemberState(settings)
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"penstock-group-{settings.group}", daemon=True)
        self._closing = False
        now_s = time.monotonic()
        self._times = _Times(polled_s=now_s, refreshed_s=now_s, heartbeat_due_s=now_s)
        # At the last join: the topics of all members (only the leader knows them), and what `_refresh` compares.
        self._group_topics: frozenset[str] = frozenset()
        self._observed: tuple[frozenset[str], Mapping[str, int]] = (frozenset(), {})
        self._failures = 0

    @property
    def member(self) -> GroupMembership:
        """The identity that commits carry."""
        return self._state.member

    @contextmanager
    def _changing(self) -> Iterator[GroupMemberState]:
        """The state, locked. Threads that wait for a change look at it again afterwards."""
        with self._changed:
            yield self._state
            self._changed.notify_all()

    def polled(self) -> RebalanceEvent | None:
        """Record that the consumer polls; returns the event that it must handle first.

        Raises:
            KafkaIOError: this consumer cannot be a member of the group.
        """
        with self._changed:
            self._times.polled_s = time.monotonic()
            if self._state.failure is not None:
                raise self._state.failure
            return self._state.take()

    def wait(self, timeout_s: float) -> None:
        """Wait for an event or a failure."""
        with self._changed:
            self._changed.wait_for(lambda: self._state.event or self._state.failure, max(0.0, timeout_s))

    def subscribe(self, topics: TopicSubscription) -> None:
        """Read other topics: join the group again."""
        with self._changing() as state:
            self._topics = topics
            state.require_rejoin()

    def ready(self, owned: Iterable[TopicPartition]) -> None:
        """Join the group: the consumer has revoked all partitions except `owned`."""
        with self._changing() as state:
            state.ready(owned)
        if self._thread.ident is None:
            self._thread.start()

    def require_rejoin(self) -> None:
        """Join the group again, which rebalances it, as soon as the consumer is ready."""
        with self._changing() as state:
            state.require_rejoin()

    def refused(self, error: KafkaIOError, member: GroupMembership) -> None:
        """A commit of `member` was refused: if that is still the identity, the membership may be lost."""
        with self._changing() as state:
            if state.is_alive and state.member == member:
                state.commit_refused(error)

    def close(self) -> None:
        """Leave the group, unless the member is static, which may return. Safe to call again."""
        with self._changing() as state:
            self._closing = True
            joining, member = state.is_joining, state.member
        if self._thread.is_alive():
            leaves = member.instance is None and bool(member.id)
            if joining and leaves:
                # The thread waits for the answer to its join, perhaps for minutes. When this member leaves, the
                # coordinator answers that join at once with an error, and the thread ends.
                # The connections of that thread are in use, so this needs its own.
                with self._connect() as metadata:
                    self._leave(CoordinatorConnection(metadata, self._settings.group))
            # A first join has no member id yet, so it cannot be cancelled: the thread ends when it is answered.
            self._thread.join(self._retry_policy.timeout_s if leaves or not joining else _SHORT_WAIT_S)

    def _run(self) -> None:
        try:
            while act := self._next():
                self._attempt(act)
            self._leave(self._coordinator)
        finally:
            self._metadata.close()
            self._join_metadata.close()

    def _next(self) -> _Act | None:
        """Wait until an action is due, and return it; None at the end."""
        with self._changed:
            while not self._closing:
                act, due_s = self._due()
                remaining_s = due_s - time.monotonic()
                if remaining_s <= 0:
                    return act
                self._changed.wait(remaining_s)
        return None

    def _due(self) -> tuple[_Act, float]:
        """The next action, and when it is due."""
        if self._state.is_joining:
            return self._join, 0.0
        if not self._state.is_alive:
            # Nothing is due until the consumer calls `ready`, which ends the wait.
            return self._heartbeat, time.monotonic() + self._settings.max_poll_s
        return min(
            (
                (self._heartbeat, self._times.heartbeat_due_s),
                (self._leave_idle, self._times.polled_s + self._settings.max_poll_s),
                (self._refresh, self._times.refreshed_s + self._settings.refresh_s),
            ),
            key=lambda due: due[1],
        )

    def _attempt(self, act: _Act) -> None:
        try:
            act()
        except KafkaIOError as error:
            self._failures += 1
            logger.info("group %s: %s", self._settings.group, error)
            if error.retriable:
                self._coordinator.forget()
            # An error that is not retriable changes the state, and with it the next action.
            pause_s = self._retry_policy.backoff.pause_s(self._failures) if error.retriable else MIN_PAUSE_S
            with self._changing() as state:
                state.refused(error)
            with self._changed:
                self._changed.wait_for(lambda: self._closing, pause_s)
        except Exception as error:  # noqa: BLE001 - a user's assignor may raise anything; poll raises it again
            with self._changing() as state:
                state.fail(error)
        else:
            self._failures = 0

    def _join(self) -> None:
        subscription = self._topics
        topics = subscription.resolve(self._metadata)
        coordinator = self._coordinator.connection()
        self._check_groups(coordinator)
        connection = self._join_metadata.connection(coordinator.broker)
        # The consumer waits for an event while the member joins: until `synced` only this thread changes the state.
        members = self._state.joined(connection.request(self._state.join_request(topics)))
        if members is None:
            return
        answer = connection.request(self._state.sync_request(self._assignments(members, topics)))
        connection.close()  # the next join may be far away
        with self._changing() as state:
            state.synced(answer)
            if subscription is not self._topics:  # the consumer changed its subscription during the join
                self._times.refreshed_s = float("-inf")
            self._times.heartbeat_due_s = time.monotonic() + self._settings.heartbeat_s

    @staticmethod
    def _check_groups(connection: ModernBrokerConnection) -> None:
        """Refuse 0.8, which differs from 0.9 only here: it closes the connection on ListGroups.

        See [kafka-0.8: Versions].
        """
        if connection.versions and connection.generation is Generation.V08:
            try:
                connection.request(ListGroupsRequest())
            except ConnectionLost as error:
                raise Unsupported("brokers of 0.8 coordinate no groups: use a ConsumerConnector") from error

    def _assignments(self, members: tuple[AssignorMember, ...], topics: frozenset[str]) -> PartitionAssignments:
        """The assignments that the leader sends; empty for other members, which only watch their own topics."""
        self._group_topics = frozenset[str]().union(*(member.topics for member in members))
        counts = partition_counts(self._metadata, self._group_topics)
        self._observed, self._times.refreshed_s = (topics, counts), time.monotonic()
        return self._state.assignor.assign(members, counts)

    def _refresh(self) -> None:
        """Rejoin if the topics changed since the join, or for the leader if their numbers of partitions did."""
        self._times.refreshed_s = time.monotonic()
        counts = partition_counts(self._metadata, self._group_topics)
        if (self._topics.resolve(self._metadata), counts) != self._observed:
            self.require_rejoin()

    def _heartbeat(self) -> None:
        self._times.heartbeat_due_s = time.monotonic() + self._settings.heartbeat_s
        request = self._state.heartbeat_request()
        answer = self._coordinator.once(lambda connection: connection.request(request))
        ErrorCode.check(answer.error_code, NOWHERE, right="READ")

    def _leave_idle(self) -> None:
        """Leave because the consumer does not poll, so that others read its partitions."""
        self._leave(self._coordinator)
        with self._changing() as state:
            state.left(f"the consumer has not polled for {self._settings.max_poll_s:g} s")

    def _leave(self, coordinator: CoordinatorConnection) -> None:
        """Send the request to leave; not for a static member, or one that never joined."""
        if self.member.instance is not None or not self.member.id:
            return
        try:
            coordinator.once(
                lambda connection: connection.request(
                    self._state.leave_request(connection.versions.pick(LeaveGroupRequest.API))
                )
            )
        except KafkaIOError as error:
            logger.info("group %s: the request to leave failed: %s", self._settings.group, error)
