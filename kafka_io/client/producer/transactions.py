"""Transactions of a producer (KIP-98): records of many partitions, and offsets of groups, that hold together or not.

The producer tells the coordinator which partitions it is about to write to, and at last how the transaction ends.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.coordinating import Coordinating
from kafka_io.client.modern.leading import Place, by_topic
from kafka_io.client.modern.link import ModernLink
from kafka_io.error_codes import MODERN, check
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

T = TypeVar("T")

# Later versions are for brokers, or for transactions of the second kind (KIP-890).
_MOST_ADD_PARTITIONS, _MOST_END, _MOST_OFFSETS = 3, 4, 4
_FENCED = frozenset({47, 49, 90})  # a newer producer has the name, or its id is another's


class TransactionError(KafkaIOError):
    """The transaction is not in a state for this: none was begun, or it can only be aborted.

    >>> TransactionError("no transaction was begun").retriable
    False
    """


class Transactions:
    """The transactions of one transactional id, one after the other.

    Once something `failed`, the coordinator may know of more than we do: to ask for a new epoch before the next
    transaction makes it abort whatever that is.
    """

    def __init__(self, brokers: Brokers, name: str, *, timeout_ms: int) -> None:
        self._name = name
        self._timeout_ms = timeout_ms
        self._brokers = brokers
        self._coordinating = Coordinating(brokers, name, key_type=TRANSACTION)
        self._producer = (-1, -1)
        self._open = False
        self._added: set[Place] = set()
        self._groups: set[str] = set()
        self.failed = False
        self._broken: KafkaIOError | None = None
        self._fenced: BrokerError | None = None

    def producer(self) -> tuple[int, int]:
        """Id and epoch; whoever had the name before is shut out, and its open transaction aborted.

        Raises:
            BrokerError: we may not, or the timeout is longer than the broker allows.
            NetworkError: no broker can be reached.
        """

        def ask(link: ModernLink) -> tuple[int, int]:
            request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=self._timeout_ms)
            answer = link.request(request)
            check(answer.error_code, Where(), MODERN)
            return answer.producer_id, answer.producer_epoch

        self._producer = self._coordinating.on(ask)
        self.failed = False
        return self._producer

    def begin(self) -> None:
        """What is sent from here on is part of a transaction. Raises what `check_ended` does."""
        self.check_ended()
        self._open = True

    def add(self, places: Iterable[Place]) -> None:
        """The transaction is about to write to these. Raises what `check_open` does, or what the coordinator has."""
        self.check_open()
        fresh = sorted(set(places) - self._added)
        if not fresh:
            return
        topics = tuple(TxnTopic(name=topic, partitions=tuple(of)) for topic, of in by_topic(fresh).items())

        def ask(link: ModernLink) -> None:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._name,
                v3_and_below_producer_id=self._producer[0],
                v3_and_below_producer_epoch=self._producer[1],
                v3_and_below_topics=topics,
            )
            answer = link.request(request, most=_MOST_ADD_PARTITIONS)
            for topic in answer.results_by_topic_v3_and_below:
                for one in topic.results_by_partition:
                    check(one.partition_error_code, Where(topic=topic.name, partition=one.partition_index), MODERN)

        self._ask(ask)
        self._added.update(fresh)

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Offsets to read next, kept for `group` when the transaction is committed. Raises what `add` does."""
        self.check_open()
        producer_id, epoch = self._producer

        def add(link: ModernLink) -> None:
            request = AddOffsetsToTxnRequest(
                transactional_id=self._name, producer_id=producer_id, producer_epoch=epoch, group_id=group
            )
            check(link.request(request).error_code, Where(), MODERN)

        if group not in self._groups:
            self._ask(add)
            self._groups.add(group)
        commit = TxnOffsetCommitRequest(
            transactional_id=self._name,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=_committed(offsets),
        )

        def keep(link: ModernLink) -> None:
            for topic in link.request(commit, most=_MOST_OFFSETS).topics:
                for one in topic.partitions:
                    check(one.error_code, Where(topic=topic.name, partition=one.partition_index), MODERN)

        self._noted(lambda: Coordinating(self._brokers, group).on(keep))

    def fail(self, error: KafkaIOError) -> None:
        """Something of the transaction is not there: it can only be aborted."""
        if isinstance(error, BrokerError) and error.code in _FENCED:
            self._fenced = error
        self.failed = True
        if self._open and self._broken is None:
            self._broken = error

    def commit(self) -> None:
        """All of it holds from here on.

        Raises:
            TransactionError: none was begun, or part of it failed: then abort.
            KafkaIOError: the coordinator did not confirm it; whether it holds is not known.
        """
        self.check_open()
        self._end(commit=True)

    def abort(self) -> None:
        """None of it holds.

        Raises:
            TransactionError: none was begun.
            KafkaIOError: the coordinator did not confirm it; it does so by itself when its time is up.
        """
        if not self._open:
            raise TransactionError("no transaction was begun")
        self._end(commit=False)
        self._broken = None

    def _end(self, *, commit: bool) -> None:
        def ask(link: ModernLink) -> None:
            producer_id, epoch = self._producer
            request = EndTxnRequest(
                transactional_id=self._name, producer_id=producer_id, producer_epoch=epoch, committed=commit
            )
            check(link.request(request, most=_MOST_END).error_code, Where(), MODERN)

        if self._added or self._groups:  # else no broker knows of it
            self._ask(ask)
        self._open = False
        self._added.clear()
        self._groups.clear()

    def check_ended(self) -> None:
        """Nothing, if another transaction may be begun.

        Raises:
            TransactionError: one is open, or this producer is shut out.
        """
        # To ask for a new epoch would shut out in turn whoever has the name now.
        if self._fenced is not None:
            raise TransactionError(f"this producer is shut out: {self._fenced}") from self._fenced
        if self._open:
            raise TransactionError("a transaction is open: commit or abort it first")

    def check_open(self) -> None:
        """Nothing, if the transaction can go on.

        Raises:
            TransactionError: none was begun, or it can only be aborted.
        """
        if not self._open:
            raise TransactionError("no transaction was begun")
        if self._broken is not None:
            raise TransactionError(f"the transaction can only be aborted: {self._broken}") from self._broken

    def _ask(self, act: Callable[[ModernLink], None]) -> None:
        self._noted(lambda: self._coordinating.on(act))

    def _noted(self, act: Callable[[], T]) -> T:
        """What `act` returns; its error breaks the transaction."""
        try:
            return act()
        except KafkaIOError as error:
            self.fail(error)
            raise


def _committed(offsets: Mapping[Place, int]) -> tuple[TxnOffsetCommitTopic, ...]:
    return tuple(
        TxnOffsetCommitTopic(
            name=topic,
            partitions=tuple(
                TxnOffsetCommitPartition(
                    partition_index=number, committed_offset=offsets[topic, number], committed_metadata=""
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(sorted(offsets)).items()
    )
