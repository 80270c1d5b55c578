"""Start offsets for partitions without a usable committed offset, and for seeks to the ends of the log."""

from collections.abc import Iterable
from enum import StrEnum

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.cluster.bounds import bounds_of
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import OffsetOutOfRange, Where
from kafka_io.model import Bounds, TopicPartition


class OffsetReset(StrEnum):
    """Where to start a partition without a committed offset, or whose offset is gone; Kafka's `auto.offset.reset`.

    >>> from kafka_io import OffsetReset
    >>> OffsetReset("latest") is OffsetReset.LATEST
    True
    """

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


def reset_offsets(
    metadata: ClusterMetadata, partitions: Iterable[TopicPartition], reset: OffsetReset, *, committed: bool
) -> PartitionAnswers[int]:
    """The start offset of each partition; an error replaces only the offsets that it concerns.

    With `committed`, the end of a partition is before the records of open transactions.

    Raises:
        OffsetOutOfRange: there are partitions, and `reset` is `none`.
    """
    partitions = sorted(partitions)
    if reset is OffsetReset.NONE and partitions:
        sentence = "the log does not hold a committed offset of the group, and the offset reset is `none`"
        where = Where(topic=partitions[0].topic, partition=partitions[0].partition)
        raise OffsetOutOfRange(sentence, where, ErrorCode.OFFSET_OUT_OF_RANGE)
    bounds = bounds_of(metadata, partitions, committed=committed) if partitions else {}
    return {
        partition: getattr(answer, reset) if isinstance(answer, Bounds) else answer  # Bounds has these two fields
        for partition, answer in bounds.items()
    }
