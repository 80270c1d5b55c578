"""Small immutable values that all packages share."""

from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from functools import lru_cache, total_ordering
from typing import NamedTuple, Self

MAX_OFFSET = 2**60
"""The largest offset that is believed: a million records a second reach it after 36,000 years (fault H01).

In 0.7, where offsets are bytes, a gigabyte a second reaches it after 36 years.
"""


MAX_PARTITIONS = 100_000
"""The maximum number of partitions of a topic, and in 0.7 of a topic on one broker."""


class Generation(StrEnum):
    """The generation of the protocol of a cluster or a broker. It is detected, unless the settings fix it.

    >>> Generation("0.7") is Generation.V07
    True
    """

    V07 = "0.7"
    V08 = "0.8-0.9"
    MODERN = "modern"


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker: its id and its address.

    >>> Broker(id=1, host="::1", port=9092).address
    '[::1]:9092'
    """

    id: int
    host: str
    port: int

    @classmethod
    def advertised(cls, id: int, host: str, port: int) -> Self:  # noqa: A002 - the name of the field
        """The broker with the address that a cluster has sent. An IPv6 host may have brackets there (fault F13)."""
        return cls(id, host[1:-1] if host.startswith("[") and host.endswith("]") else host, port)

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@total_ordering
@dataclass(frozen=True, slots=True)
class BrokerPartition:
    """The number of a partition in its topic, with the broker in 0.7.

    0.7 numbers the partitions of a topic per broker (`<broker>-<partition>`). From 0.8 on they are numbered per
    cluster, each has a leader that can change, and `broker` is None.

    >>> str(BrokerPartition(2, 0)), str(BrokerPartition(None, 7))
    ('2-0', '7')
    >>> BrokerPartition.parse("2-0").broker
    2
    """

    broker: int | None
    partition: int

    def __str__(self) -> str:
        return str(self.partition) if self.broker is None else f"{self.broker}-{self.partition}"

    def __lt__(self, other: Self) -> bool:
        if self.broker == other.broker:  # of the same broker, or of a modern topic, which can have 50,000
            return self.partition < other.partition
        return self._order < other._order

    @property
    def holder(self) -> int:
        """The broker that holds a partition of 0.7."""
        assert self.broker is not None, "from 0.8 on no broker is part of a partition's name"
        return self.broker

    @property
    def _order(self) -> tuple[int, int]:
        return (-1 if self.broker is None else self.broker, self.partition)

    @classmethod
    @lru_cache(maxsize=16_384)  # a ledger has the same few partitions in each of its many entries
    def parse(cls, text: str) -> Self:
        """The inverse of `str`.

        Raises:
            ValueError: when `text` is neither `<broker>-<partition>` nor `<partition>`.
        """
        broker, dash, partition = text.rpartition("-")
        return cls(int(broker) if dash else None, int(partition))


class TopicPartition(NamedTuple):
    """A partition's address in its cluster: the topic, the partition's number and, in 0.7, the broker that holds it.

    0.7 counts the partitions of a topic per broker, so the number alone does not identify one. From 0.8 on `broker` is
    None.

    >>> str(TopicPartition("clicks", 3)), str(TopicPartition("clicks", 0, broker=2))
    ('clicks-3', 'clicks-2-0')
    >>> TopicPartition.of("clicks", BrokerPartition(2, 0)) == TopicPartition("clicks", 0, broker=2)
    True
    """

    topic: str
    partition: int
    broker: int | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.within_topic}"

    @property
    def within_topic(self) -> BrokerPartition:
        """The same partition without the topic's name."""
        return BrokerPartition(self.broker, self.partition)

    @classmethod
    def of(cls, topic: str, partition: BrokerPartition) -> Self:
        """The address of a topic's partition."""
        return cls(topic, partition.partition, partition.broker)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The offsets `[start, stop)` of one partition of a topic; in 0.7 an offset is a position in bytes.

    >>> range_ = OffsetRange(BrokerPartition(0, 1), 3, 10)
    >>> str(range_), range_.size
    ('partition 0-1 [3, 10)', 7)
    """

    partition: BrokerPartition
    start: int
    stop: int

    def __str__(self) -> str:
        return f"partition {self.partition} [{self.start}, {self.stop})"

    @property
    def size(self) -> int:
        """How many offsets the range holds; 0 or less for a range that ends before it starts."""
        return self.stop - self.start

    def intersection(self, other: "OffsetRange") -> "OffsetRange | None":
        """The offsets that both ranges hold; None if they share none, or belong to two partitions.

        >>> partition = BrokerPartition(None, 0)
        >>> str(OffsetRange(partition, 3, 10).intersection(OffsetRange(partition, 7, 20)))
        'partition 0 [7, 10)'
        >>> OffsetRange(partition, 3, 7).intersection(OffsetRange(partition, 7, 20)) is None
        True
        """
        start, stop = max(self.start, other.start), min(self.stop, other.stop)
        if self.partition != other.partition or start >= stop:
            return None
        return OffsetRange(self.partition, start, stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The offsets `[earliest, latest)` that a broker holds of a partition.

    `segment_starts` are the starts of the segments inside that range, ascending (OFFSETS request of 0.7). In 0.7 only
    there a message is known to start, so slices end there. From 0.8 on a slice can end anywhere, and this is empty.
    `epoch` is the epoch of the leader that answered, -1 before 2.1. `held_back` is the number of offsets from `latest`
    to the high watermark: an open transaction keeps them from readers of committed records (fault N06).

    >>> Bounds(earliest=3, latest=10, held_back=5).high_watermark
    15
    """

    earliest: int
    latest: int
    segment_starts: tuple[int, ...] = ()
    epoch: int = -1
    held_back: int = 0

    @property
    def high_watermark(self) -> int:
        """The end of the log, including records that an open transaction holds back."""
        return self.latest + self.held_back


class EpochEnd(NamedTuple):
    """The end of a leader epoch in a log, if it is before an offset that was read in this epoch.

    `end` is None if the leader does not say it. It is not exact if the leader does not know the epoch, but only older
    ones: then the log has other records from `end` on, and perhaps before it.
    """

    end: int | None
    is_exact: bool = True


UNKNOWN_INCARNATION = "unknown"
"""The incarnation of all topics in a cluster without topic ids and without ZooKeeper, where it cannot be known."""
_TOPIC_ID_LETTERS = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIds:
    """The ids of one incarnation of a topic, as far as they are known; an unknown id is empty.

    `topic_id` exists from 2.8 on. `created_zxid` is that of the topic's node, and only ZooKeeper shows it. `cluster_id`
    exists from 0.10.1 on.

    >>> before = TopicIds.parse("7")
    >>> upgraded = TopicIds.parse("AAAAAAAAAAAAAAAAAAAABw", "7")
    >>> before.difference(upgraded), before.learned(upgraded).topic_id
    (None, 'AAAAAAAAAAAAAAAAAAAABw')
    >>> before.difference(TopicIds.parse("8"))
    'creation zxid 8 instead of 7'
    """

    cluster_id: str = ""
    topic_id: str = ""
    created_zxid: str = ""

    @classmethod
    def parse(cls, *incarnations: str, cluster_id: str = "") -> Self:
        """The ids that are among the names of an incarnation: a topic id, a zxid, or UNKNOWN_INCARNATION."""
        # A topic that was recreated with the same ids has a name with a number after a plus sign in its table.
        bases = (name.partition("+")[0] for name in incarnations)
        known = [base for base in bases if base and base != UNKNOWN_INCARNATION]
        return cls(
            cluster_id=cluster_id,
            topic_id=next((name for name in known if len(name) == _TOPIC_ID_LETTERS), ""),
            created_zxid=next((name for name in known if len(name) != _TOPIC_ID_LETTERS), ""),
        )

    def difference(self, other: "TopicIds") -> str | None:
        """How the other topic's id differs from this one's; None if nothing shows that they are two topics.

        The strongest id that both know decides. Topic ids are random, so equal ones belong to one topic, even if a
        rebuilt ZooKeeper has created its node again.
        """
        for name, own_id, other_id in (
            ("topic id", self.topic_id, other.topic_id),
            ("creation zxid", self.created_zxid, other.created_zxid),
        ):
            if own_id and other_id:
                return None if own_id == other_id else f"{name} {other_id} instead of {own_id}"
        return None

    def shares_one(self, other: "TopicIds") -> bool:
        """Whether both know an id, of the topic or of its cluster, that is the same."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return any(own_id and own_id == other_id for own_id, other_id in pairs)

    def learned(self, other: "TopicIds") -> "TopicIds":
        """These ids and those of `other`, which is newer, for the same topic."""
        return TopicIds(
            cluster_id=other.cluster_id or self.cluster_id,
            topic_id=other.topic_id or self.topic_id,
            created_zxid=other.created_zxid or self.created_zxid,
        )

    def learned_except_topic_id(self, other: "TopicIds") -> "TopicIds":
        """These ids and those of `other`, which is newer, for the same topic; a topic id of `other` is left out."""
        return replace(self.learned(other), topic_id=self.topic_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """A topic: its incarnation and its partitions.

    `also` are other names of the same incarnation. Before topics had ids, an incarnation was known by the time of its
    creation; a topic that received an id in an upgrade is still the same one.

    >>> TopicEntry(name="clicks", incarnation="7", partitions=(BrokerPartition(None, 0),)).also
    ()
    """

    name: str
    incarnation: str
    partitions: tuple[BrokerPartition, ...]
    also: tuple[str, ...] = ()

    @property
    def ids(self) -> TopicIds:
        """The ids of the incarnation."""
        return TopicIds.parse(self.incarnation, *self.also)

    def with_ids(self, ids: TopicIds) -> Self:
        """The same topic with these ids, of which ZooKeeper may not have shown all.

        >>> entry = TopicEntry(name="clicks", incarnation=UNKNOWN_INCARNATION, partitions=())
        >>> entry.with_ids(TopicIds.parse("7")).incarnation
        '7'
        """
        first, *also = [name for name in (ids.topic_id, ids.created_zxid) if name] or [UNKNOWN_INCARNATION]
        return replace(self, incarnation=first, also=tuple(also))
