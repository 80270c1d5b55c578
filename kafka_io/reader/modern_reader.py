"""Reads planned ranges of a cluster's partitions from whichever brokers lead them, from 0.8 on."""

from collections.abc import Iterable, Iterator

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.closing import Closing
from kafka_io.model import Broker
from kafka_io.reader.modern_partition import ModernPartition
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.records.decoded_batch import DecodedBatch


class ModernReader(Closing):
    """Reads from the leaders that `metadata` knows; it closes the connections of `metadata`."""

    def __init__(self, metadata: ClusterMetadata, read_settings: ReadSettings) -> None:
        self._metadata = metadata
        self._read_settings = read_settings

    def read(self, planned_ranges: Iterable[PlannedRange]) -> Iterator[Iterator[DecodedBatch]]:
        """The batches of each planned range, in order."""
        for planned in planned_ranges:
            yield ModernPartition(metadata=self._metadata, planned=planned, read_settings=self._read_settings).read()

    def serving(self, planned: PlannedRange) -> Broker | None:
        """The broker that the range is read from; None before it is read."""
        return self._metadata.serving(planned.topic, planned.offsets.partition.partition)

    def close(self) -> None:
        """Close all connections; safe to call again."""
        self._metadata.close()
