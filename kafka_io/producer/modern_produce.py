"""Produce requests from 0.8 on: record batches to the leaders of their partitions, in the newest format they accept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, by_topic
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError, LeaderMoved, Unsupported
from kafka_io.messages.produce import (
    BY_ID_SINCE,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka_io.model import TopicPartition
from kafka_io.records.build import NO_PRODUCER, Record, log_messages, record_batch
from kafka_io.records.layout import TRANSACTIONAL
from kafka_io.wire.conversation import VersionedRequest
from kafka_io.wire.types import NULL_UUID

ALL_IN_SYNC = -1
NO_OFFSET = -1
TIMES_SINCE = 2  # the version of Produce that introduced message format 1, which has timestamps
BATCHES_SINCE = 3  # the version that introduced record batches, which have headers
_ZSTD_SINCE = 7  # KIP-110
# From version 12 on, writing also adds the partition to the transaction (KIP-890). This producer adds it explicitly.
_MAX_TRANSACTIONAL_VERSION = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceBatch:
    """Records for one partition, with offsets from 0 on; `since` is the first version of Produce that can carry them.

    `producer` is the producer's id, its epoch and the batch's first sequence number.
    """

    records: Sequence[Record]
    codec: int = 0
    producer: tuple[int, int, int] = NO_PRODUCER
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """The replicas to wait for (0, 1 or ALL_IN_SYNC), for how long, and the transaction to write in."""

    acks: int = ALL_IN_SYNC
    timeout_ms: int = 30_000
    transactional_id: str | None = None


def write(
    connection: ModernBrokerConnection,
    leaders: PartitionLeaders,
    batches: Mapping[TopicPartition, ProduceBatch],
    options: ProduceOptions,
) -> PartitionAnswers[int]:
    """Write a batch to each partition of `leaders`, all of which the connected broker leads.

    Returns the offset of each batch's first record, NO_OFFSET if the broker does not report it. A batch that the broker
    has stored before is not stored again, and is no error.

    Raises:
        NetworkError: the connection was lost; each of the batches may be stored or not.
        WireError: the bytes received are no valid answer.
    """
    version = connection.versions.pick(ProduceRequest.API, max_version=_max_version(leaders, options))
    entries: dict[TopicPartition, bytes] = {}
    offsets: PartitionAnswers[int] = {}
    for partition in leaders:
        try:
            entries[partition] = _entries(batches[partition], version, options)
        except Unsupported as error:
            offsets[partition] = error
    if not entries:
        return offsets
    request = ProduceRequest(
        transactional_id=options.transactional_id,
        acks=options.acks,
        timeout_ms=options.timeout_ms,
        topic_data=tuple(_topics(leaders, entries)),
    )
    if not options.acks:
        connection.send(VersionedRequest(request, version, answered=False))
        return offsets | dict.fromkeys(entries, NO_OFFSET)
    answers = _answers(connection.request(request, max_version=version), leaders)
    return offsets | {partition: _first_offset(answers.get(partition)) for partition in entries}


def partitions_of(metadata: ClusterMetadata, topic: str) -> list[int]:
    """The numbers of the topic's partitions, sorted; brokers are asked to create a topic that does not exist.

    Raises:
        LeaderMoved: the topic does not exist, and the brokers have not created it.
        NetworkError: no broker can be reached.
    """

    def attempt() -> list[int]:
        metadata.forget(topic)
        listed = metadata.topic(topic)
        if listed is None or not listed.partitions:
            metadata.auto_create(topic)
            raise LeaderMoved(
                "the topic does not exist, and the brokers have not created it yet",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        return sorted(partition.partition_index for partition in listed.partitions)

    return metadata.retry(attempt)


def _max_version(leaders: PartitionLeaders, options: ProduceOptions) -> int | None:
    if options.transactional_id is not None:
        return _MAX_TRANSACTIONAL_VERSION
    # From v13 on a request names topics only by id, but a cluster that speaks v13 may not have assigned ids yet.
    lacks_id = any(leader.topic_id == NULL_UUID for leader in leaders.values())
    return BY_ID_SINCE - 1 if lacks_id else None


def _entries(batch: ProduceBatch, version: int, options: ProduceOptions) -> bytes:
    """The records in the format that belongs to this version of Produce."""
    if version < batch.since:
        missing = "headers before 0.11" if version >= TIMES_SINCE else "timestamps before 0.10"
        raise Unsupported(f"records cannot have {missing}")
    if batch.codec == CODEC_NUMBERS["zstd"] and version < _ZSTD_SINCE:
        raise Unsupported("brokers before 2.1 do not know zstd: choose another codec")
    if version >= BATCHES_SINCE:
        attributes = 0 if options.transactional_id is None else TRANSACTIONAL
        return record_batch(batch.records, codec=batch.codec, attributes=attributes, producer=batch.producer)
    return log_messages(batch.records, magic=int(version >= TIMES_SINCE), codec=batch.codec)


def _topics(leaders: PartitionLeaders, entries: Mapping[TopicPartition, bytes]) -> Iterator[ProduceTopic]:
    for topic, numbers in by_topic(sorted(entries)).items():
        yield ProduceTopic(
            name=topic,
            topic_id=leaders[TopicPartition(topic, numbers[0])].topic_id,
            partition_data=tuple(
                ProducePartition(index=number, records=entries[TopicPartition(topic, number)]) for number in numbers
            ),
        )


def _answers(response: ProduceResponse, leaders: PartitionLeaders) -> dict[TopicPartition, ProducePartitionResponse]:
    names = {leader.topic_id: partition.topic for partition, leader in leaders.items()}
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }


def _first_offset(answer: ProducePartitionResponse | None) -> int | KafkaIOError:
    if answer is None:
        raise Corrupt("the answer lacks a partition that was written to")
    if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return NO_OFFSET
    error = ErrorCode.error_of(answer.error_code, NOWHERE)
    return answer.base_offset if error is None else error
