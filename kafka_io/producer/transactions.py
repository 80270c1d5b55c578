"""The identity of a producer, the sequence numbers of its batches, and its transactions (KIP-98).

A batch keeps its sequence number however often it is sent, so brokers store it once. After a batch is given up, nobody
knows whether brokers stored it, so no later sequence number of that partition can be right. The producer then continues
with a new id or epoch, whose sequence numbers start at 0.

A transaction consists of records of many partitions and offsets of groups, committed as a whole. The producer adds a
partition to the transaction at the coordinator before it writes to the partition. At the end it asks the coordinator to
commit or to abort.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, BrokerError, KafkaIOError, Where
from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_io.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, TxnTopic
from kafka_io.messages.end_txn import EndTxnRequest
from kafka_io.messages.find_coordinator import TRANSACTION
from kafka_io.messages.init_producer_id import InitProducerIdRequest
from kafka_io.messages.shared import rows_by_partition, topics_of
from kafka_io.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopic,
)
from kafka_io.model import TopicPartition
from kafka_io.producer.settings import ProducerSettings
from kafka_io.records.build import NO_PRODUCER
from kafka_io.wire.schema import Request

_SEQUENCE_NUMBERS = 2**31
# Later versions are for brokers, or for transactions of the second kind (KIP-890).
_MAX_VERSIONS: Mapping[type[Request[Any]], int] = {
    AddPartitionsToTxnRequest: 3,
    EndTxnRequest: 4,
    TxnOffsetCommitRequest: 4,
}
# A newer producer has the transactional id, or the producer id belongs to another one.
_FENCED = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED}
)


class TransactionError(KafkaIOError):
    """The operation does not fit the transaction's state: it was not begun, it is open, or it can only be aborted.

    >>> TransactionError("no transaction was begun").retriable
    False
    """


class TransactionManager:
    """Numbers the batches of one producer, and runs its transactions one after the other.

    After a failure the coordinator may know more of a transaction than this client. Therefore the producer requests a
    new epoch before its next transaction, which makes the coordinator abort whatever is left.
    """

    def __init__(self, metadata: ClusterMetadata, settings: ProducerSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._transactional_id = settings.transactional_id
        self._coordinator = CoordinatorConnection(metadata, self._transactional_id or "", key_type=TRANSACTION)
        self._id_and_epoch: tuple[int, int] | None = None
        self._initialized = not settings.numbered  # whether id and epoch are up to date; without numbers they stay None
        self._next_sequence: dict[TopicPartition, int] = {}
        self._open = False
        self._partitions: set[TopicPartition] = set()  # the partitions and groups that the coordinator knows
        self._groups: set[str] = set()
        self._abortable_error: KafkaIOError | None = None
        self._fencing_error: BrokerError | None = None

    def initialize(self) -> None:
        """Claim the transactional id, unless this producer has it. This fences off the previous producer.

        Raises:
            TransactionError: a transaction is open, or this producer is fenced off.
            BrokerError: the user lacks the right, or the timeout is longer than the broker allows.
            NetworkError: no broker can be reached.
        """
        # A fenced producer must not ask for a new epoch: that would fence off the producer that has the id now.
        if self._fencing_error is not None:
            raise TransactionError(f"this producer is fenced off: {self._fencing_error}") from self._fencing_error
        if self._open:
            raise TransactionError("a transaction is open: commit or abort it first")
        self._initialize()

    def begin(self) -> None:
        """Begin a transaction: all that is sent from here on belongs to it. Raises what `initialize` does."""
        self.initialize()
        self._open = True

    def prepare(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int, int]]:
        """Id, epoch and first sequence number of the next batch of each partition; NO_PRODUCER without numbers.

        With a transactional id the partitions are also added to the transaction.

        Raises:
            TransactionError: no transaction was begun, or it can only be aborted.
            KafkaIOError: the brokers refused, or cannot be reached.
        """
        if self._transactional_id is not None:
            self._add_partitions(partitions)
        self._initialize()
        if self._id_and_epoch is None:
            return dict.fromkeys(partitions, NO_PRODUCER)
        return {partition: (*self._id_and_epoch, self._next_sequence.get(partition, 0)) for partition in partitions}

    def advance(self, partition: TopicPartition, records: int) -> None:
        """Count the records of a stored batch, so that the next batch gets the sequence number after them."""
        self._next_sequence[partition] = (self._next_sequence.get(partition, 0) + records) % _SEQUENCE_NUMBERS

    def fail(self, error: KafkaIOError) -> None:
        """Record that a batch or a part of the transaction failed: the transaction can only be aborted.

        The next batch or transaction gets a new id or epoch.
        """
        if isinstance(error, BrokerError) and error.code in _FENCED:
            self._fencing_error = error
        self._initialized = not self._settings.numbered
        self._next_sequence.clear()
        if self._open and self._abortable_error is None:
            self._abortable_error = error

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit a group's offsets (the next to read) with the transaction. Raises what `prepare` does."""
        self.check_open()
        if group not in self._groups:
            self._ask(AddOffsetsToTxnRequest(group_id=group, **self._identity))
            self._groups.add(group)
        request = TxnOffsetCommitRequest(group_id=group, topics=_offset_topics(offsets), **self._identity)
        # The offsets go to the coordinator of the group, everything else to that of the transaction.
        self._ask(request, CoordinatorConnection(self._metadata, group))

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            TransactionError: no transaction was begun, or a part of it failed: abort it.
            KafkaIOError: the coordinator did not confirm; the outcome is unknown.
        """
        self.check_open()
        self._end(commit=True)

    def abort(self) -> None:
        """Abort the transaction.

        Raises:
            TransactionError: no transaction was begun.
            KafkaIOError: the coordinator did not confirm. It aborts by itself when the transaction times out.
        """
        self._check_begun()
        self._end(commit=False)
        self._abortable_error = None

    def check_open(self) -> None:
        """Check that the transaction can continue.

        Raises:
            TransactionError: no transaction was begun, or it can only be aborted.
        """
        self._check_begun()
        error = self._abortable_error
        if error is not None:
            raise TransactionError(f"the transaction can only be aborted: {error}") from error

    def _check_begun(self) -> None:
        if not self._open:
            raise TransactionError("no transaction was begun")

    def _initialize(self) -> None:
        if self._initialized:
            return
        if self._transactional_id is None:
            identity = self._metadata.retry(lambda: self._metadata.from_any(self._request_identity))
        else:
            identity = self._coordinator.on(self._request_identity)
        self._id_and_epoch, self._initialized = identity, True

    def _request_identity(self, connection: ModernBrokerConnection) -> tuple[int, int] | None:
        """The producer's id and epoch; None before 0.11, where brokers do not assign them."""
        if self._transactional_id is None and InitProducerIdRequest.API.key not in connection.versions.offered:
            return None
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=self._settings.transaction_timeout_ms
        )
        answer = connection.request(request)
        ErrorCode.check(answer.error_code, NOWHERE, right="WRITE" if self._transactional_id else "IDEMPOTENT_WRITE")
        return answer.producer_id, answer.producer_epoch

    @property
    def _identity(self) -> dict[str, Any]:
        """The fields by which a request names the producer."""
        assert self._id_and_epoch is not None
        producer_id, epoch = self._id_and_epoch
        return {"transactional_id": self._transactional_id, "producer_id": producer_id, "producer_epoch": epoch}

    def _add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        self.check_open()
        new_partitions = sorted(set(partitions) - self._partitions)
        if new_partitions:
            topics = topics_of(TxnTopic, {partition: partition.partition for partition in new_partitions})
            fields = {"topics": topics, **self._identity}
            self._ask(AddPartitionsToTxnRequest(**{f"v3_and_below_{name}": value for name, value in fields.items()}))
            self._partitions.update(new_partitions)

    def _end(self, *, commit: bool) -> None:
        if self._partitions or self._groups:  # otherwise the coordinator does not know the transaction
            self._ask(EndTxnRequest(committed=commit, **self._identity))
        self._open = False
        self._partitions.clear()
        self._groups.clear()

    def _ask(self, request: Request[Any], coordinator: CoordinatorConnection | None = None) -> None:
        """Send a request to the transaction's coordinator, or to another one; an error fails the transaction."""

        def ask(connection: ModernBrokerConnection) -> None:
            answer = connection.request(request, max_version=_MAX_VERSIONS.get(type(request)))
            for code, where in _error_codes(answer):
                ErrorCode.check(code, where, right="READ" if coordinator else "WRITE")

        try:
            (coordinator or self._coordinator).on(ask)
        except KafkaIOError as error:
            self.fail(error)
            raise


def _error_codes(answer: Any) -> Iterator[tuple[int, Where]]:
    """The error codes of an answer, each with the partition that it is about, if it is about one."""
    if isinstance(answer, AddPartitionsToTxnResponse):
        for topic in answer.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                yield result.partition_error_code, Where(topic=topic.name, partition=result.partition_index)
    elif isinstance(answer, TxnOffsetCommitResponse):
        for partition, row in rows_by_partition(answer.topics).items():
            yield row.error_code, Where(topic=partition.topic, partition=partition.partition)
    else:
        yield answer.error_code, NOWHERE


def _offset_topics(offsets: Mapping[TopicPartition, int]) -> tuple[TxnOffsetCommitTopic, ...]:
    rows = {
        partition: TxnOffsetCommitPartition(
            partition_index=partition.partition, committed_offset=offset, committed_metadata=""
        )
        for partition, offset in sorted(offsets.items())
    }
    return topics_of(TxnOffsetCommitTopic, rows)
