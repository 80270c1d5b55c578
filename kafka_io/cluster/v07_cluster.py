"""A 0.7 cluster: its brokers and topics from ZooKeeper, its partitions' bounds from the brokers themselves."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from typing import TypeVar

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.cluster.cluster import Cluster, PartitionResults, TopicResults
from kafka_io.cluster.retention import Retention
from kafka_io.cluster.segment_times import end_of_segment_after, segment_times
from kafka_io.errors import (
    ConnectFailed,
    DeadlineExceeded,
    KafkaIOError,
    LogShort,
    NetworkError,
    RegistryError,
    Where,
    WireError,
    error_context,
)
from kafka_io.model import Bounds, Broker, BrokerPartition, EpochEnd, Generation, OffsetRange
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.reader.v07.partition import Partition07
from kafka_io.reader.v07.reader import Reader07
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.last_message import LastMessage
from kafka_io.zookeeper.zookeeper import ZooKeeper

T = TypeVar("T")


class Cluster07(Cluster):
    """A cluster of 0.7. A context manager; one thread uses it."""

    partitions_have_brokers = True
    zookeeper: ZooKeeper

    generation = Generation.V07

    def __init__(self, name: str, zookeeper: ZooKeeper, *, read_settings: ReadSettings) -> None:
        self.name = name
        self.zookeeper = zookeeper
        self._read_settings = read_settings
        self._brokers: Mapping[int, Broker] | None = None
        self._connections: dict[int, BrokerConnection07] = {}

    def cluster_id(self) -> str | None:
        """None: clusters of 0.7 have no id."""
        return None

    def brokers_by_id(self) -> Mapping[int, Broker]:
        """The registered brokers. They are listed only once, because the addresses of a cluster seldom change.

        Raises:
            RegistryError: ZooKeeper does not answer, or has no nodes of Kafka.
        """
        if self._brokers is None:
            with error_context(self.where):
                self._brokers = {broker.id: broker for broker in self.zookeeper.brokers().entries}
        return self._brokers

    def partition(self, topic: str, partition: BrokerPartition) -> Partition07:
        """The partition on the broker that holds it.

        Raises:
            RegistryError: the broker is not registered.
        """
        broker = self._broker(partition.holder, topic)
        if broker.id not in self._connections:
            self._connections[broker.id] = BrokerConnection07(
                broker, self._read_settings.retry_policy, fetch_rate=self._read_settings.rate
            )
        return Partition07(
            connection=self._connections[broker.id],
            topic=topic,
            id=partition,
            cluster=self.name,
            read_settings=self._read_settings,
        )

    def bounds_of(self, topics: Mapping[str, Iterable[BrokerPartition]]) -> TopicResults[Bounds]:
        """The bounds; one request for each partition."""
        return self._ask_each(topics, Partition07.bounds)

    def times_at(self, offsets: Mapping[str, Mapping[BrokerPartition, int]]) -> TopicResults[int | None]:
        """When the segment that contains each offset was last written to."""
        now_ms = time.time_ns() // 1_000_000
        return self._ask_each(
            offsets, lambda partition: time_at(partition, offsets[partition.topic][partition.id], now_ms=now_ms)
        )

    def offsets_at(self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int) -> PartitionResults[int]:
        """The start of the newest segment that was not written to since that time, or the earliest."""
        return self._ask_each({topic: partitions}, lambda partition: offset_at(partition, timestamp_ms))[topic]

    def ends_at(self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int) -> PartitionResults[int]:
        """The end of the first segment that was written to after that time, or the latest."""
        return self._ask_each({topic: partitions}, lambda partition: end_at(partition, timestamp_ms))[topic]

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """Nothing is known: brokers of 0.7 have it in their configuration files only."""
        return dict.fromkeys(topics, Retention())

    def cleanup_policies(self, topic: str) -> frozenset[str] | None:  # noqa: ARG002 - the same for all topics
        """Only "delete": brokers of 0.7 do not compact logs."""
        return frozenset({"delete"})

    def truncations(
        self,
        topic: str,  # noqa: ARG002 - 0.7 has no epochs
        read: Mapping[BrokerPartition, tuple[int, int]],  # noqa: ARG002
    ) -> dict[BrokerPartition, EpochEnd]:
        """Nothing: a log of 0.7 has one writer, which never truncates what it has flushed."""
        return {}

    def last_messages(
        self, topic: str, ranges: Mapping[BrokerPartition, OffsetRange]
    ) -> PartitionResults[LastMessage | None]:
        """The last messages; small ranges of one broker share a request."""
        results: PartitionResults[LastMessage | None] = {}
        for holder, group in groupby(sorted(ranges.values()), key=lambda range_: range_.partition.holder):
            planned = [PlannedRange(topic, range_, incarnation="") for range_ in group]
            try:
                broker = self._broker(holder, topic)
            except KafkaIOError as error:
                results |= dict.fromkeys((range_.offsets.partition for range_ in planned), error)
                continue
            with closing(Reader07(broker, self._read_settings, cluster=self.name)) as reader:
                for range_, batches in zip(planned, reader.read(planned), strict=True):
                    results[range_.offsets.partition] = _last_message(range_.offsets, batches)
        return results

    def source(self, partition: BrokerPartition) -> Source:
        """The broker that holds the partition.

        Raises:
            RegistryError: the broker is not registered.
        """
        return Source(
            cluster=self.name,
            generation=Generation.V07,
            brokers=(self._broker(partition.holder),),
            read_settings=self._read_settings,
        )

    def _ask_each(
        self, topics: Mapping[str, Iterable[BrokerPartition]], ask: Callable[[Partition07], T | KafkaIOError]
    ) -> TopicResults[T]:
        """The answer or the error for each partition. A broker that cannot be reached is tried only once."""
        self.brokers_by_id()  # an error of ZooKeeper concerns all partitions, so it is raised here
        unreachable: dict[int, NetworkError] = {}

        def answer(topic: str, partition: BrokerPartition) -> T | KafkaIOError:
            error = unreachable.get(partition.holder)
            if error is not None:
                return type(error)(error.reason, Where(topic=topic, partition=str(partition)).within(error.where))
            try:
                return ask(self.partition(topic, partition))
            except KafkaIOError as failure:
                # A broker that closes the connection may have refused only this partition [kafka-0.7: Errors].
                if isinstance(failure, ConnectFailed | DeadlineExceeded):
                    unreachable[partition.holder] = failure
                return failure

        return {
            topic: {partition: answer(topic, partition) for partition in partitions}
            for topic, partitions in topics.items()
        }

    def _broker(self, broker_id: int, topic: str | None = None) -> Broker:
        broker = self.brokers_by_id().get(broker_id)
        if broker is None:
            where = Where(cluster=self.name, broker=str(broker_id), topic=topic)
            raise RegistryError("the broker is not registered in ZooKeeper: it is down or has just stopped", where)
        return broker

    def close(self) -> None:
        """Close all connections; safe to call again."""
        for connection in self._connections.values():
            connection.close()
        self.zookeeper.close()


def _last_message(range_: OffsetRange, batches: Iterator[DecodedBatch]) -> LastMessage | KafkaIOError | None:
    try:
        rows = [decoded.batch for decoded in batches if decoded.batch.num_rows]
    except (WireError, LogShort):
        return LastMessage(offset=range_.start, digest="")
    except KafkaIOError as error:
        return error
    return LastMessage.of(rows[-1]) if rows else None


def offset_at(partition: Partition07, timestamp_ms: int) -> int:
    """The start of the newest segment that was last written to at `timestamp_ms` or before, else the earliest offset.

    Older messages may follow it, but no newer message comes before it. For a time in the future it is the latest.

    Raises:
        Corrupt: the broker answered with an offset that is not valid.
        NetworkError: no answer; a genuine broker closes the connection if it does not have the partition.
    """
    # In a request, -1 and -2 mean the latest and the earliest, so no time may be below 0.
    starts = partition.segment_offsets(max(timestamp_ms, 0), 1)
    return starts[0] if starts else partition.bounds().earliest


def end_at(partition: Partition07, timestamp_ms: int) -> int:
    """The end of the first segment that was written to after `timestamp_ms`, else the latest offset.

    Newer messages may come before it, but no older message follows it. Raises what `offset_at` does.
    """
    older = partition.segment_offsets(max(timestamp_ms, 0), 1)
    bounds = partition.bounds()  # asked for later, so that it has all segments of the first answer that still exist
    return end_of_segment_after(older, (bounds.earliest, *bounds.segment_starts, bounds.latest))


def time_at(partition: Partition07, offset: int, *, now_ms: int) -> int | KafkaIOError | None:
    """When the segment that contains the message at `offset` was last written to; see `segment_times`.

    Raises:
        Corrupt: the broker answered with an offset that is not valid.
        NetworkError: no answer; a genuine broker closes the connection if it does not have the partition.
    """

    def list_segments(times: Mapping[BrokerPartition, int], max_count: int) -> dict[BrokerPartition, tuple[int, ...]]:
        return {id_: partition.segment_offsets(time_ms, max_count) for id_, time_ms in times.items()}

    return segment_times({partition.id: offset}, list_segments, now_ms=now_ms)[partition.id]
