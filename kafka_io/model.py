"""The values all rooms share. Frozen, small, and free of behaviour that needs a network."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker as the registry names it."""

    id: int
    host: str
    port: int

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, order=True)
class BrokerPartition:
    """What 0.7 addresses: one partition on one broker, written `<broker>-<partition>` in ZooKeeper."""

    broker: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`.

        Raises:
            ValueError: when `text` is not `<broker>-<partition>`.
        """
        broker, _, partition = text.rpartition("-")
        return cls(int(broker), int(partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a broker holds of a partition: offsets `[earliest, latest)`.

    `cuts` are the offsets inside that range, ascending, at which a message is known to start: slices may end there.
    In 0.7 these are the starts of segments (OFFSETS request); from 0.8 on every offset is one, and `cuts` is empty.
    """

    earliest: int
    latest: int
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """A topic as the registry shows it: its incarnation and where its partitions are."""

    name: str
    incarnation: str
    partitions: tuple[BrokerPartition, ...]
