"""Sending from 0.8 on, with at most one batch in flight per partition, so that retries never change the order."""

import time
from collections.abc import Sequence

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.bounds import list_offsets
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import KafkaIOError, Where
from kafka_io.messages.init_producer_id import InitProducerIdRequest
from kafka_io.messages.list_offsets import LATEST_TIME
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.producer.identity import ProducerIdentity
from kafka_io.producer.modern_produce import NO_OFFSET, ProduceBatch, ProduceOptions, partitions_of, write
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.transactions import ProducerTransactions
from kafka_io.producer.transport import ProducerBatch, Transport


class ModernTransport(Transport):
    """Sends to the partitions' leaders, which `metadata` knows."""

    def __init__(self, metadata: ClusterMetadata, settings: ProducerSettings) -> None:
        self._metadata = metadata
        self._max_age_s = settings.metadata_max_age_ms / 1000
        self._transaction_timeout_ms = settings.transaction_timeout_ms
        self._listings: dict[str, tuple[Sequence[BrokerPartition], float]] = {}  # by topic, with the time of expiry
        self._unanswered: set[TopicPartition] = set()
        self._options = ProduceOptions(
            acks=settings.required_acks,
            timeout_ms=settings.request_timeout_ms,
            transactional_id=settings.transactional_id,
        )
        if settings.transactional_id is not None:
            self.transactions = ProducerTransactions(
                metadata, settings.transactional_id, timeout_ms=self._transaction_timeout_ms
            )
        request = self.transactions.producer if self.transactions else self._new_producer
        self._identity = ProducerIdentity(request if settings.numbered else lambda: None)

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions; brokers are asked to create a topic that does not exist."""
        partitions, expires_s = self._listings.get(topic, ((), 0.0))
        if not partitions or time.monotonic() >= expires_s:
            partitions = tuple(BrokerPartition(None, number) for number in partitions_of(self._metadata, topic))
            self._listings[topic] = partitions, time.monotonic() + self._max_age_s
        return partitions

    def send(self, batches: Sequence[ProducerBatch]) -> list[int | KafkaIOError | None]:
        """Send one request to each leader; retriable errors are retried as the retry policy says."""
        by_partition = {TopicPartition.of(batch.topic, batch.partition): batch for batch in batches}
        try:
            offsets = self._write(by_partition)
        except KafkaIOError as error:
            offsets = dict.fromkeys(by_partition, error)
        for partition, offset in offsets.items():
            if isinstance(offset, KafkaIOError):
                self._listings.pop(partition.topic, None)
                self._identity.forget()
                if self.transactions is not None:
                    self.transactions.fail(offset)
        return [None if offsets[partition] == NO_OFFSET else offsets[partition] for partition in by_partition]

    def _write(self, batches: dict[TopicPartition, ProducerBatch]) -> PartitionAnswers[int]:
        if self.transactions is not None:
            self.transactions.add(batches)
        # The numbers are fixed before the first attempt: a retry must carry the same ones to be recognised.
        numbers = self._identity.numbers(batches)
        numbered = {
            partition: ProduceBatch(
                records=batch.records, codec=batch.codec, producer=numbers[partition], since=batch.since
            )
            for partition, batch in batches.items()
        }
        offsets = ask_leaders(
            self._metadata,
            batches,
            lambda connection, leaders: write(connection, leaders, numbered, self._options),
        )
        self._identity.count({partition: len(batch.records) for partition, batch in batches.items()})
        if not self._options.acks:
            self._unanswered.update(batches)
        return offsets

    def begin_transactions(self) -> None:
        """Request the producer's id and epoch if they are not known. Raises if a transaction is open."""
        if self.transactions is None:
            super().begin_transactions()
        else:
            self.transactions.check_ended()
            if self.transactions.failed:
                self._identity.forget()
        self._identity.begin()

    def _new_producer(self) -> tuple[int, int] | None:
        """Id and epoch of a producer without transactions; None before 0.11, where brokers do not assign them."""

        def request_identity(connection: ModernBrokerConnection) -> tuple[int, int] | None:
            if InitProducerIdRequest.API.key not in connection.versions.offered:
                return None
            request = InitProducerIdRequest(transaction_timeout_ms=self._transaction_timeout_ms)
            answer = connection.request(request)
            ErrorCode.check(answer.error_code, Where())
            return answer.producer_id, answer.producer_epoch

        return self._metadata.retry(lambda: self._metadata.from_any(request_identity))

    def close(self) -> None:
        """End all connections; safe to call again.

        When a connection ends, old brokers drop the requests that they have not begun to process. Therefore each leader
        that received requests without an answer (acks 0) is first asked for an offset: it answers requests in order.
        """
        partitions, self._unanswered = self._unanswered, set()
        ask_leaders(self._metadata, partitions, _await_processing)
        self._metadata.close()


def _await_processing(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[None]:
    """Wait until the broker has processed all earlier requests; its answer itself is ignored."""
    list_offsets(connection, leaders, dict.fromkeys(leaders, LATEST_TIME))
    return dict.fromkeys(leaders)
