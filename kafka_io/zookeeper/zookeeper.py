"""What a Kafka cluster of any generation stores in ZooKeeper: its brokers, topics, settings and committed offsets.

Each call reads ZooKeeper again, and returns the whole answer or raises an error. A broker can register itself here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Self, TypeVar

from kafka_io.closing import Closing
from kafka_io.errors import NodeMalformed
from kafka_io.model import Broker, BrokerPartition, Generation, TopicEntry
from kafka_io.zookeeper.brokers import list_brokers
from kafka_io.zookeeper.listing import Listing, names_under
from kafka_io.zookeeper.modern import PLAINTEXT, parse_cluster_id
from kafka_io.zookeeper.node_format import NodeFormat
from kafka_io.zookeeper.node_values import check_name
from kafka_io.zookeeper.offsets import CommittedOffsets, read_offsets, write_offsets
from kafka_io.zookeeper.paths import (
    BROKER_IDS,
    CLUSTER_ID,
    TOPICS,
    broker_path,
    check_topic_name,
    format_broker_07,
    format_topic_share,
    topic_path,
)
from kafka_io.zookeeper.published import format_broker
from kafka_io.zookeeper.registration import EphemeralNodes
from kafka_io.zookeeper.session import ZooKeeperQueries, ZooKeeperSession
from kafka_io.zookeeper.topics import list_topics, read_format, read_settings, read_topic

T = TypeVar("T")


class ZooKeeper(Closing):
    """The nodes of one cluster in ZooKeeper. A context manager, which all threads of its process may use.

    >>> with ZooKeeper.open(zookeeper) as client:
    ...     client.register_broker(Broker(id=0, host="b", port=9092), creator="b-0")
    ...     [broker.address for broker in client.brokers().entries]
    ['b:9092']
    """

    def __init__(self, session: ZooKeeperSession, registration: EphemeralNodes) -> None:
        self._session = session
        self._registration = registration

    @classmethod
    def open(cls, connect: str, *, timeout_s: float = 15.0, session_timeout_s: float = 6.0) -> Self:
        """Connect to `host:port[,host:port][/chroot]`. `timeout_s` limits this and each listing.

        `session_timeout_s` is how long a broker stays registered after it was killed. 6 s is the default of 0.7
        [kafka-0.7: Producers].

        Raises:
            RegistryUnavailable: no ZooKeeper answers at this address.
        """
        session = ZooKeeperSession(connect, timeout_s=timeout_s, session_timeout_s=session_timeout_s)
        return cls(session, EphemeralNodes(session, session_timeout_s=session_timeout_s))

    def is_v07(self, known_generation: Generation | None = None) -> bool:
        """Whether the cluster runs 0.7: as `known_generation` says, else as the nodes show.

        While no broker is up and no topic exists, the nodes show nothing. Such a cluster counts as a 0.7 cluster,
        because that protocol needs nothing but ZooKeeper until a broker appears.

        Raises:
            RegistryUnavailable: ZooKeeper does not answer.
            RegistryError: the nodes of Kafka are missing, access is denied, or nodes of two formats are mixed.
        """
        if known_generation is not None:
            return known_generation is Generation.V07
        return self._session.in_one_session(read_format) in {NodeFormat.V07, None}

    def cluster_id(self) -> str | None:
        """The cluster id, None before 0.10.1. Raises the errors of `is_v07`, and NodeMalformed for an invalid node."""
        return self._session.in_one_session(_read_cluster_id)

    def brokers(self, protocol: str = PLAINTEXT) -> Listing[Broker]:
        """The brokers sorted by id, each with its first endpoint for the protocol. Brokers without one are skipped.

        A broker that was killed is listed until its session times out (fault Z03). Raises the errors of `is_v07`.
        """
        return self._session.in_one_session(lambda queries: list_brokers(queries, protocol))

    def topics(self) -> Listing[TopicEntry]:
        """The topics sorted by name. A topic without partitions cannot be loaded yet. Raises the errors of `is_v07`.

        In 0.7 such a topic has no running broker; later its first partition has no state yet (fault Z07). From 2.8 on
        the incarnation is the topic id, and `also` contains the creation zxid, which was the incarnation before an
        upgrade.

        From 0.8 on internal topics are left out, and topics that are marked for deletion are skipped. Brokers of 0.8
        and 0.9 do not delete topics by default: they keep the mark and the topic.
        """
        return self._session.in_one_session(list_topics)

    def topic(self, name: str) -> TopicEntry | None:
        """One topic, even one that `topics` leaves out; None if ZooKeeper does not have it.

        Raises the errors of `is_v07`, and NodeMalformed for an invalid node.
        """
        check_topic_name(name)
        return self._session.in_one_session(lambda queries: read_topic(queries, name))

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, Mapping[str, str] | NodeMalformed]:
        """The topic settings (from 0.8.1 on) that override settings of the brokers. Raises the errors of `is_v07`."""
        names = _checked(topics)
        return self._session.in_one_session(lambda queries: read_settings(queries, names))

    def group_offsets(self, group: str, topics: Iterable[str] | None = None) -> CommittedOffsets:
        """The committed offsets of a group of 0.7 to 0.9, for these topics or for all topics that the group has.

        Raises:
            RegistryUnavailable: ZooKeeper does not answer.
            NodeMalformed: a group or topic name is illegal, or a node does not contain an offset.
        """
        check_name("group", group)
        names = None if topics is None else _checked(topics)
        return self._session.in_one_session(lambda queries: read_offsets(queries, group, names))

    def commit_group_offsets(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, timeout_s: float | None = None
    ) -> None:
        """Commit offsets of a group as consumers of 0.7 to 0.9 do. Raises the errors of `group_offsets`."""
        check_name("group", group)
        _checked(offsets)
        self._session.in_one_session(lambda queries: write_offsets(queries, group, offsets), timeout_s=timeout_s)

    def register_broker(self, broker: Broker, creator: str) -> None:
        """Register a broker as long as this object is open. `creator` is `<host>-<ms>`.

        Raises:
            RegistryError: another broker is registered with this id for longer than a killed broker would be.
        """
        self._registration.claim(broker_path(broker.id), format_broker_07(broker, creator))

    def register_topic(self, topic: str, broker_id: int, partitions: int) -> None:
        """Register the number of partitions that a 0.7 broker has of a topic, as long as this object is open."""
        check_topic_name(topic)
        self._registration.claim(f"{topic_path(topic)}/{broker_id}", format_topic_share(partitions))

    def register_modern_broker(self, broker: Broker, *, started_ms: int, endpoints: bool) -> None:
        """Register a broker of 0.8 or later; with `endpoints` in the form of 0.10.2 and later."""
        value = format_broker(broker, started_ms=started_ms, endpoints=endpoints)
        self._registration.claim(broker_path(broker.id), value)

    def in_one_session(self, action: Callable[[ZooKeeperQueries], T]) -> T:
        """What `action` returns for queries of one session; see `ZooKeeperSession.in_one_session`."""
        return self._session.in_one_session(action)

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback` on another thread when topics or brokers may have changed.

        This only shortens a wait: a call can be missed, so also list at intervals (fault Z02).
        """
        self._session.watch_children(TOPICS, callback)
        self._session.watch_children(BROKER_IDS, callback)

    def close(self) -> None:
        """End the session, which removes its registrations. Calling it again does nothing."""
        self._session.close()


def _checked(topics: Iterable[str]) -> list[str]:
    """The names in order; raises NodeMalformed for an illegal one."""
    names = sorted(set(topics))
    for name in names:
        check_topic_name(name)
    return names


def _read_cluster_id(queries: ZooKeeperQueries) -> str | None:
    queries.sync()
    [(path, content)] = queries.contents([CLUSTER_ID])
    if content is not None:
        return parse_cluster_id(path, content.value)
    names_under(queries, BROKER_IDS)  # raises an error if the nodes of Kafka are missing
    return None
