"""A cluster from 0.8 on: topics from ZooKeeper if it has one, else from Metadata; bounds from the leaders."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from kafka_io.client.cluster import Cluster
from kafka_io.client.link import Patience
from kafka_io.client.modern.bounds import bounds_of, offsets_at
from kafka_io.client.modern.brokers import Brokers, topic_id_text
from kafka_io.client.modern.epochs import partings
from kafka_io.client.modern.leading import Answers, Place
from kafka_io.client.modern.publishing import publish
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.modern.retention import retention_of
from kafka_io.client.modern.times import times_at
from kafka_io.client.reading import Reading
from kafka_io.client.retention import Retention
from kafka_io.client.source import Source
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import BrokerError, KafkaIOError, RegistryError, Unsupported, Where, placing
from kafka_io.messages.metadata import MetadataTopic
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.registry.listing import Listing, Skipped
from kafka_io.registry.zookeeper import Registry

T = TypeVar("T")

UNKNOWN_LIFE = "unknown"
"""The incarnation of a topic of a cluster that has neither topic ids nor a ZooKeeper: a new life goes unnoticed."""


class ModernCluster(Cluster):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it."""

    def __init__(
        self,
        name: str,
        *,
        registry: Registry | None = None,
        bootstrap: Sequence[Broker] = (),
        reading: Reading,
        generation: Generation | None = None,
        security: Security = PLAINTEXT,
    ) -> None:
        self.name = name
        self.registry = registry
        self._bootstrap = tuple(bootstrap)
        self._reading = reading
        self._pinned = generation
        self._security = security
        self._opened: dict[Patience, Brokers] = {}

    @property
    def where(self) -> Where:
        """The cluster's place, for errors."""
        return Where(cluster=self.name)

    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        with placing(self.where):
            if self.registry is not None:
                return self.registry.cluster_id()
            return self._brokers.patiently(lambda: self._brokers.cluster_id)

    def topics(self) -> Listing[TopicEntry]:
        """All topics but Kafka's own, listed afresh, and those that were passed over with the reason.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        if self.registry is not None:
            with placing(self.where):
                return self.registry.topics()
        skipped: list[Skipped] = []
        found = [
            entry
            for topic in self._brokers.all_topics().topics
            if not topic.is_internal and (entry := _entry(topic, skipped))
        ]
        return Listing(found=tuple(sorted(found, key=lambda entry: entry.name)), skipped=tuple(skipped))

    def topic(self, name: str) -> TopicEntry | None:
        """One topic as it is now; None if there is no such."""
        with placing(Where(cluster=self.name, topic=name)):
            if self.registry is not None:
                return self.registry.topic(name)
            self._brokers.forget(name)
            found = self._brokers.patiently(lambda: self._brokers.topic(name))
            return _entry(found, []) if found else None

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only what it concerns.

        Before `latest` no transaction is open, unless what is not committed is read as well.
        """
        return self.bounds_of({topic: partitions})[topic]

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """What `bounds` tells, of many topics at once: with two questions to each broker."""
        with placing(self.where):
            found = bounds_of(self._brokers, _places(topics), committed=self._reading.committed)
        return self._answers(topics, found)

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The first offset of each partition whose record is not older than that time; the latest if none is.

        Brokers before 0.10 tell the start of a segment that was last written to before that time, or the earliest
        offset: older records may follow, but none is skipped. It is never above the latest that `bounds` gives.
        """
        asked = {topic: partitions}
        with placing(self._place(topic)):
            found = offsets_at(self._brokers, _places(asked), timestamp_ms, committed=self._reading.committed)
        return self._answers(asked, found)[topic]

    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """See Cluster: by small fetches from 0.10 on, and by segments before."""
        asked = {(topic, id_.partition): offset for topic, offsets in at.items() for id_, offset in offsets.items()}
        with placing(self.where):
            found = times_at(self._brokers, asked, self._reading, now_ms=time.time_ns() // 1_000_000)
        return self._answers(at, found)

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """See Cluster: as the brokers tell, or else ZooKeeper.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: no broker can be reached.
        """
        names = sorted(set(topics))
        with placing(self.where):
            try:
                found = retention_of(self._brokers, names)
            except Unsupported:  # before 0.11
                found = self._registered_retention(names)
        return {topic: self._placed(topic, kept) for topic, kept in found.items()}

    def _registered_retention(self, topics: Sequence[str]) -> dict[str, Retention | KafkaIOError]:
        if self.registry is None:
            return dict.fromkeys(topics, Retention())
        settings = self.registry.topic_settings(topics)
        return {
            topic: found if isinstance(found, KafkaIOError) else Retention.of(found)
            for topic, found in settings.items()
        }

    def _place(self, topic: str) -> Where:
        return Where(cluster=self.name, topic=topic)

    def _answers(
        self, topics: Mapping[str, Iterable[BrokerPartition]], found: Answers[T]
    ) -> dict[str, dict[BrokerPartition, T | KafkaIOError]]:
        answers: dict[str, dict[BrokerPartition, T | KafkaIOError]] = {topic: {} for topic in topics}
        for (topic, number), answer in found.items():
            answers[topic][BrokerPartition(None, number)] = self._placed(topic, answer)
        return answers

    def _placed(self, topic: str, answer: T | KafkaIOError) -> T | KafkaIOError:
        return answer.placed(self._place(topic)) if isinstance(answer, KafkaIOError) else answer

    def partings(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """Of partitions read up to (offset, in a leader's epoch): from where on the log is another, where it is."""
        with placing(Where(cluster=self.name, topic=topic)):
            found = partings(self._brokers, topic, {one.partition: at for one, at in read.items()})
        return {BrokerPartition(None, number): end for number, end in found.items()}

    def publish(
        self,
        topic: str,
        payloads: Iterable[bytes],
        *,
        codecs: Sequence[str] = ("none",),
        batch: int = 500,
        on_sent: Callable[[int], None] = lambda _count: None,
    ) -> int:
        """See kafka_io.client.modern.publishing."""
        with placing(self._place(topic)):
            return publish(self._brokers, topic, payloads, codecs=codecs, batch=batch, on_sent=on_sent)

    def source(self, partition: BrokerPartition) -> Source:
        """Where a worker reads the partition from: any of the brokers leads to its leader."""
        del partition
        return Source(
            cluster=self.name,
            generation=self._pinned or self._brokers.generation or Generation.MODERN,
            brokers=self._brokers.known,
            security=self._security,
            reading=self._reading,
        )

    @property
    def generation(self) -> Generation:
        """What its brokers speak: the oldest of it, as far as is known.

        Raises:
            NetworkError: no broker can be reached.
        """
        brokers = self._brokers
        if self._pinned is None and brokers.generation is None:
            with placing(self.where):
                brokers.patiently(lambda: brokers.of_any(lambda link: link.versions))
        return self._pinned or brokers.generation or Generation.MODERN

    def brokers(self, patience: Patience | None = None) -> Brokers:
        """The brokers, for clients of one kind of request; with a patience of their own, over connections of their own.

        Raises:
            RegistryError: none is registered.
        """
        patience = patience or self._reading.patience
        if patience not in self._opened:
            self._opened[patience] = open_brokers(
                self._addresses(),
                replace(self._reading, patience=patience),
                cluster=self.name,
                generation=self._pinned,
                security=self._security,
            )
        return self._opened[patience]

    @property
    def _brokers(self) -> Brokers:
        return self.brokers()

    def _addresses(self) -> tuple[Broker, ...]:
        """Those that were given, else those that are registered.

        Raises:
            RegistryError: none is.
        """
        if self._bootstrap or self.registry is None:
            return self._bootstrap
        with placing(self.where):
            listed = self.registry.brokers(self._security.protocol)
            if not listed.found:
                left_out = "".join(f"; {one.path}: {one.reason}" for one in listed.skipped)
                raise RegistryError(f"no broker is registered that could be asked{left_out}")
        return listed.found

    def close(self) -> None:
        """End all connections; safe to call again."""
        for brokers in self._opened.values():
            brokers.close()
        if self.registry is not None:
            self.registry.close()


def _places(topics: Mapping[str, Iterable[BrokerPartition]]) -> list[Place]:
    return [(topic, id_.partition) for topic, partitions in topics.items() for id_ in partitions]


def _entry(topic: MetadataTopic, skipped: list[Skipped]) -> TopicEntry | None:
    name = topic.name or ""
    try:
        check(topic.error_code, Where(topic=name), MODERN)
    except BrokerError as error:
        skipped.append(Skipped(path=name, reason=str(error)))
        return None
    numbers = sorted(one.partition_index for one in topic.partitions)
    return TopicEntry(
        name=name,
        incarnation=topic_id_text(topic.topic_id) or UNKNOWN_LIFE,
        partitions=tuple(BrokerPartition(None, number) for number in numbers),
    )
