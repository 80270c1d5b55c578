"""The registry in ZooKeeper, of any generation that has one: which brokers and topics there are.

Every call lists afresh, and answers with the whole registry or an error. A broker can register itself here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Self

from kafka_io.closing import Closing
from kafka_io.errors import NodeMalformed
from kafka_io.model import Broker, BrokerPartition, TopicEntry
from kafka_io.registry.brokers import list_brokers, list_registered_brokers
from kafka_io.registry.consumers import check_group_name
from kafka_io.registry.dialect import Dialect
from kafka_io.registry.endpoints import PLAINTEXT, RegisteredBroker
from kafka_io.registry.identity import read_cluster_id, read_dialect
from kafka_io.registry.listing import Listing, Skipped
from kafka_io.registry.modern import PartitionState
from kafka_io.registry.offsets import Committed, read_offsets, write_offsets
from kafka_io.registry.paths import (
    BROKER_IDS,
    TOPICS,
    broker_path,
    check_topic_name,
    format_broker_07,
    format_topic_share,
    share_path,
)
from kafka_io.registry.published import (
    PublishedTopic,
    format_broker,
    publish_cluster_id,
    publish_topic,
    withdraw_topic,
)
from kafka_io.registry.registration import Registration
from kafka_io.registry.session import Session
from kafka_io.registry.topics import list_topics, read_settings, read_states, read_topic

__all__ = ["Listing", "Registry", "Skipped"]


class Registry(Closing):
    """A cluster's registry. A context manager; any thread of the process that opened it may ask.

    >>> with Registry.open(zookeeper) as registry:
    ...     registry.register_broker(Broker(id=0, host="b", port=9092), creator="b-0")
    ...     [broker.address for broker in registry.brokers().found]
    ['b:9092']
    """

    def __init__(self, session: Session, registration: Registration) -> None:
        self._session = session
        self._registration = registration

    @classmethod
    def open(cls, connect: str, *, timeout_s: float = 15.0, session_timeout_s: float = 6.0) -> Self:
        """Connect to `host:port[,host:port][/chroot]`. `timeout_s` bounds this and every listing.

        `session_timeout_s` is how long a broker stays registered after it was killed; 6 s is 0.7's own (facts, 7).

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
        """
        session = Session.open(connect, timeout_s=timeout_s, session_timeout_s=session_timeout_s)
        return cls(session, Registration(session, session_timeout_s=session_timeout_s))

    def is_v07(self) -> bool | None:
        """Whether the cluster is of 0.7; False for any later one, None while no broker is up and no topic tells.

        Raises:
            RegistryUnavailable: no answer.
            RegistryError: this is not a Kafka registry, or may not be read; or nodes of 0.7 and of later are mixed.
        """
        dialect = self._session.steady(read_dialect)
        return None if dialect is None else dialect == Dialect.V07

    def cluster_id(self) -> str | None:
        """The cluster's own id, None before 0.10.1. Raises what `is_v07` does, and NodeMalformed for a bad node."""
        return self._session.steady(read_cluster_id)

    def brokers(self, protocol: str = PLAINTEXT) -> Listing[Broker]:
        """The brokers by id, each at its first endpoint for the security protocol; one without such is skipped.

        A broker that was killed is listed until its session has timed out (Z03). Raises what `is_v07` does.
        """
        return self._session.steady(lambda asking: list_brokers(asking, protocol))

    def registered_brokers(self) -> Listing[RegisteredBroker]:
        """The brokers by id, each with all its endpoints and its rack. Raises what `is_v07` does."""
        return self._session.steady(list_registered_brokers)

    def topics(self) -> Listing[TopicEntry]:
        """The topics by name. One without partitions has nothing to load yet. Raises what `is_v07` does.

        In 0.7 that is a topic without a living broker; later one whose first partition has no state yet (Z07). From 2.8
        on the incarnation is the topic's id, and `also` the creation zxid that was its incarnation before an upgrade.

        From 0.8 on Kafka's own topics (INTERNAL_TOPICS) are left out, and one that is marked for deletion is skipped.
        Brokers of 0.8 and 0.9 that may not delete topics, as is their default, keep the mark and the topic.
        """
        return self._session.steady(list_topics)

    def topic(self, name: str) -> TopicEntry | None:
        """One topic, also one that `topics` leaves out; None if the registry has no such.

        Raises what `is_v07` does, and NodeMalformed for a bad node.
        """
        check_topic_name(name)
        return self._session.steady(lambda asking: read_topic(asking, name))

    def partition_states(self, topic: str) -> Mapping[int, PartitionState]:
        """Who leads each partition of a topic of 0.8 or later; empty in 0.7. Raises what `topic` does."""
        check_topic_name(topic)
        return self._session.steady(lambda asking: read_states(asking, topic))

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, Mapping[str, str] | NodeMalformed]:
        """The settings of topics from 0.8.1 on that differ from their brokers' own. Raises what `is_v07` does."""
        names = sorted(set(topics))
        for name in names:
            check_topic_name(name)
        return self._session.steady(lambda asking: read_settings(asking, names))

    def group_offsets(self, group: str, topics: Iterable[str] | None = None) -> Committed:
        """How far a group of 0.7 to 0.9 has read these topics, or all that it keeps offsets of.

        Raises:
            RegistryUnavailable: no answer.
            NodeMalformed: a name that none may have, or a node that is none of an offset.
        """
        check_group_name(group)
        names = None if topics is None else sorted(set(topics))
        for name in names or ():
            check_topic_name(name)
        return self._session.steady(lambda asking: read_offsets(asking, group, names))

    def commit_group_offsets(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, timeout_s: float | None = None
    ) -> None:
        """Keep offsets of a group, where consumers of 0.7 to 0.9 do. Raises what `group_offsets` does."""
        check_group_name(group)
        for name in offsets:
            check_topic_name(name)
        self._session.steady(lambda asking: write_offsets(asking, group, offsets), timeout_s=timeout_s)

    def register_broker(self, broker: Broker, creator: str) -> None:
        """Make `broker` known for as long as this registry is open. `creator` is `<host>-<ms>`.

        Raises:
            RegistryError: its id stays registered by another for longer than a killed broker's would.
        """
        self._registration.claim(broker_path(broker.id), format_broker_07(broker, creator))

    def register_topic(self, topic: str, broker_id: int, partitions: int) -> None:
        """Make known how many partitions of `topic` the broker has, for as long as this registry is open."""
        check_topic_name(topic)
        self._registration.claim(share_path(topic, broker_id), format_topic_share(partitions))

    def register_modern_broker(self, broker: Broker, *, started_ms: int, endpoints: bool) -> None:
        """Like `register_broker` for a broker from 0.8 on; with `endpoints`, as from 0.10.2 on."""
        value = format_broker(broker, started_ms=started_ms, endpoints=endpoints)
        self._registration.claim(broker_path(broker.id), value)

    def publish_cluster_id(self, cluster_id: str) -> None:
        """Make the cluster's id known, as brokers do from 0.10.1 on; one that is there stays."""
        self._session.steady(lambda asking: publish_cluster_id(asking, cluster_id))

    def publish_topic(self, topic: PublishedTopic) -> None:
        """Make a topic of 0.8 or later known; it stays when this registry is closed."""
        check_topic_name(topic.name)
        self._session.steady(lambda asking: publish_topic(asking, topic))

    def withdraw_topic(self, name: str) -> None:
        """Take back what `publish_topic` wrote."""
        check_topic_name(name)
        self._session.steady(lambda asking: withdraw_topic(asking, name))

    def watch(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, on another thread, when topics or brokers may have come or gone.

        A hint that shortens a wait; it may fail to come, so list at intervals all the same (Z02).
        """
        self._session.watch_children(TOPICS, callback)
        self._session.watch_children(BROKER_IDS, callback)

    def close(self) -> None:
        """End the session, and with it what it registered; safe to call again."""
        self._session.close()
