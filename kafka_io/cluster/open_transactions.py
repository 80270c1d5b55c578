"""The open transactions that hold back the records of partitions: where and when each began, and whose it is.

A reader of committed records stops at the last stable offset, the first offset of the oldest open transaction. If its
producer was lost and no coordinator ends it, the transaction hangs, and nothing after it can ever be read (KIP-664).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders, by_topic, for_each
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.record_times import record_times
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, KafkaIOError
from kafka_io.messages.describe_producers import (
    DescribedProducersPartition,
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from kafka_io.messages.shared import rows_by_partition
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import ReadSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """The oldest open transaction of a partition.

    Args:
        first_offset: where it began in this partition: the last stable offset.
        began_ms: the timestamp of its first record, in ms since 1970; None if it is unknown.
        producer_id: the id of its producer; None if it is unknown: brokers before 2.8 do not report it.

    >>> OpenTransaction(first_offset=120, began_ms=1_700_000_000_000, producer_id=4711).first_offset
    120
    """

    first_offset: int
    began_ms: int | None = None
    producer_id: int | None = None


def find_open_transactions(
    metadata: ClusterMetadata, first_offsets: Mapping[TopicPartition, int], read_settings: ReadSettings, *, now_ms: int
) -> dict[TopicPartition, OpenTransaction]:
    """The open transaction at the last stable offset of each partition. What no broker reports is left unknown."""
    producers = ask_leaders(metadata, first_offsets, _ask_producers)
    uncommitted = replace(read_settings, committed=False)
    times = record_times(metadata, first_offsets, uncommitted, now_ms=now_ms)
    return {
        partition: OpenTransaction(
            first_offset=offset,
            began_ms=_known(times.get(partition)),
            producer_id=_known(producers.get(partition)),
        )
        for partition, offset in first_offsets.items()
    }


def _ask_producers(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[int | None]:
    """The producer of the oldest open transaction of each partition; None if the broker does not report it."""
    if DescribeProducersRequest.API.key not in connection.versions.offered:
        return dict.fromkeys(leaders)
    topics = tuple(
        DescribeProducersTopic(name=topic, partition_indexes=tuple(numbers))
        for topic, numbers in by_topic(leaders).items()
    )
    answer = connection.request(DescribeProducersRequest(topics=topics))
    described = rows_by_partition(answer.topics)
    return {**dict.fromkeys(leaders), **for_each(described, lambda partition: _producer_id(described[partition]))}


def _producer_id(described: DescribedProducersPartition) -> int | None:
    ErrorCode.check(described.error_code, NOWHERE, right="READ")
    open_ = [producer for producer in described.active_producers if producer.current_txn_start_offset >= 0]
    return min(open_, key=lambda producer: producer.current_txn_start_offset).producer_id if open_ else None


def _known(answer: int | KafkaIOError | None) -> int | None:
    return None if isinstance(answer, KafkaIOError) else answer
