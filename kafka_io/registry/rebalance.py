"""The assignment of partitions to the threads of a group, as a pure function [kafka-0.7: Rebalancing].

Every member computes the same assignment from ZooKeeper, so the order must be that of the genuine consumers: texts are
compared as in Java, and broker-partitions of 0.7 are compared as texts ("10-0" before "2-0"), later ones as numbers.

Each thread gets one contiguous range. If the partitions cannot be divided evenly, the first threads get one more. A
published sample program computes the start of later ranges wrongly in that case, so it must not be copied.
"""

from collections.abc import Iterable

from kafka_io.model import BrokerPartition

PartitionAssignment = dict[str, tuple[BrokerPartition, ...]]
"""The partitions of each thread."""


def assign(partitions: Iterable[BrokerPartition], threads: Iterable[str]) -> PartitionAssignment:
    """Assign the partitions of a topic to the threads that consume it. The order of both arguments does not matter."""
    ordered = sorted(set(partitions), key=_partition_order)
    ordered_threads = sorted(set(threads), key=java_order)
    if not ordered_threads:
        return {}
    size, extras = divmod(len(ordered), len(ordered_threads))
    starts = [index * size + min(index, extras) for index in range(len(ordered_threads) + 1)]
    return {thread: tuple(ordered[starts[i] : starts[i + 1]]) for i, thread in enumerate(ordered_threads)}


def java_order(text: str) -> bytes:
    """The key by which Java sorts texts: by their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _partition_order(partition: BrokerPartition) -> tuple[int, str]:
    return (partition.partition, "") if partition.broker is None else (0, str(partition))
