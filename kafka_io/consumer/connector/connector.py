"""The consumer connector [kafka-0.7: Rebalancing]: a member of a group that is kept in ZooKeeper, as in 0.7 to 0.9."""

import socket
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Self, Unpack

from kafka_io.closing import Closing
from kafka_io.consumer.connector.brokers import BrokerDirectory
from kafka_io.consumer.connector.fetcher import ConnectorFetcher
from kafka_io.consumer.connector.options import ConnectorOptions, ConnectorSettings
from kafka_io.consumer.connector.ownership import PartitionOwnership
from kafka_io.consumer.connector.rebalance import EVERY_TOPIC, RebalanceLoop
from kafka_io.consumer.connector.stream import MessageStream
from kafka_io.errors import RegistryError
from kafka_io.zookeeper import members
from kafka_io.zookeeper.members import MAX_STREAMS, ConsumerSubscription, StaticSubscription
from kafka_io.zookeeper.membership import ConsumerRegistration
from kafka_io.zookeeper.paths import check_topic_name


class ConsumerConnector(Closing):
    """A member of a group whose members divide the partitions of topics through ZooKeeper. A context manager.

    Kafka's own consumers of 0.7 and 0.8 can be in the same group: the nodes in ZooKeeper have the same format.

        >>> with ConsumerConnector.open(zookeeper, "counters", consumer_timeout_ms=10_000) as connector:
        ...     [stream] = connector.create_message_streams_by_filter(whitelist="click.*")
        ...     for message in stream:
        ...         print(message.topic, message.value)
        ...         if message.value == b"two":
        ...             break
        clicks b'one'
        clicks b'two'
    """

    def __init__(self, registration: ConsumerRegistration, options: ConnectorOptions) -> None:
        self._registration = registration
        self._options = options
        self._creating = threading.Lock()
        self._loop: RebalanceLoop | None = None
        self._is_shut_down = False

    @classmethod
    def open(
        cls, zookeeper: str, group: str, *, consumer_id: str | None = None, **settings: Unpack[ConnectorSettings]
    ) -> Self:
        """Open a member of `group`; it joins the group when its streams are created.

        Args:
            zookeeper: `host:port[,host:port][/chroot]` of the cluster.
            group: the group's name.
            consumer_id: the member's name is `<group>_<consumer_id>`; by default the id is unique.
            settings: the fields of ConnectorOptions.

        Raises:
            RegistryUnavailable: no ZooKeeper answers at the address.
            NodeMalformed: the name of the group or consumer is not valid.
            ValueError: the value of a setting is not allowed.
            TypeError: there is no such setting.
        """
        options = ConnectorOptions(**settings)
        member = f"{group}_{consumer_id or _unique_id()}"
        registration = ConsumerRegistration.open(
            zookeeper,
            group,
            member,
            timeout_s=options.zookeeper_timeout_ms / 1000,
            session_timeout_s=options.session_timeout_ms / 1000,
        )
        return cls(registration, options)

    @property
    def consumer_id(self) -> str:
        """The name under which the other members know this one."""
        return self._registration.member

    def create_message_streams(self, topics: Mapping[str, int]) -> dict[str, list[MessageStream]]:
        """Join the group, and create the given number of streams for each topic.

        The streams of a topic divide its partitions with the streams of the group's other members.

        Raises:
            RegistryError: ZooKeeper does not answer, or other members did not release their partitions in time.
            NodeMalformed: a topic's name is not valid.
            ValueError: a number of streams is not allowed.
            RuntimeError: the connector already has streams, or is shut down.
        """
        for topic, count in topics.items():
            check_topic_name(topic)
            _check_count(count)
        return self._create(StaticSubscription(dict(topics)), topics)

    def create_message_streams_by_filter(
        self, *, whitelist: str | None = None, blacklist: str | None = None, streams: int = 1
    ) -> list[MessageStream]:
        """Join the group, and create streams of all topics that a filter allows, also of topics created later.

        The whole name of a topic must match `whitelist`, or must not match `blacklist`. Both are regular expressions in
        which a comma stands for | and blanks are ignored, as in genuine consumers.

        Raises:
            ValueError: none or both of the two are given, or the filter is not a regular expression.
            RegistryError, RuntimeError: as in `create_message_streams`.
        """
        _check_count(streams)
        if (whitelist is None) == (blacklist is None):
            raise ValueError("give either a whitelist or a blacklist")
        subscription = (
            members.blacklist(blacklist or "", streams) if whitelist is None else members.whitelist(whitelist, streams)
        )
        return self._create(subscription, {EVERY_TOPIC: streams})[EVERY_TOPIC]

    def commit_offsets(self) -> None:
        """Commit the offsets of all messages that the streams have returned so far.

        Raises:
            RegistryUnavailable: no answer, or the session was lost, and the ownership of partitions with it. Their next
                owners continue at the last commit.
            RuntimeError: the connector has no streams.
        """
        if self._loop is None:
            raise RuntimeError("the connector has no streams yet: create them before you commit")
        self._loop.ownership.commit_delivered()

    def shutdown(self) -> None:
        """End all streams, commit the offsets of returned messages unless auto-commit is off, and leave the group.

        It takes at most `shutdown_timeout_ms` plus the time for ZooKeeper. Safe to call again.

        Raises:
            RegistryUnavailable: the offsets could not be committed; everything else is done.
        """
        with self._creating:
            if self._is_shut_down:
                return
            self._is_shut_down = True
            try:
                if self._loop is not None:
                    self._loop.stop()
            finally:
                self._registration.close()

    def close(self) -> None:
        """The same as `shutdown`."""
        self.shutdown()

    def _create(self, subscription: ConsumerSubscription, counts: Mapping[str, int]) -> dict[str, list[MessageStream]]:
        with self._creating:
            if self._loop is not None or self._is_shut_down:
                raise RuntimeError("a connector creates streams once: it has streams already, or is shut down")
            node_format = self._registration.node_format()
            if node_format is None:
                raise RegistryError(
                    "ZooKeeper has neither a broker nor a topic, so the cluster's generation is unknown: start a broker"
                )
            directory = BrokerDirectory(self._registration, node_format, self._options.read_settings)
            ownership = PartitionOwnership(self._registration, subscription, node_format)
            fetchers = {
                (topic, stream): ConnectorFetcher(directory.open, self._options, ownership.commit_processed)
                for topic, count in counts.items()
                for stream in range(count)
            }
            self._loop = RebalanceLoop(ownership, fetchers, self._options)
            self._loop.start()
            return {
                topic: [MessageStream(fetchers[topic, stream].queue, self._options) for stream in range(count)]
                for topic, count in counts.items()
            }


def _check_count(streams: int) -> None:
    if not 0 < streams <= MAX_STREAMS:
        raise ValueError(f"the number of streams must be 1 to {MAX_STREAMS}, not {streams}")


def _unique_id() -> str:
    return f"{socket.gethostname()}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"
