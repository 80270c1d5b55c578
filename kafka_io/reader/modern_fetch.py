"""Fetch requests to a leader, from 0.8 on: one request for all partitions that are fetched from it."""

from collections.abc import Iterable, Mapping

from kafka_io.brokers.cluster_metadata import Leader
from kafka_io.brokers.leaders import PartitionLeaders, by_topic
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE
from kafka_io.messages.fetch import BY_ID_SINCE, FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic
from kafka_io.messages.list_offsets import READ_COMMITTED, READ_UNCOMMITTED
from kafka_io.model import TopicPartition
from kafka_io.records.transactions import AbortedRange
from kafka_io.wire.types import NULL_UUID

MAX_WAIT_MS = 500
"""How long a broker may wait for new records. Those of a planned range exist, so it hardly ever waits."""
FetchPositions = Mapping[TopicPartition, tuple[int, int]]
"""The offset to fetch from, and the most bytes, for each partition."""


def fetch_request(
    leaders: PartitionLeaders,
    positions: FetchPositions,
    *,
    committed: bool,
    max_wait_ms: int,
    max_bytes: int | None = None,
    rack: str = "",
) -> FetchRequest:
    """The request for these partitions, which one broker leads; `max_bytes` bounds all of them together."""

    def fetch_partition(partition: TopicPartition) -> FetchPartition:
        offset, partition_bytes = positions[partition]
        return FetchPartition(
            partition=partition.partition,
            current_leader_epoch=leaders[partition].epoch,
            fetch_offset=offset,
            partition_max_bytes=partition_bytes,
        )

    topics = tuple(
        FetchTopic(
            topic=topic,
            topic_id=leaders[TopicPartition(topic, numbers[0])].topic_id,
            partitions=tuple(fetch_partition(TopicPartition(topic, number)) for number in numbers),
        )
        for topic, numbers in by_topic(positions).items()
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        max_bytes=sum(partition_bytes for _, partition_bytes in positions.values()) if max_bytes is None else max_bytes,
        isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
        topics=topics,
        rack_id=rack,
    )


def max_fetch_version(leaders: Iterable[Leader]) -> int | None:
    """The newest usable version: from v13 on Fetch names topics by id alone, and a topic may have no id yet."""
    lacks_id = any(leader.topic_id == NULL_UUID for leader in leaders)
    return BY_ID_SINCE - 1 if lacks_id else None


def fetch(
    connection: ModernBrokerConnection, leaders: PartitionLeaders, request: FetchRequest
) -> dict[TopicPartition, FetchPartitionResponse]:
    """The answers of one leader; a broker leaves partitions out when the client's quota is used up (KIP-219).

    Raises:
        BrokerError: the broker refuses the whole request.
    """
    response = connection.request(request, max_version=max_fetch_version(leaders.values()))
    ErrorCode.check(response.error_code, NOWHERE, right="READ")
    names = {leader.topic_id: partition.topic for partition, leader in leaders.items()}
    return {
        TopicPartition(topic.topic or names[topic.topic_id], answer.partition_index): answer
        for topic in response.responses
        for answer in topic.partitions
    }


def aborted_ranges(answer: FetchPartitionResponse) -> tuple[AbortedRange, ...]:
    """The transactions that a read-committed fetch leaves out (KIP-98); none before v4 of Fetch."""
    return tuple(
        (transaction.producer_id, transaction.first_offset) for transaction in answer.aborted_transactions or ()
    )
