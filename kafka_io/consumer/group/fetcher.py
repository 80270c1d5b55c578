"""The assigned partitions of a group consumer: their positions, and the fetched batches that wait for `poll`.

A partition is fetched again only after all its batches were delivered, so memory holds at most one answer of it.
"""

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.consumer.fetched import ConsumedMessage, FetchPosition, FetchResult, consumed_messages
from kafka_io.consumer.modern_simple import ModernPartitionFetcher
from kafka_io.errors import KafkaIOError
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.decoded_batch import DecodedBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedBatch:
    """Records of one partition as Arrow columns, in the order of their offsets.

    Args:
        records: offset, timestamp (ms), timestampType, key, value, headers.
        next_offset: the offset from which to continue; offsets before it without a record hold none.

    >>> import pyarrow as pa
    >>> from kafka_io.consumer.group.fetcher import ConsumedBatch
    >>> batch = ConsumedBatch(topic="clicks", partition=0, records=pa.record_batch({"offset": [7, 8]}), next_offset=9)
    >>> str(batch.topic_partition), batch.records.num_rows
    ('clicks-0', 2)
    """

    topic: str
    partition: int
    records: pa.RecordBatch
    next_offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's address."""
        return TopicPartition(self.topic, self.partition)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The records as a stream of Arrow's PyCapsule interface: pyarrow, DuckDB and Polars read this directly."""
        return self.records.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[ConsumedMessage]:
        return consumed_messages(self.topic_partition, DecodedBatch(self.records, self.next_offset, {}))


@dataclass(slots=True)
class AssignedPartition:
    """The state of a partition that is assigned to a consumer.

    Args:
        position: the offset after the last delivered record; None while the start is not known.
        committed: the offset of the last commit, so that nothing is committed twice.
        out_of_range: whether the log does not hold the committed offset.
        paused: whether nothing is delivered for now.
        fetch_bytes: the size of the next fetch, if the first batch needs more than usual.
        waiting: fetched batches that no poll has returned yet.
    """

    position: int | None = None
    committed: int | None = None
    out_of_range: bool = False
    paused: bool = False
    fetch_bytes: int | None = None
    waiting: deque[ConsumedBatch] = field(default_factory=deque)

    def seek(self, offset: int) -> None:
        """Continue at `offset`; batches that wait are dropped."""
        self.position, self.out_of_range = offset, False
        self.waiting.clear()


class GroupFetcher:
    """Fetches the assigned partitions of one consumer from their leaders. One thread uses it."""

    def __init__(self, metadata: ClusterMetadata, read_settings: ReadSettings) -> None:
        self.partitions: dict[TopicPartition, AssignedPartition] = {}  # in the order of the next fetch
        self._metadata = metadata
        self._read_settings = read_settings

    def take(self, *, excluding: Collection[TopicPartition] = ()) -> ConsumedBatch | None:
        """Deliver the next waiting batch, but of no excluded partition; None if no batch waits."""
        for key, partition in self.partitions.items():
            if partition.waiting and not partition.paused and key not in excluding:
                batch = partition.waiting.popleft()
                partition.position = batch.next_offset
                return batch
        return None

    def fetch(self, max_wait_s: float) -> dict[TopicPartition, KafkaIOError] | None:
        """Fetch the partitions without a waiting batch; returns the errors. None if there is no such partition.

        Raises:
            WireError: the bytes received are no valid records, or a batch is too large; `seek` skips it.
        """
        sizes = self._read_settings.sizes
        due = [
            FetchPosition.of(key, partition.position, partition.fetch_bytes or sizes.fetch_bytes)
            for key, partition in self.partitions.items()
            if partition.position is not None and not partition.waiting and not partition.paused
        ]
        if not due:
            return None
        # Brokers before 0.10.1 limit an answer only by the size per partition, so a request names few partitions.
        room = sizes.max_fetch_bytes // max(position.max_bytes for position in due)
        requested = due[: max(1, room)]
        fetcher = ModernPartitionFetcher(
            lambda: self._metadata, self._read_settings, max_wait_ms=round(max_wait_s * 1000)
        )
        errors = {}
        for position, result in zip(requested, fetcher.multifetch(requested), strict=True):
            key = position.topic_partition
            # To the end of the order: the next request names the partitions for which this one had no room.
            self.partitions[key] = partition = self.partitions.pop(key)
            if isinstance(result, KafkaIOError):
                errors[key] = result
            elif result.needed_bytes:
                partition.fetch_bytes = sizes.next_larger(position.max_bytes, result.needed_bytes, position.where)
            else:
                partition.fetch_bytes = None
                _store(partition, result)
        return errors


def _store(partition: AssignedPartition, result: FetchResult) -> None:
    for decoded in result.batches():
        if decoded.batch.num_rows:
            batch = ConsumedBatch(
                topic=result.position.topic,
                partition=result.position.partition.partition,
                records=decoded.batch,
                next_offset=decoded.next_offset,
            )
            partition.waiting.append(batch)
        elif partition.waiting:
            # Offsets without a record, as in a compacted log: they belong to the batch before them.
            partition.waiting[-1] = replace(partition.waiting[-1], next_offset=decoded.next_offset)
        else:
            partition.position = decoded.next_offset
