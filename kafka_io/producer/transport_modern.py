"""Sending from 0.8 on: one Produce request to each leader, in the newest format that the broker accepts.

At most one batch of a partition is in flight, so retries never change the order.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders, by_topic, for_each
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.bounds import list_offsets
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError, LeaderMoved, Unsupported
from kafka_io.messages.list_offsets import LATEST_TIME
from kafka_io.messages.produce import (
    BY_ID_SINCE,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.producer.dispatch import BatchOutcome, Transport
from kafka_io.producer.message import Message
from kafka_io.producer.partitioner import Murmur2Partitioner
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.transactions import TransactionManager
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.layout import TRANSACTIONAL
from kafka_io.wire.conversation import VersionedRequest
from kafka_io.wire.types import NULL_UUID

# Versions of Produce: message format 1 has timestamps, record batches have headers, and KIP-110 added zstd.
_TIMES_SINCE, _BATCHES_SINCE, _ZSTD_SINCE = 2, 3, 7
# From version 12 on, writing also adds the partition to the transaction (KIP-890). This producer adds it explicitly.
_MAX_TRANSACTIONAL_VERSION = 11
_NO_OFFSET = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Records for one partition, with offsets from 0 on.

    `producer` is the producer's id, its epoch and the batch's first sequence number.
    """

    records: tuple[Record, ...]
    codec: int
    producer: tuple[int, int, int]
    min_version: int  # the first version of Produce that can carry the records


class ModernTransport(Transport):
    """Sends to the partitions' leaders, which `metadata` knows."""

    default_partitioner = Murmur2Partitioner

    def __init__(self, metadata: ClusterMetadata, settings: ProducerSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._manager = TransactionManager(metadata, settings)
        self.transactions = None if settings.transactional_id is None else self._manager
        self._listings: dict[str, tuple[Sequence[BrokerPartition], float]] = {}  # by topic, with the time of expiry
        self._unanswered: set[TopicPartition] = set()

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions, sorted; brokers are asked to create a topic that does not exist.

        Raises:
            LeaderMoved: the topic does not exist, and the brokers have not created it.
            NetworkError: no broker can be reached.
        """
        partitions, expires_s = self._listings.get(topic, ((), 0.0))
        if not partitions or time.monotonic() >= expires_s:
            partitions = self._metadata.retry(lambda: self._list(topic))
            self._listings[topic] = partitions, time.monotonic() + self._settings.metadata_max_age_ms / 1000
        return partitions

    def _list(self, topic: str) -> tuple[BrokerPartition, ...]:
        self._metadata.forget(topic)
        listed = self._metadata.topic(topic)
        if listed is None or not listed.partitions:
            self._metadata.auto_create(topic)
            raise LeaderMoved(
                "the topic does not exist, and the brokers have not created it yet",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        numbers = sorted(partition.partition_index for partition in listed.partitions)
        return tuple(BrokerPartition(None, number) for number in numbers)

    def send(self, batches: Mapping[TopicPartition, Sequence[Message]]) -> Mapping[TopicPartition, BatchOutcome]:
        """Send one request to each leader; retriable errors are retried as the retry policy says."""
        try:
            outcomes = self._send(batches)
        except KafkaIOError as error:
            outcomes = dict.fromkeys(batches, error)
        for partition, outcome in outcomes.items():
            if isinstance(outcome, KafkaIOError):
                self._listings.pop(partition.topic, None)
                self._manager.fail(outcome)
        return outcomes

    def _send(self, messages: Mapping[TopicPartition, Sequence[Message]]) -> dict[TopicPartition, BatchOutcome]:
        # The numbers are fixed before the first attempt: a retry must carry the same ones to be recognised.
        numbers = self._manager.prepare(messages)
        batches = {
            partition: _batch(messages[partition], self._settings.codec_of(partition.topic), numbers[partition])
            for partition in messages
        }
        outcomes = ask_leaders(
            self._metadata, batches, lambda connection, leaders: self._produce(connection, leaders, batches)
        )
        for partition, batch in batches.items():
            self._manager.advance(partition, len(batch.records))
        if not self._settings.acks:
            self._unanswered.update(batches)
        return outcomes

    def _produce(
        self, connection: ModernBrokerConnection, leaders: PartitionLeaders, batches: Mapping[TopicPartition, _Batch]
    ) -> PartitionAnswers[int | None]:
        """Send a batch to each partition of `leaders`, all of which the connected broker leads.

        A batch that the broker has stored before is not stored again, and is no error.

        Raises:
            NetworkError: the connection was lost; each of the batches may be stored or not.
            WireError: the bytes received are no valid answer.
        """
        version = connection.versions.pick(ProduceRequest.API, max_version=self._max_version(leaders))
        encoded = for_each(leaders, lambda partition: self._entries(batches[partition], version))
        entries = {partition: data for partition, data in encoded.items() if not isinstance(data, KafkaIOError)}
        outcomes: PartitionAnswers[int | None] = {
            partition: error for partition, error in encoded.items() if isinstance(error, KafkaIOError)
        }
        if not entries:
            return outcomes
        request = ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.required_acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=tuple(_topics(leaders, entries)),
        )
        if not self._settings.acks:
            connection.send(VersionedRequest(request, version, answered=False))
            return outcomes | dict.fromkeys(entries)
        answers = _answers(connection.request(request, max_version=version), leaders)
        return outcomes | {partition: _first_offset(answers.get(partition)) for partition in entries}

    def _max_version(self, leaders: PartitionLeaders) -> int | None:
        if self._settings.transactional_id is not None:
            return _MAX_TRANSACTIONAL_VERSION
        # From v13 on a request names topics only by id, but a cluster that speaks v13 may not have assigned ids yet.
        lacks_id = any(leader.topic_id == NULL_UUID for leader in leaders.values())
        return BY_ID_SINCE - 1 if lacks_id else None

    def _entries(self, batch: _Batch, version: int) -> bytes:
        """The records in the format that belongs to this version of Produce."""
        if version < batch.min_version:
            missing = "headers before 0.11" if version >= _TIMES_SINCE else "timestamps before 0.10"
            raise Unsupported(f"records cannot have {missing}")
        if batch.codec == CODEC_NUMBERS["zstd"] and version < _ZSTD_SINCE:
            raise Unsupported("brokers before 2.1 do not know zstd: choose another codec")
        if version >= _BATCHES_SINCE:
            attributes = 0 if self._settings.transactional_id is None else TRANSACTIONAL
            return record_batch(batch.records, codec=batch.codec, attributes=attributes, producer=batch.producer)
        return log_messages(batch.records, magic=int(version >= _TIMES_SINCE), codec=batch.codec)

    def close(self) -> None:
        """End all connections; safe to call again.

        When a connection ends, old brokers drop the requests that they have not begun to process. Therefore each leader
        that received requests without an answer (acks 0) is first asked for an offset: it answers requests in order.
        """
        partitions, self._unanswered = self._unanswered, set()
        ask_leaders(self._metadata, partitions, _await_processing)
        self._metadata.close()


def _batch(messages: Sequence[Message], codec: int, producer: tuple[int, int, int]) -> _Batch:
    now_ms = time.time_ns() // 1_000_000
    records = tuple(
        Record(
            offset=position,
            timestamp=now_ms if message.timestamp_ms is None else message.timestamp_ms,
            key=message.key,
            value=message.value,
            headers=tuple((name.encode(), value) for name, value in message.headers),
        )
        for position, message in enumerate(messages)
    )
    min_version = max(_min_version(message) for message in messages)
    return _Batch(records=records, codec=codec, producer=producer, min_version=min_version)


def _min_version(message: Message) -> int:
    if message.headers:
        return _BATCHES_SINCE
    return 0 if message.timestamp_ms is None else _TIMES_SINCE


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
        TopicPartition(topic.name or names[topic.topic_id], partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }


def _first_offset(answer: ProducePartitionResponse | None) -> BatchOutcome:
    if answer is None:
        raise Corrupt("the answer lacks a partition that was written to")
    if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return None
    error = ErrorCode.error_of(answer.error_code, NOWHERE, right="WRITE")
    if error is not None:
        return error
    return None if answer.base_offset == _NO_OFFSET else answer.base_offset


def _await_processing(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[None]:
    """Wait until the broker has processed all earlier requests; its answer itself is ignored."""
    list_offsets(connection, leaders, dict.fromkeys(leaders, LATEST_TIME))
    return dict.fromkeys(leaders)
