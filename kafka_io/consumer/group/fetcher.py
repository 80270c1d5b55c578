"""The fetcher of a group consumer: the position of each partition, and the fetched batches that wait for `poll`.

A partition is fetched again only after all its batches were delivered, so memory holds at most one answer of it.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.consumer.fetched import ConsumedMessage, FetchPosition, FetchResult
from kafka_io.consumer.modern_simple import ModernPartitionFetcher
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import BrokerPartition, TopicPartition
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

    def __iter__(self) -> Iterator[ConsumedMessage]:
        position = FetchPosition(topic=self.topic, partition=BrokerPartition(None, self.partition), offset=0)
        decoded = DecodedBatch(self.records, self.next_offset, {})
        return iter(
            FetchResult(position=position, next_offset=self.next_offset, needed_bytes=0, decode=lambda: iter([decoded]))
        )


class GroupFetcher:
    """Fetches the partitions of one consumer from their leaders. One thread uses it."""

    def __init__(self, metadata: ClusterMetadata, read_settings: ReadSettings) -> None:
        self._metadata = metadata
        self._read_settings = read_settings
        self._positions: dict[TopicPartition, int] = {}  # the offset after the last delivered record
        self._fetch_bytes: dict[TopicPartition, int] = {}  # only where the first batch needs more than usual
        self._paused: set[TopicPartition] = set()
        self._waiting: deque[ConsumedBatch] = deque()

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The offset after the last delivered record, for each partition that has a position."""
        return dict(self._positions)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return frozenset(self._paused)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at `offset`; batches that wait are dropped."""
        self._drop_waiting([partition])
        self._positions[partition] = offset

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Fetch these partitions no more."""
        self._drop_waiting(partitions)
        self._paused.difference_update(partitions)
        for partition in partitions:
            self._positions.pop(partition, None)
            self._fetch_bytes.pop(partition, None)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver nothing of these partitions until `resume`."""
        self._paused.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver these partitions again."""
        self._paused.difference_update(partitions)

    def take(self, *, excluding: Collection[TopicPartition] = ()) -> ConsumedBatch | None:
        """Deliver the next waiting batch of another partition than these; None if there is none."""
        for index, batch in enumerate(self._waiting):
            if batch.topic_partition not in self._paused and batch.topic_partition not in excluding:
                del self._waiting[index]
                self._positions[batch.topic_partition] = batch.next_offset
                return batch
        return None

    def fetch(self, max_wait_s: float) -> dict[TopicPartition, KafkaIOError] | None:
        """Fetch the partitions without a waiting batch; returns the errors. None if there is no such partition.

        Raises:
            WireError: the bytes received are no valid records, or a batch is too large; `seek` skips it.
        """
        waiting = {batch.topic_partition for batch in self._waiting}
        due = [partition for partition in self._positions if partition not in waiting and partition not in self._paused]
        if not due:
            return None
        # A request may not have room for all: partitions that are fetched now move to the end of the order.
        for partition in due:
            self._positions[partition] = self._positions.pop(partition)
        fetcher = ModernPartitionFetcher(
            lambda: self._metadata, self._read_settings, max_wait_ms=round(max_wait_s * 1000)
        )
        requested = due[: self._max_partitions]
        results = fetcher.multifetch([self._fetch_position(partition) for partition in requested])
        errors = {}
        for partition, result in zip(requested, results, strict=True):
            if isinstance(result, KafkaIOError):
                errors[partition] = result
            else:
                self._store(partition, result)
        return errors

    @property
    def _max_partitions(self) -> int:
        """How many partitions fit into one answer: brokers before 0.10.1 limit only the size per partition."""
        sizes = self._read_settings.sizes
        return max(1, sizes.max_fetch_bytes // max(self._fetch_bytes.values(), default=sizes.fetch_bytes))

    def _fetch_position(self, partition: TopicPartition) -> FetchPosition:
        return FetchPosition(
            topic=partition.topic,
            partition=partition.within_topic,
            offset=self._positions[partition],
            max_bytes=self._fetch_bytes.get(partition, self._read_settings.sizes.fetch_bytes),
        )

    def _store(self, partition: TopicPartition, result: FetchResult) -> None:
        if result.needed_bytes:
            where = Where(topic=partition.topic, partition=partition.partition, offset=self._positions[partition])
            sizes = self._read_settings.sizes
            self._fetch_bytes[partition] = sizes.next_larger(result.position.max_bytes, result.needed_bytes, where)
            return
        self._fetch_bytes.pop(partition, None)
        for decoded in result.batches():
            if decoded.batch.num_rows:
                batch = ConsumedBatch(
                    topic=partition.topic,
                    partition=partition.partition,
                    records=decoded.batch,
                    next_offset=decoded.next_offset,
                )
                self._waiting.append(batch)
            elif self._waiting and self._waiting[-1].topic_partition == partition:
                # Offsets without a record, as in a compacted log: they belong to the batch before them.
                self._waiting[-1] = replace(self._waiting[-1], next_offset=decoded.next_offset)
            else:
                self._positions[partition] = decoded.next_offset

    def _drop_waiting(self, partitions: Collection[TopicPartition]) -> None:
        self._waiting = deque(batch for batch in self._waiting if batch.topic_partition not in partitions)
