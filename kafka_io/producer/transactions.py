"""Transactions of a producer (KIP-98): records of many partitions and offsets of groups, committed as a whole.

Before the producer writes to a partition it adds the partition to the transaction at the coordinator. At the end it
tells the coordinator whether to commit or to abort.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.brokers.leaders import by_topic
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, KafkaIOError, Where
from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_io.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka_io.messages.end_txn import EndTxnRequest
from kafka_io.messages.find_coordinator import TRANSACTION
from kafka_io.messages.init_producer_id import InitProducerIdRequest
from kafka_io.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from kafka_io.model import TopicPartition

T = TypeVar("T")

# Later versions are for brokers, or for transactions of the second kind (KIP-890).
_MAX_ADD_PARTITIONS_VERSION, _MAX_END_VERSION, _MAX_OFFSETS_VERSION = 3, 4, 4
# A newer producer has the transactional id, or the producer id belongs to another one.
_FENCED = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED}
)


class TransactionError(KafkaIOError):
    """The operation does not fit the transaction's state: none was begun, one is open, or it can only be aborted.

    >>> TransactionError("no transaction was begun").retriable
    False
    """


class ProducerTransactions:
    """The transactions of one transactional id, one after the other.

    After a failure (`failed`) the coordinator may know more of the transaction than this client. A request for a new
    epoch, before the next transaction begins, makes the coordinator abort whatever is left.
    """

    def __init__(self, metadata: ClusterMetadata, transactional_id: str, *, timeout_ms: int) -> None:
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._metadata = metadata
        self._coordinator = CoordinatorConnection(metadata, transactional_id, key_type=TRANSACTION)
        self._producer = (-1, -1)
        self._open = False
        self._partitions: set[TopicPartition] = set()  # those that the coordinator knows
        self._groups: set[str] = set()
        self.failed = False
        self._abortable_error: KafkaIOError | None = None
        self._fencing_error: BrokerError | None = None

    def producer(self) -> tuple[int, int]:
        """Request the producer's id and epoch. This fences off the previous producer, and aborts its transaction.

        Raises:
            BrokerError: the user lacks the right, or the timeout is longer than the broker allows.
            NetworkError: no broker can be reached.
        """

        def initialize(connection: ModernBrokerConnection) -> tuple[int, int]:
            request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=self._timeout_ms)
            answer = connection.request(request)
            ErrorCode.check(answer.error_code, Where())
            return answer.producer_id, answer.producer_epoch

        self._producer = self._coordinator.on(initialize)
        self.failed = False
        return self._producer

    def begin(self) -> None:
        """Begin a transaction: all that is sent from here on belongs to it. Raises what `check_ended` does."""
        self.check_ended()
        self._open = True

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions before the first write to them. Raises what `check_open` does, and broker errors."""
        self.check_open()
        new_partitions = sorted(set(partitions) - self._partitions)
        if not new_partitions:
            return
        topics = tuple(
            TxnTopic(name=topic, partitions=tuple(numbers)) for topic, numbers in by_topic(new_partitions).items()
        )

        def add_partitions(connection: ModernBrokerConnection) -> None:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self._producer[0],
                v3_and_below_producer_epoch=self._producer[1],
                v3_and_below_topics=topics,
            )
            answer = connection.request(request, max_version=_MAX_ADD_PARTITIONS_VERSION)
            for topic in answer.results_by_topic_v3_and_below:
                for result in topic.results_by_partition:
                    where = Where(topic=topic.name, partition=result.partition_index)
                    ErrorCode.check(result.partition_error_code, where)

        self._on_coordinator(add_partitions)
        self._partitions.update(new_partitions)

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit a group's offsets (the next to read) with the transaction. Raises what `add` does."""
        self.check_open()
        producer_id, epoch = self._producer

        def add_group(connection: ModernBrokerConnection) -> None:
            request = AddOffsetsToTxnRequest(
                transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, group_id=group
            )
            ErrorCode.check(connection.request(request).error_code, Where())

        if group not in self._groups:
            self._on_coordinator(add_group)
            self._groups.add(group)
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=_offset_topics(offsets),
        )

        def commit_offsets(connection: ModernBrokerConnection) -> None:
            for topic in connection.request(request, max_version=_MAX_OFFSETS_VERSION).topics:
                for result in topic.partitions:
                    ErrorCode.check(result.error_code, Where(topic=topic.name, partition=result.partition_index))

        # The offsets go to the coordinator of the group, everything else to that of the transaction.
        self._failing(lambda: CoordinatorConnection(self._metadata, group).on(commit_offsets))

    def fail(self, error: KafkaIOError) -> None:
        """Record that a part of the transaction failed: from here on it can only be aborted."""
        if isinstance(error, BrokerError) and error.code in _FENCED:
            self._fencing_error = error
        self.failed = True
        if self._open and self._abortable_error is None:
            self._abortable_error = error

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
        if not self._open:
            raise TransactionError("no transaction was begun")
        self._end(commit=False)
        self._abortable_error = None

    def _end(self, *, commit: bool) -> None:
        def end(connection: ModernBrokerConnection) -> None:
            producer_id, epoch = self._producer
            request = EndTxnRequest(
                transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, committed=commit
            )
            ErrorCode.check(connection.request(request, max_version=_MAX_END_VERSION).error_code, Where())

        if self._partitions or self._groups:  # otherwise the coordinator does not know the transaction
            self._on_coordinator(end)
        self._open = False
        self._partitions.clear()
        self._groups.clear()

    def check_ended(self) -> None:
        """Check that a transaction may be begun.

        Raises:
            TransactionError: one is open, or this producer is fenced off.
        """
        # A fenced producer must not ask for a new epoch: that would fence off the producer that has the id now.
        if self._fencing_error is not None:
            raise TransactionError(f"this producer is fenced off: {self._fencing_error}") from self._fencing_error
        if self._open:
            raise TransactionError("a transaction is open: commit or abort it first")

    def check_open(self) -> None:
        """Check that the transaction can continue.

        Raises:
            TransactionError: none was begun, or it can only be aborted.
        """
        if not self._open:
            raise TransactionError("no transaction was begun")
        error = self._abortable_error
        if error is not None:
            raise TransactionError(f"the transaction can only be aborted: {error}") from error

    def _on_coordinator(self, act: Callable[[ModernBrokerConnection], None]) -> None:
        self._failing(lambda: self._coordinator.on(act))

    def _failing(self, act: Callable[[], T]) -> T:
        """Return what `act` returns; an error of `act` fails the transaction."""
        try:
            return act()
        except KafkaIOError as error:
            self.fail(error)
            raise


def _offset_topics(offsets: Mapping[TopicPartition, int]) -> tuple[TxnOffsetCommitTopic, ...]:
    return tuple(
        TxnOffsetCommitTopic(
            name=topic,
            partitions=tuple(
                TxnOffsetCommitPartition(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)],
                    committed_metadata="",
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(sorted(offsets)).items()
    )
