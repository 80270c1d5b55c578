"""The registration of one consumer of a group in ZooKeeper: the other members that it sees, and what it owns.

A consumer owns a partition through an ephemeral node. The node disappears with its session, and then another member may
own the partition. So all changes that depend on ownership are made only in the session in which it was acquired.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kafka_io.closing import Closing
from kafka_io.model import Broker, BrokerPartition, TopicPartition
from kafka_io.zookeeper.brokers import evidence_of_brokers, list_brokers
from kafka_io.zookeeper.listing import Listing, Skip
from kafka_io.zookeeper.members import (
    ConsumerSubscription,
    ids_path,
    owner_path,
    parse_subscription,
    threads_of,
)
from kafka_io.zookeeper.node_format import NodeFormat
from kafka_io.zookeeper.node_values import check_name
from kafka_io.zookeeper.offsets import offsets_by_partition, offsets_by_topic, read_offsets, write_offsets
from kafka_io.zookeeper.paths import BROKER_IDS, INTERNAL_TOPICS, TOPICS, topic_path
from kafka_io.zookeeper.registration import hold
from kafka_io.zookeeper.session import ZooKeeperQueries, ZooKeeperSession
from kafka_io.zookeeper.topics import read_format, read_topics, topic_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupView:
    """What a member needs to compute the assignment: the partitions and the consumer threads of each topic."""

    partitions: Mapping[str, tuple[BrokerPartition, ...]]
    threads: Mapping[str, Sequence[str]]


class ConsumerRegistration(Closing):
    """The nodes of one member. A context manager, which all threads of the process that opened it may use.

    All methods raise RegistryUnavailable if ZooKeeper does not answer.
    """

    def __init__(self, session: ZooKeeperSession, group: str, member: str) -> None:
        self.group = group
        self.member = member
        self._session = session
        self._watched: set[str] = set()

    @classmethod
    def open(cls, connect: str, group: str, member: str, *, timeout_s: float, session_timeout_s: float) -> Self:
        """Connect to `host:port[,host:port][/chroot]`; `timeout_s` limits this and each query.

        Raises:
            RegistryUnavailable: no ZooKeeper answers at this address.
            NodeMalformed: the name of the group or member is illegal.
        """
        check_name("group", group)
        check_name("consumer", member)
        return cls(ZooKeeperSession(connect, timeout_s=timeout_s, session_timeout_s=session_timeout_s), group, member)

    @property
    def session_id(self) -> int | None:
        """The session id. When it changes, all partitions that were owned before are lost."""
        return self._session.id

    def node_format(self) -> NodeFormat | None:
        """The format of the nodes; None while neither a broker nor a topic shows it."""
        return self._session.in_one_session(read_format)

    def brokers(self) -> Listing[Broker]:
        """The brokers sorted by id."""
        return self._session.in_one_session(list_brokers)

    def join(self, value: bytes) -> bool:
        """Register the member with its subscription. Returns False while another session has registered its name."""
        path = ids_path(self.group) + "/" + self.member
        return self._session.in_one_session(lambda queries: hold(queries, path, value, self._session))

    def group_view(self, subscription: ConsumerSubscription, skip: Skip) -> ConsumerGroupView:
        """The members of the group and the partitions of the subscribed topics.

        Raises:
            NodeMalformed: the subscription of a member cannot be read, so no assignment can be computed.
        """

        def action(queries: ZooKeeperQueries) -> ConsumerGroupView:
            queries.sync()
            members = self._members(queries)
            evidence = evidence_of_brokers(queries)
            hidden = INTERNAL_TOPICS if evidence.node_format is NodeFormat.JSON else frozenset[str]()
            wanted = [name for name in subscription.wanted(topic_names(queries)) if name not in hidden]
            partitions = {entry.name: entry.partitions for entry in read_topics(queries, wanted, evidence, skip)}
            threads = {topic: threads_of(topic, members) for topic in partitions}
            return ConsumerGroupView(partitions=partitions, threads=threads)

        return self._session.in_one_session(action)

    def _members(self, queries: ZooKeeperQueries) -> dict[str, ConsumerSubscription]:
        parent = ids_path(self.group)
        paths = {f"{parent}/{name}": name for name in queries.children(parent)}
        return {
            paths[path]: parse_subscription(path, content.value)
            for path, content in queries.contents(paths)
            if content is not None
        }

    def take(self, owners: Mapping[TopicPartition, str], session_id: int | None) -> set[TopicPartition]:
        """Acquire partitions for their threads. Returns those that are owned now; others still have another owner."""

        def action(queries: ZooKeeperQueries) -> set[TopicPartition]:
            if self._session.id != session_id:
                return set()
            return {
                partition
                for partition, thread in owners.items()
                if hold(queries, owner_path(self.group, partition), thread.encode(), self._session)
            }

        return self._session.in_one_session(action) if owners else set()

    def release(self, partitions: Iterable[TopicPartition], session_id: int | None) -> None:
        """Give up partitions that were acquired in this session."""
        paths = [owner_path(self.group, partition) for partition in partitions]

        def action(queries: ZooKeeperQueries) -> None:
            for path in paths:
                if self._session.id == session_id and queries.owner(path) == session_id:
                    queries.delete(path)

        if paths:
            self._session.in_one_session(action)

    def offsets(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """The committed offsets of the group for partitions of these topics."""
        names = sorted(set(topics))
        return offsets_by_partition(
            self._session.in_one_session(lambda queries: read_offsets(queries, self.group, names))
        )

    def commit(self, offsets: Mapping[TopicPartition, int], session_id: int | None) -> bool:
        """Commit offsets. Returns False and commits nothing if the session that owned the partitions has ended."""

        def action(queries: ZooKeeperQueries) -> bool:
            if self._session.id != session_id:
                return False
            write_offsets(queries, self.group, offsets_by_topic(offsets))
            return True

        return self._session.in_one_session(action) if offsets else True

    def watch(self, topics: Iterable[str], callback: Callable[[], None]) -> bool:
        """Call `callback` when members, brokers or partitions of these topics may have changed.

        This is only a hint (fault Z02), so also check at intervals. Watches are never removed. Returns False if all of
        them existed before.
        """
        paths = {ids_path(self.group), TOPICS, BROKER_IDS, *map(topic_path, topics)} - self._watched
        for path in paths:
            self._session.watch_children(path, callback)
        self._watched |= paths
        return bool(paths)

    def close(self) -> None:
        """Leave the group and end the session. Calling it again does nothing."""
        self._session.close()
