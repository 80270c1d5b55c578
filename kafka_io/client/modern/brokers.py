"""The brokers of one cluster from 0.8 on: what they tell of topics, and who leads a partition now.

Any broker answers Metadata, but its answer may be old: who is told that a leader moved forgets what it knew of the
topic and asks again, as often as the patience allows.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from kafka_io.client.link import Patience
from kafka_io.client.modern.dial import Dialling
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.retry import retrying
from kafka_io.closing import Closing
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import KafkaIOError, LeaderMoved, NetworkError, Where, placing
from kafka_io.messages.metadata import (
    MetadataPartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)
from kafka_io.model import Broker, Generation
from kafka_io.wire.types import NULL_UUID, uuid_text

T = TypeVar("T")

LEADER = -2
"""In place of a replica near by."""

_NO_AUTO_CREATE_SINCE = 4  # before, a broker may create the topic that it is asked about
_UNKNOWN_TOPIC = 3
_NO_LEADER = 5


def topic_id_text(topic_id: UUID) -> str | None:
    """A topic's id as Kafka prints it (22 letters); None when the broker has none."""
    return None if topic_id == NULL_UUID else uuid_text(topic_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """Who leads a partition; `topic_id` is null before 2.8, `epoch` -1 before 2.1."""

    link: ModernLink
    epoch: int
    topic_id: UUID


class Brokers(Closing):
    """The brokers that `bootstrap` leads to; one connection each. One thread uses it."""

    def __init__(
        self,
        bootstrap: Sequence[Broker],
        dialling: Dialling,
        patience: Patience,
        *,
        where: Where,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.where = where
        self._dialling = dialling
        self._patience = patience
        self._sleep = sleep
        self._known = tuple(bootstrap)
        self._links: dict[Broker, ModernLink] = {}
        self._topics: dict[str, MetadataTopic] = {}
        self._nodes: dict[int, Broker] = {}
        self._near: dict[tuple[str, int], int] = {}
        self._cluster_id: str | None = None
        self._closing = ExitStack()

    @property
    def known(self) -> tuple[Broker, ...]:
        """Those that are alive as far as is known, and those that were given at first."""
        return tuple(dict.fromkeys((*self._nodes.values(), *self._known)))

    @property
    def generation(self) -> Generation | None:
        """What the brokers speak that were connected to: the oldest of it. None before the first."""
        spoken = {link.generation for link in self._links.values() if link.generation}
        return Generation.V08 if Generation.V08 in spoken else next(iter(spoken), None)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1, and where brokers are asked in Metadata below v2.

        Raises:
            NetworkError: no broker can be reached.
        """
        if not self._nodes:
            self._metadata(_asked)
        return self._cluster_id

    def serving(self, topic: str, partition: int) -> Broker | None:
        """Whom the partition is read from, as far as is known; nobody is asked."""
        found = self._topics.get(topic)
        leaders = (one.leader_id for one in found.partitions if one.partition_index == partition) if found else ()
        leader = self._nodes.get(next(iter(leaders), LEADER))
        return self._nodes.get(self._near.get((topic, partition), LEADER), leader)

    def all_topics(self) -> MetadataResponse:
        """Every topic of the cluster, asked again after errors that pass.

        Raises:
            NetworkError: no broker can be reached.
        """
        with placing(self.where):
            return self.patiently(lambda: self._metadata(_asked))

    def patiently(self, act: Callable[[], T]) -> T:
        """What `act` returns; a retriable error is tried again as often as the patience allows."""
        return retrying(act, self._patience.backoff, sleep=self._sleep)

    def on_leader(self, topic: str, partition: int, act: Callable[[Leader], T]) -> T:
        """What `act` returns for the partition's leader; when that moved or went away, the next one is found.

        Raises:
            KafkaIOError: the last of `act`'s, or that there is no leader.
        """

        def attempt() -> T:
            try:
                leader = self.leader(topic, partition)
                with placing(leader.link.where):
                    return act(leader)
            except (NetworkError, LeaderMoved):
                self.forget(topic)
                raise

        with placing(self.where.within(Where())):
            return self.patiently(attempt)

    def leader(self, topic: str, partition: int) -> Leader:
        """The partition's leader as far as is known; asked for if it is not.

        Raises:
            LeaderMoved: it has none now, or nobody knows the topic yet.
            NetworkError: no broker can be reached.
        """
        found = self.topic(topic)
        if found is None:
            check(_UNKNOWN_TOPIC, Where(topic=topic), MODERN)
        assert found is not None
        for one in found.partitions:
            if one.partition_index == partition:
                return self._leader(found, one)
        raise LeaderMoved("the broker knows no such partition", Where(topic=topic, partition=partition), _UNKNOWN_TOPIC)

    def _leader(self, topic: MetadataTopic, one: MetadataPartition) -> Leader:
        node = self._nodes.get(one.leader_id)
        if node is None:
            place = Where(topic=topic.name, partition=one.partition_index)
            raise LeaderMoved("the partition has no leader", place, _NO_LEADER)
        return Leader(link=self.link(node), epoch=one.leader_epoch, topic_id=topic.topic_id)

    def topic(self, name: str) -> MetadataTopic | None:
        """What is known of a topic; None if the cluster has no such.

        Raises:
            NetworkError: no broker can be reached.
            BrokerError: the topic cannot be looked at.
        """
        if name not in self._topics:
            answer = self._metadata(lambda link: _asked(link, name))
            found = [one for one in answer.topics if one.name == name]
            if not found or found[0].error_code == _UNKNOWN_TOPIC:
                return None
            check(found[0].error_code, Where(topic=name), MODERN)
            self._topics[name] = found[0]
        return self._topics[name]

    def learn(self, names: Iterable[str]) -> None:
        """Ask for all of these topics that nothing is known of, in one question.

        What cannot be looked at stays unknown: `topic` says why.

        Raises:
            NetworkError: no broker can be reached.
        """
        unknown = sorted(set(names) - self._topics.keys())
        if len(unknown) > 1:
            answer = self._metadata(lambda link: _asked(link, *unknown))
            whole = {one.name: one for one in answer.topics if one.name and not one.error_code}
            self._topics |= {name: whole[name] for name in unknown if name in whole}

    def make(self, topic: str) -> None:
        """Ask for a topic as clients do that want to write to it: brokers then make it, if they may by their settings.

        Raises:
            NetworkError: no broker can be reached.
        """
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=True)
        self._metadata(lambda _link: asked)

    def nearest(self, topic: str, partition: int) -> ModernLink | None:
        """The replica to read the partition from instead of its leader, if that named one that is alive (KIP-392)."""
        broker = self._nodes.get(self._near.get((topic, partition), LEADER))
        return self.link(broker) if broker else None

    def read_near(self, topic: str, partition: int, node: int) -> None:
        """Read the partition from this broker, or from none but its LEADER, until the topic is forgotten."""
        self._near[topic, partition] = node if node in self._nodes else LEADER

    def leader_only(self, topic: str, partition: int) -> bool:
        """Whether a replica near by was tried in vain."""
        return self._near.get((topic, partition)) == LEADER

    def forget(self, topic: str) -> None:
        """Ask anew for the topic next time."""
        self._topics.pop(topic, None)
        self._near = {key: node for key, node in self._near.items() if key[0] != topic}

    def of_any(self, ask: Callable[[ModernLink], T]) -> T:
        """What the first broker tells that can be reached.

        Raises:
            NetworkError: none can.
        """
        failure: KafkaIOError | None = None
        for broker in self.known:
            link = self.link(broker)
            try:
                return ask(link)
            except NetworkError as error:
                failure = error.placed(link.where)
        assert failure is not None
        raise failure

    def _metadata(self, asked: Callable[[ModernLink], MetadataRequest]) -> MetadataResponse:
        answer = self.of_any(lambda link: link.request(asked(link)))
        self._cluster_id = answer.cluster_id
        self._nodes = {node.node_id: Broker(node.node_id, node.host, node.port) for node in answer.brokers}
        return answer

    def link(self, broker: Broker) -> ModernLink:
        """The one connection to a broker, which is opened when it is needed."""
        if broker not in self._links:
            self._links[broker] = self._closing.enter_context(ModernLink(broker, self._dialling, sleep=self._sleep))
        return self._links[broker]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()


def _asked(link: ModernLink, *topics: str) -> MetadataRequest:
    """All topics where none is named, or asking for one might create it.

    v0 says "all" with an empty list, later versions with null.
    """
    version = link.versions.pick(MetadataRequest.API)
    if not topics or version < _NO_AUTO_CREATE_SINCE:
        return MetadataRequest(topics=() if version == 0 else None, allow_auto_topic_creation=False)
    named = tuple(MetadataRequestTopic(name=topic) for topic in topics)
    return MetadataRequest(topics=named, allow_auto_topic_creation=False)
