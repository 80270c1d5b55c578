"""The transaction coordinator (KIP-98): the state of each transactional producer, kept in one small file.

One lock covers all transactions. It is also held while a batch of a transaction is appended, so that no batch can be
written after the marker of its own transaction.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.model import TopicPartition
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.groups.offsets import CommittedOffset, GroupOffsetStore, by_partition
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.modern.topics import BrokerTopics

logger = logging.getLogger(__name__)

_FILE = "transactions.json"
_IDS_FILE = "producer-ids.json"
_NEXT_ID_KEY = "next"
_LAST_EPOCH = 2**15 - 2  # the epoch after it is reserved: markers carry it when the last producer is fenced


class ProducerIdAndEpoch(NamedTuple):
    """The id and the epoch of a producer, which identify it in its requests."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalProducer:
    """A transactional producer, and the content of its open transaction, as they are in the file."""

    producer_id: int
    epoch: int
    timeout_ms: int
    began_ms: int | None = None  # None if no transaction is open
    partitions: frozenset[tuple[str, int]] = frozenset()  # topics and numbers
    offsets: dict[str, tuple[CommittedOffset, ...]] = field(default_factory=dict)  # by group


class TransactionCoordinator:
    """The transactional producers by their transactional ids. Any thread may call it.

    Raises:
        Corrupt: the file has the wrong content.
    """

    def __init__(
        self, config: ModernBrokerConfig, topics: BrokerTopics, offsets: GroupOffsetStore, *, clock: ClockMs
    ) -> None:
        self._config = config
        self._file = JsonFile(config.data_dir / _FILE, dict[str, TransactionalProducer])
        self._ids_file = JsonFile(config.data_dir / _IDS_FILE, dict[str, int])
        self._topics = topics
        self._offsets = offsets
        self._clock = clock
        self._lock = threading.RLock()
        self._producers = self._file.read({})

    def begin_producer(self, transactional_id: str | None, timeout_ms: int) -> ProducerIdAndEpoch:
        """A producer id and an epoch. The earlier producer of the same transactional id is fenced.

        Without a transactional id the producer is idempotent only. An open transaction of the earlier producer is
        aborted, and a new epoch refuses its later requests. When the epochs are used up, a new producer id follows.

        Raises:
            BrokerError: the timeout is not allowed (code 50), or there are too many producers (code 42).
            OSError: the disk refuses.
        """
        with self._lock:
            if transactional_id is None:
                return ProducerIdAndEpoch(self._new_id(), 0)
            producer = self._producers.get(transactional_id)
            self._check_begin(transactional_id, timeout_ms, is_new=producer is None)
            if producer is not None:
                producer = self._fence(transactional_id, producer)
            if producer is None or producer.epoch > _LAST_EPOCH:
                producer = TransactionalProducer(producer_id=self._new_id(), epoch=0, timeout_ms=timeout_ms)
            self._save(transactional_id, replace(producer, timeout_ms=timeout_ms))
            return ProducerIdAndEpoch(producer.producer_id, producer.epoch)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[tuple[str, int]]
    ) -> None:
        """Add partitions to the transaction before records are written to them. If none has begun, this begins one.

        Raises:
            BrokerError: the transactional id belongs to another producer (code 49) or to a newer one (code 47).
        """
        with self._lock:
            current = self._begun(transactional_id, producer)
            self._save(transactional_id, replace(current, partitions=current.partitions.union(partitions)))

    def add_group(self, transactional_id: str, producer: ProducerIdAndEpoch, group: str) -> None:
        """Add a group to the transaction before offsets of it are committed. Same errors as `add_partitions`."""
        with self._lock:
            current = self._begun(transactional_id, producer)
            self._save(transactional_id, replace(current, offsets={group: (), **current.offsets}))

    def add_offsets(
        self, transactional_id: str, producer: ProducerIdAndEpoch, group: str, offsets: Iterable[CommittedOffset]
    ) -> None:
        """Add offsets that are committed together with the transaction.

        Raises:
            BrokerError: as for `add_partitions`, or the group was not added (code 48).
        """
        with self._lock:
            current = self._current(transactional_id, producer)
            if group not in current.offsets:
                raise BrokerError("the group is not part of the transaction", code=ErrorCode.INVALID_TXN_STATE)
            merged = tuple(by_partition([*current.offsets[group], *offsets]).values())
            self._save(transactional_id, replace(current, offsets={**current.offsets, group: merged}))

    @contextmanager
    def writing(self, producer: ProducerIdAndEpoch, topic: str, partition: int) -> Iterator[None]:
        """A context in which a batch of the producer's transaction may be appended to the partition.

        Raises:
            BrokerError: the transaction does not include the partition (code 48), or the epoch is old (code 47).
        """
        with self._lock:
            by_id = {known.producer_id: known for known in self._producers.values()}
            current = by_id.get(producer.producer_id)
            if current is not None and producer.epoch != current.epoch:
                raise BrokerError("a newer producer has this id", code=ErrorCode.INVALID_PRODUCER_EPOCH)
            if current is None or (topic, partition) not in current.partitions:
                raise BrokerError("no open transaction includes this partition", code=ErrorCode.INVALID_TXN_STATE)
            yield

    def end(self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool) -> None:
        """Commit or abort the transaction.

        Raises:
            BrokerError: as for `add_partitions`, or no transaction is open (code 48).
        """
        with self._lock:
            current = self._current(transactional_id, producer)
            if current.began_ms is None:
                raise BrokerError("no transaction is open", code=ErrorCode.INVALID_TXN_STATE)
            self._end(transactional_id, current, commit=commit)

    def pending(self, group: str) -> frozenset[TopicPartition]:
        """The partitions whose offsets of this group change when an open transaction is committed."""
        producers = tuple(self._producers.values())
        offsets = (by_partition(producer.offsets.get(group, ())) for producer in producers)
        return frozenset[TopicPartition]().union(*offsets)

    def expire(self) -> None:
        """Abort the transactions that are open longer than their timeout, and fence their producers."""
        now_ms = self._clock()
        with self._lock:
            for transactional_id, producer in tuple(self._producers.items()):
                if producer.began_ms is not None and now_ms - producer.began_ms > producer.timeout_ms:
                    logger.info("the transaction of %r is aborted after %d ms", transactional_id, producer.timeout_ms)
                    self._save(transactional_id, self._fence(transactional_id, producer))

    def _check_begin(self, transactional_id: str, timeout_ms: int, *, is_new: bool) -> None:
        max_timeout_ms = self._config.max_transaction_timeout_ms
        if not 0 < timeout_ms <= max_timeout_ms:
            reason = f"a timeout of {timeout_ms} ms is not between 1 and {max_timeout_ms}"
            raise BrokerError(reason, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        if is_new and (not transactional_id or len(self._producers) >= self._config.max_transactional_ids):
            reason = "the transactional id is empty, or the broker has max_transactional_ids already"
            raise BrokerError(reason, code=ErrorCode.INVALID_REQUEST)

    def _new_id(self) -> int:
        """A new producer id, counted up in a small file. No id is given twice, not even after a restart."""
        producer_id = self._ids_file.read({}).get(_NEXT_ID_KEY, 0)
        self._ids_file.write({_NEXT_ID_KEY: producer_id + 1})
        return producer_id

    def _fence(self, transactional_id: str, producer: TransactionalProducer) -> TransactionalProducer:
        """The producer with the next epoch and no open transaction.

        The markers of the aborted transaction carry the new epoch. So the logs, too, refuse late batches of the old
        producer: their epoch is lower than the one that the log has seen.
        """
        bumped = replace(producer, epoch=producer.epoch + 1)
        return bumped if bumped.began_ms is None else self._end(transactional_id, bumped, commit=False)

    def _end(self, transactional_id: str, producer: TransactionalProducer, *, commit: bool) -> TransactionalProducer:
        """Write the markers, then commit the offsets, then save that the transaction has ended.

        The file changes last. After a crash before that, the transaction is still open in the file: the client ends it
        again, or it expires. A log that has the marker already gets no second one.
        """
        for topic_name, partition in sorted(producer.partitions):
            topic = self._topics.get(topic_name)
            if topic is not None:  # it may have been deleted
                topic.log(partition).end_transaction(producer.producer_id, producer.epoch, commit=commit)
        if commit:
            for group, offsets in producer.offsets.items():
                self._offsets.commit(group, offsets)
        ended = replace(producer, began_ms=None, partitions=frozenset(), offsets={})
        self._save(transactional_id, ended)
        return ended

    def _current(self, transactional_id: str, producer: ProducerIdAndEpoch) -> TransactionalProducer:
        """The producer of the transactional id, if it is the one that sends the request."""
        current = self._producers.get(transactional_id)
        if current is None or current.producer_id != producer.producer_id:
            reason = "another producer has this transactional id"
            raise BrokerError(reason, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if current.epoch != producer.epoch:
            raise BrokerError("a newer producer has this transactional id", code=ErrorCode.INVALID_PRODUCER_EPOCH)
        return current

    def _begun(self, transactional_id: str, producer: ProducerIdAndEpoch) -> TransactionalProducer:
        """The producer that sends the request, with an open transaction. Same errors as `_current`."""
        current = self._current(transactional_id, producer)
        return current if current.began_ms is not None else replace(current, began_ms=self._clock())

    def _save(self, transactional_id: str, producer: TransactionalProducer) -> None:
        producers = {**self._producers, transactional_id: producer}
        self._file.write(producers)
        self._producers = producers
