"""The consumer connector: seed 003, "High-level API". Groups are kept in ZooKeeper, as 0.7 to 0.9 do."""

import socket
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any, Self

from kafka_io.client.connector.directory import Directory
from kafka_io.client.connector.handover import Handover
from kafka_io.client.connector.options import Options
from kafka_io.client.connector.ownership import EVERY_TOPIC
from kafka_io.client.connector.rounds import Rounds
from kafka_io.client.connector.stream import MessageStream
from kafka_io.closing import Closing
from kafka_io.errors import RegistryError
from kafka_io.registry.members import MOST_STREAMS, Static, Subscription, blacklist, whitelist
from kafka_io.registry.membership import Membership
from kafka_io.registry.paths import check_topic_name


class ConsumerConnector(Closing):
    """A member of a group whose members share the partitions of topics through ZooKeeper. A context manager.

    Genuine consumers of 0.7 and 0.8 can be in the same group: all that is written is as they write it.

        >>> with ConsumerConnector.open(zookeeper, "counters", consumer_timeout_ms=10_000) as connector:
        ...     [stream] = connector.create_message_streams_by_filter(whitelist="click.*")
        ...     for message in stream:
        ...         print(message.topic, message.value)
        ...         if message.value == b"two":
        ...             break
        clicks b'one'
        clicks b'two'
    """

    def __init__(self, membership: Membership, options: Options) -> None:
        self._membership = membership
        self._options = options
        self._creating = threading.Lock()
        self._rounds: Rounds | None = None
        self._is_shut_down = False

    @classmethod
    def open(cls, zookeeper: str, group: str, *, consumer_id: str | None = None, **settings: Any) -> Self:
        """A member of `group` in the cluster whose ZooKeeper is at `host:port[,host:port][/chroot]`.

        Its name is `<group>_<consumer_id>`, for which there is one that nobody else has. `settings` are those of
        Options, by name. It joins the group when it is asked for streams.

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
            NodeMalformed: no group or consumer may have such a name.
            ValueError: a setting that cannot be.
            TypeError: a setting that there is not.
        """
        options = Options(**settings)
        member = f"{group}_{consumer_id or _unlike_any_other()}"
        membership = Membership.open(
            zookeeper,
            group,
            member,
            timeout_s=options.zookeeper_timeout_ms / 1000,
            session_timeout_s=options.session_timeout_ms / 1000,
        )
        return cls(membership, options)

    @property
    def consumer_id(self) -> str:
        """What the other members know it as."""
        return self._membership.member

    def create_message_streams(self, topics: Mapping[str, int]) -> dict[str, list[MessageStream]]:
        """So many streams of each topic, which share its partitions with those of the group's other members.

        Raises:
            RegistryError: ZooKeeper gives no answer, or others did not let go of this member's share in time.
            NodeMalformed: no topic may have such a name.
            ValueError: a number of streams that cannot be.
            RuntimeError: there are streams already, or the connector is shut down.
        """
        for topic, count in topics.items():
            check_topic_name(topic)
            _check_count(count)
        return self._create(Static(dict(topics)), topics)

    def create_message_streams_by_filter(
        self, *, whitelist: str | None = None, blacklist: str | None = None, streams: int = 1
    ) -> list[MessageStream]:
        """So many streams of all topics, also later ones, whose whole name matches `whitelist` or not `blacklist`.

        Both are regular expressions; a comma stands for |, and blanks are dropped, as genuine consumers do.

        Raises:
            ValueError: not one of the two is given, or it is no regular expression.
            RegistryError: as of `create_message_streams`, and so is RuntimeError.
        """
        _check_count(streams)
        return self._create(_filter(whitelist, blacklist, streams), {EVERY_TOPIC: streams})[EVERY_TOPIC]

    def commit_offsets(self) -> None:
        """Commit the offsets of all messages that the streams gave out so far.

        Raises:
            RegistryUnavailable: no answer, or what was owned is lost with its session: other members go on from the
                last commit.
            RuntimeError: there are no streams.
        """
        if self._rounds is None:
            raise RuntimeError("there are no streams whose offsets could be committed")
        self._rounds.ownership.commit(lambda claim: claim.handed)

    def shutdown(self) -> None:
        """End all streams, commit what they gave out unless auto-commit is off, and leave the group.

        It takes `shutdown_timeout_ms` and what ZooKeeper takes at most. Safe to call again.

        Raises:
            RegistryUnavailable: the offsets could not be committed; all else is done.
        """
        with self._creating:
            if self._is_shut_down:
                return
            self._is_shut_down = True
            try:
                if self._rounds is not None:
                    self._rounds.stop()
            finally:
                self._membership.close()

    def close(self) -> None:
        """As `shutdown`."""
        self.shutdown()

    def _create(self, subscription: Subscription, counts: Mapping[str, int]) -> dict[str, list[MessageStream]]:
        with self._creating:
            if self._rounds is not None or self._is_shut_down:
                raise RuntimeError("a connector creates streams once")
            dialect = self._membership.dialect()
            if dialect is None:
                raise RegistryError("no broker is up, and no topic tells of which generation the cluster is")
            directory = Directory(self._membership, dialect, self._options.reading)
            handovers = {
                topic: [Handover(self._options.queued_max_chunks) for _ in range(count)]
                for topic, count in counts.items()
            }
            self._rounds = Rounds(
                self._membership,
                subscription=subscription,
                dialect=dialect,
                open_consumer=directory.open,
                handovers=handovers,
                options=self._options,
            )
            self._rounds.start()
            return {
                topic: [MessageStream(handover, self._options) for handover in some]
                for topic, some in handovers.items()
            }


def _filter(allowed: str | None, denied: str | None, streams: int) -> Subscription:
    if (allowed is None) == (denied is None):
        raise ValueError("streams by filter take a whitelist or a blacklist")
    return whitelist(allowed, streams) if allowed is not None else blacklist(denied or "", streams)


def _check_count(streams: int) -> None:
    if not 0 < streams <= MOST_STREAMS:
        raise ValueError(f"streams are 1 to {MOST_STREAMS}, not {streams}")


def _unlike_any_other() -> str:
    return f"{socket.gethostname()}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"
