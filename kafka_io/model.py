"""The values all rooms share. Frozen, small, and free of behaviour that needs a network."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Generation(StrEnum):
    """What a cluster, or one broker of it, speaks; it is found by asking (DESIGN, 1).

    >>> Generation("0.7") is Generation.V07
    True
    """

    V07 = "0.7"
    V08 = "0.8-0.9"
    MODERN = "modern"


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker as the registry names it.

    >>> Broker(id=1, host="::1", port=9092).address
    '[::1]:9092'
    """

    id: int
    host: str
    port: int

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerPartition:
    """One partition of a topic. 0.7 counts them per broker, `<broker>-<partition>`; from 0.8 on `broker` is None.

    There the topic's partitions are numbered once, and the broker that leads one is looked up.

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
    def parse(cls, text: str) -> Self:
        """The inverse of `str`.

        Raises:
            ValueError: when `text` is neither `<broker>-<partition>` nor `<partition>`.
        """
        broker, dash, partition = text.rpartition("-")
        return cls(int(broker) if dash else None, int(partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a broker holds of a partition: offsets `[earliest, latest)`.

    `cuts` are the offsets inside that range, ascending, at which a message is known to start: slices may end there.
    In 0.7 these are the starts of segments (OFFSETS request); from 0.8 on every offset is one, and `cuts` is empty.
    `epoch` is that of the leader who said so, -1 before 2.1.

    >>> Bounds(earliest=3, latest=10).latest
    10
    """

    earliest: int
    latest: int
    cuts: tuple[int, ...] = ()
    epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """A topic as the registry shows it: its incarnation and where its partitions are.

    `also` are other names of the same incarnation: a topic that was given an id in an upgrade is still the one that
    was known by the time of its creation.

    >>> TopicEntry(name="clicks", incarnation="7", partitions=(BrokerPartition(None, 0),)).also
    ()
    """

    name: str
    incarnation: str
    partitions: tuple[BrokerPartition, ...]
    also: tuple[str, ...] = ()
