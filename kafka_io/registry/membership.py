"""One member of a group that is kept in ZooKeeper: what it sees of the others, and what it owns.

Owning is an ephemeral node. It goes with the session that made it, and then another member may have the partition: so
what belongs to a session is only changed in that very session.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kafka_io.closing import Closing
from kafka_io.model import Broker, BrokerPartition
from kafka_io.registry.brokers import evidence_of_brokers, list_brokers
from kafka_io.registry.consumers import check_group_name
from kafka_io.registry.dialect import Dialect
from kafka_io.registry.identity import read_dialect
from kafka_io.registry.listing import Listing, Skip
from kafka_io.registry.members import (
    Subscription,
    check_member_name,
    ids_path,
    owner_path,
    parse_subscription,
    threads_of,
)
from kafka_io.registry.offsets import read_offsets, write_offsets
from kafka_io.registry.paths import BROKER_IDS, INTERNAL_TOPICS, TOPICS, topic_path
from kafka_io.registry.registration import hold
from kafka_io.registry.session import Asking, Session
from kafka_io.registry.topics import read_topics, topic_names

Place = tuple[str, BrokerPartition]
"""A topic and one of its partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What a member must know to say who consumes what: its topics' partitions and threads."""

    partitions: Mapping[str, tuple[BrokerPartition, ...]]
    threads: Mapping[str, Sequence[str]]


class Membership(Closing):
    """The nodes of one member. A context manager; any thread of the process that opened it may ask.

    All methods raise RegistryUnavailable when ZooKeeper gives no answer.
    """

    def __init__(self, session: Session, group: str, member: str, *, timeout_s: float) -> None:
        check_group_name(group)
        check_member_name(member)
        self.group = group
        self.member = member
        self._session = session
        self._timeout_s = timeout_s
        self._watched: set[str] = set()

    @classmethod
    def open(cls, connect: str, group: str, member: str, *, timeout_s: float, session_timeout_s: float) -> Self:
        """Connect to `host:port[,host:port][/chroot]`; `timeout_s` bounds this and every question.

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
            NodeMalformed: no group or member may have such a name.
        """
        session = Session.open(connect, timeout_s=timeout_s, session_timeout_s=session_timeout_s)
        try:
            return cls(session, group, member, timeout_s=timeout_s)
        except BaseException:
            session.close()
            raise

    @property
    def session_id(self) -> int | None:
        """With another number, nothing that was owned before is owned any more."""
        return self._session.id

    def dialect(self) -> Dialect | None:
        """How the registry is written; None while no broker is up and no topic tells."""
        return self._session.steady(read_dialect)

    def brokers(self) -> Listing[Broker]:
        """The brokers by id."""
        return self._session.steady(lambda asking: list_brokers(asking, "PLAINTEXT"))

    def join(self, value: bytes) -> bool:
        """Register the member with what it consumes, if it is not; False while another session has its name."""
        path = ids_path(self.group) + "/" + self.member
        return self._session.steady(lambda asking: hold(asking, path, value, self._session))

    def picture(self, subscription: Subscription, skip: Skip) -> Picture:
        """Who else is there and what there is to consume.

        Raises:
            NodeMalformed: a member's node does not say what it consumes, so nobody knows what is left for others.
        """
        return self._session.steady(lambda asking: self._picture(asking, subscription, skip))

    def take(self, owners: Mapping[Place, str], session_id: int | None) -> set[Place]:
        """Own each of the places for its thread; those that are not owned by somebody else (yet)."""

        def ask(asking: Asking) -> set[Place]:
            if self._session.id != session_id:
                return set()
            return {
                place
                for place, thread in owners.items()
                if hold(asking, owner_path(self.group, *place), thread.encode(), self._session)
            }

        return self._session.steady(ask) if owners else set()

    def release(self, places: Iterable[Place], session_id: int | None) -> None:
        """Let go of what was owned in that session."""
        paths = [owner_path(self.group, *place) for place in places]

        def ask(asking: Asking) -> None:
            for path in paths:
                if self._session.id == session_id and asking.owner(path) == session_id:
                    asking.delete(path)

        if paths:
            self._session.steady(ask)

    def offsets(self, topics: Iterable[str]) -> dict[Place, int]:
        """The next offset of each partition of the topics that the group has one of."""
        named = sorted(set(topics))
        committed = self._session.steady(lambda asking: read_offsets(asking, self.group, named))
        return {
            (topic, partition): offset
            for topic, offsets in committed.items()
            for partition, offset in offsets.items()
            if offset is not None
        }

    def commit(self, offsets: Mapping[Place, int], session_id: int | None) -> bool:
        """Keep the offsets; False, and nothing done, when the session in which they were owned is over."""
        by_topic: dict[str, dict[BrokerPartition, int]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, {})[partition] = offset

        def ask(asking: Asking) -> bool:
            if self._session.id != session_id:
                return False
            write_offsets(asking, self.group, by_topic)
            return True

        return self._session.steady(ask) if offsets else True

    def watch(self, topics: Iterable[str], callback: Callable[[], None]) -> bool:
        """Have `callback` called when members, brokers, or these topics' partitions may have come or gone.

        A hint and no more (Z02): look at intervals too. What is watched stays so. False when all of it was before.
        """
        paths = {ids_path(self.group), TOPICS, BROKER_IDS, *map(topic_path, topics)} - self._watched
        for path in paths:
            self._session.watch_children(path, callback)
        self._watched |= paths
        return bool(paths)

    def _picture(self, asking: Asking, subscription: Subscription, skip: Skip) -> Picture:
        asking.sync()
        node = asking.node(ids_path(self.group))
        paths = {f"{ids_path(self.group)}/{name}": name for name in (node.children if node else ())}
        members = {
            paths[path]: parse_subscription(path, content.value)
            for path, content in asking.contents(paths)
            if content is not None
        }
        partitions = self._partitions(asking, subscription, skip)
        return Picture(partitions=partitions, threads={topic: threads_of(topic, members) for topic in partitions})

    @staticmethod
    def _partitions(asking: Asking, subscription: Subscription, skip: Skip) -> dict[str, tuple[BrokerPartition, ...]]:
        evidence = evidence_of_brokers(asking)
        hidden = INTERNAL_TOPICS if evidence.dialect is Dialect.JSON else frozenset[str]()
        wanted = [name for name in subscription.wanted(topic_names(asking)) if name not in hidden]
        return {entry.name: entry.partitions for entry in read_topics(asking, wanted, evidence, skip)}

    def close(self) -> None:
        """Leave the group and end the session; safe to call again."""
        self._session.close()
