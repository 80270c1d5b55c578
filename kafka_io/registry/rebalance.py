"""Who of a group consumes which partitions: seed 000, "Rebalancing"; seed 003, "Consumer rebalancing algorithm". Pure.

Every member computes the same from what ZooKeeper shows, so the order must be that of the genuine consumers: texts are
compared as Java does, broker-partitions of 0.7 as texts too ("10-0" before "2-0": facts, 6), later ones as numbers.

Each gets one contiguous chunk, the first ones one partition more where it cannot be even. The sample code of seed 000
counts the extras of those before wrongly unless all or none of them have one: the last chunks then begin too early.
"""

from collections.abc import Iterable

from kafka_io.model import BrokerPartition

Assignment = dict[str, tuple[BrokerPartition, ...]]
"""By thread, what it consumes."""


def assign(partitions: Iterable[BrokerPartition], threads: Iterable[str]) -> Assignment:
    """A topic's partitions, shared among the threads that consume it, whatever order both come in."""
    shared = sorted(set(partitions), key=_partition_order)
    takers = sorted(set(threads), key=java_order)
    if not takers:
        return {}
    least, extras = divmod(len(shared), len(takers))
    starts = [place * least + min(place, extras) for place in range(len(takers) + 1)]
    return {thread: tuple(shared[starts[place] : starts[place + 1]]) for place, thread in enumerate(takers)}


def java_order(text: str) -> bytes:
    """The key by which Java sorts texts: unit by unit of UTF-16."""
    return text.encode("utf-16-be", "surrogatepass")


def _partition_order(partition: BrokerPartition) -> tuple[int, str]:
    return (partition.partition, "") if partition.broker is None else (0, str(partition))
