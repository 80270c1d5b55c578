"""Start offsets for partitions without a usable committed offset, and for seeks: ends of logs, and times."""

from collections.abc import Iterable
from enum import StrEnum

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.cluster.bounds import bounds_of, offsets_at
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


class OffsetResolver:
    """Asks the brokers for offsets.

    Args:
        committed: the end of a partition lies before the records of open transactions.
    """

    def __init__(self, metadata: ClusterMetadata, *, committed: bool) -> None:
        self._metadata = metadata
        self._committed = committed

    def reset(self, partitions: Iterable[TopicPartition], reset: OffsetReset) -> PartitionAnswers[int]:
        """The start offset of each partition; an error replaces only the offsets that it concerns.

        Raises:
            OffsetOutOfRange: there are partitions, and `reset` is `none`.
        """
        partitions = sorted(partitions)
        if reset is OffsetReset.NONE and partitions:
            first = partitions[0]
            sentence = "the log does not hold a committed offset of the group, and the offset reset is `none`"
            where = Where(topic=first.topic, partition=first.partition)
            raise OffsetOutOfRange(sentence, where, ErrorCode.OFFSET_OUT_OF_RANGE)
        bounds = bounds_of(self._metadata, partitions, committed=self._committed) if partitions else {}
        return {
            partition: getattr(answer, reset) if isinstance(answer, Bounds) else answer  # Bounds has these two fields
            for partition, answer in bounds.items()
        }

    def at_time(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> PartitionAnswers[int]:
        """The first offset of each partition whose record is not older; see `Cluster.offsets_at`."""
        return offsets_at(self._metadata, partitions, timestamp_ms, committed=self._committed)
