"""The 0.7 registry in ZooKeeper: which brokers and topics there are, and a place for a broker to register itself.

Every call lists afresh, and answers with the whole registry or an error.
"""

from collections.abc import Callable
from typing import Self

from kafka_io.closing import Closing
from kafka_io.model import Broker, TopicEntry
from kafka_io.registry.listing import Listing, Skipped, list_brokers, list_topics, read_topic
from kafka_io.registry.paths import (
    BROKER_IDS,
    TOPICS,
    broker_path,
    check_topic_name,
    format_broker_07,
    format_topic_share,
    share_path,
)
from kafka_io.registry.registration import Registration
from kafka_io.registry.session import Session

__all__ = ["Listing", "Registry", "Skipped"]


class Registry(Closing):
    """A 0.7 cluster's registry. A context manager; any thread of the process that opened it may ask."""

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

    def brokers(self) -> Listing[Broker]:
        """The brokers by id. One that was killed is listed until its session has timed out (Z03).

        Raises:
            RegistryUnavailable: no answer.
            RegistryError: this is not a Kafka registry, or may not be read.
            Unsupported: it is one of Kafka 0.8 or later.
        """
        return self._session.steady(list_brokers)

    def topics(self) -> Listing[TopicEntry]:
        """The topics by name; one without a living broker has no partitions. Raises what `brokers` does."""
        return self._session.steady(list_topics)

    def topic(self, name: str) -> TopicEntry | None:
        """One topic; None if the registry has no such. Raises what `brokers` does, and NodeMalformed for a bad node."""
        check_topic_name(name)
        return self._session.steady(lambda asking: read_topic(asking, name))

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

    def watch(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, on another thread, when topics or brokers may have come or gone.

        A hint that shortens a wait; it may fail to come, so list at intervals all the same (Z02).
        """
        self._session.watch_children(TOPICS, callback)
        self._session.watch_children(BROKER_IDS, callback)

    def close(self) -> None:
        """End the session, and with it what it registered; safe to call again."""
        self._session.close()
