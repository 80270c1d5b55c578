"""The transaction coordinator (KIP-98): the state of each transactional producer, kept in one small file.

One lock covers all transactions. It is also held while a batch of a transaction is appended, so that no batch can be
written after the marker of its own transaction.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, Corrupt
from kafka_io.model import TopicPartition
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.groups.offsets import (
    GroupOffsetStore,
    StoredOffsets,
    offsets_from_rows,
    offsets_to_rows,
)
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.modern.topics import BrokerTopics

logger = logging.getLogger(__name__)

_FILE = "transactions.json"
_IDS_FILE = "producer-ids.json"
_LAST_EPOCH = 2**15 - 2  # the epoch after it is reserved: markers carry it when the last producer is fenced


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalProducer:
    """A transactional producer, and the content of its open transaction. `began_ms` is None if none is open."""

    producer_id: int
    epoch: int
    timeout_ms: int
    began_ms: int | None = None
    partitions: frozenset[TopicPartition] = frozenset()
    offsets: Mapping[str, StoredOffsets] = field(default_factory=dict)  # by group

    @property
    def ended(self) -> "TransactionalProducer":
        """The same producer without an open transaction."""
        return replace(self, began_ms=None, partitions=frozenset(), offsets={})


class ProducerIds:
    """Ids for idempotent producers, counted up in a small file. No id is given twice, not even after a restart."""

    def __init__(self, data_dir: Path) -> None:
        self._file = JsonFile(data_dir / _IDS_FILE)
        self._lock = threading.Lock()

    def take(self) -> int:
        """A new id.

        Raises:
            OSError: the disk refuses.
            Corrupt: the file has the wrong content.
        """
        with self._lock:
            producer_id = int(self._file.read({}).get("next", 0))
            self._file.write({"next": producer_id + 1})
            return producer_id


class TransactionCoordinator:
    """The transactional producers by their transactional ids. Any thread may call it.

    A pair `producer` consists of the producer id and the epoch that a client sends.
    """

    def __init__(
        self, config: ModernBrokerConfig, topics: BrokerTopics, offsets: GroupOffsetStore, *, clock: ClockMs
    ) -> None:
        self._max_timeout_ms = config.max_transaction_timeout_ms
        self._max_producers = config.max_transactional_ids
        self._file = JsonFile(config.data_dir / _FILE)
        self._topics = topics
        self._offsets = offsets
        self._clock = clock
        self._ids = ProducerIds(config.data_dir)
        self._lock = threading.RLock()
        self._producers: dict[str, TransactionalProducer] = {}

    def load(self) -> None:
        """Read the file.

        Raises:
            Corrupt: the file has the wrong content.
        """
        try:
            self._producers = {name: _from_json(row) for name, row in self._file.read({}).items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"{self._file.path} is not a list of producers: {error!r}") from error

    def begin_producer(self, transactional_id: str | None, timeout_ms: int) -> tuple[int, int]:
        """A producer id and an epoch. The earlier producer of the same transactional id is fenced.

        Without a transactional id the producer is idempotent only. An open transaction of the earlier producer is
        aborted, and a new epoch refuses its later requests. When the epochs are used up, a new producer id follows.

        Raises:
            BrokerError: the timeout is not allowed (code 50), or there are too many producers (code 42).
            OSError: the disk refuses.
        """
        with self._lock:
            if transactional_id is None:
                return self._ids.take(), 0
            if not 0 < timeout_ms <= self._max_timeout_ms:
                reason = f"a timeout of {timeout_ms} ms is not between 1 and {self._max_timeout_ms}"
                raise BrokerError(reason, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT)
            producer = self._producers.get(transactional_id)
            if producer is None and (not transactional_id or len(self._producers) >= self._max_producers):
                reason = "the transactional id is empty, or the broker has max_transactional_ids already"
                raise BrokerError(reason, code=ErrorCode.INVALID_REQUEST)
            if producer is not None:
                producer = self._fence(transactional_id, producer)
            if producer is None or producer.epoch > _LAST_EPOCH:
                producer = TransactionalProducer(producer_id=self._ids.take(), epoch=0, timeout_ms=timeout_ms)
            self._save(transactional_id, replace(producer, timeout_ms=timeout_ms))
            return producer.producer_id, producer.epoch

    def add_partitions(
        self, transactional_id: str, producer: tuple[int, int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to the transaction before records are written to them. It begins if none is open.

        Raises:
            BrokerError: the transactional id belongs to another producer (code 49) or to a newer one (code 47).
        """
        with self._lock:
            current = self._current(transactional_id, producer)
            all_partitions = current.partitions | frozenset(partitions)
            self._save(transactional_id, replace(self._begun(current), partitions=all_partitions))

    def add_group(self, transactional_id: str, producer: tuple[int, int], group: str) -> None:
        """Add a group to the transaction before offsets of it are committed. Same errors as `add_partitions`."""
        with self._lock:
            current = self._current(transactional_id, producer)
            self._save(transactional_id, replace(self._begun(current), offsets={group: {}, **current.offsets}))

    def add_offsets(self, transactional_id: str, producer: tuple[int, int], group: str, offsets: StoredOffsets) -> None:
        """Add offsets that are committed together with the transaction.

        Raises:
            BrokerError: as for `add_partitions`, or the group was not added (code 48).
        """
        with self._lock:
            current = self._current(transactional_id, producer)
            if group not in current.offsets:
                raise BrokerError("the group is not part of the transaction", code=ErrorCode.INVALID_TXN_STATE)
            merged = {**current.offsets, group: {**current.offsets[group], **offsets}}
            self._save(transactional_id, replace(current, offsets=merged))

    @contextmanager
    def writing(self, producer: tuple[int, int], partition: TopicPartition) -> Iterator[None]:
        """A context in which a batch of the producer's transaction may be appended to `partition`.

        Raises:
            BrokerError: the transaction does not include the partition (code 48), or the epoch is old (code 47).
        """
        with self._lock:
            producer_id, epoch = producer
            known_producers = self._producers.values()
            current = next((known for known in known_producers if known.producer_id == producer_id), None)
            if current is not None and epoch != current.epoch:
                raise BrokerError("a newer producer has this id", code=ErrorCode.INVALID_PRODUCER_EPOCH)
            if current is None or partition not in current.partitions:
                raise BrokerError("no open transaction includes this partition", code=ErrorCode.INVALID_TXN_STATE)
            yield

    def end(self, transactional_id: str, producer: tuple[int, int], *, commit: bool) -> None:
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
        return frozenset(partition for producer in producers for partition in producer.offsets.get(group, ()))

    def expire(self) -> None:
        """Abort the transactions that are open longer than their timeout, and fence their producers."""
        now_ms = self._clock()
        with self._lock:
            for transactional_id, producer in tuple(self._producers.items()):
                if producer.began_ms is not None and now_ms - producer.began_ms > producer.timeout_ms:
                    logger.info("the transaction of %r is aborted after %d ms", transactional_id, producer.timeout_ms)
                    self._save(transactional_id, self._fence(transactional_id, producer))

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
        for partition in sorted(producer.partitions):
            topic = self._topics.get(partition.topic)
            if topic is not None:  # it may have been deleted
                topic.log(partition.partition).end_transaction(producer.producer_id, producer.epoch, commit=commit)
        if commit:
            for group, offsets in producer.offsets.items():
                self._offsets.commit(group, offsets)
        self._save(transactional_id, producer.ended)
        return producer.ended

    def _current(self, transactional_id: str, producer: tuple[int, int]) -> TransactionalProducer:
        """The producer of the transactional id, if it is the one that sends the request."""
        current = self._producers.get(transactional_id)
        producer_id, epoch = producer
        if current is None or current.producer_id != producer_id:
            reason = "another producer has this transactional id"
            raise BrokerError(reason, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if current.epoch != epoch:
            raise BrokerError("a newer producer has this transactional id", code=ErrorCode.INVALID_PRODUCER_EPOCH)
        return current

    def _begun(self, producer: TransactionalProducer) -> TransactionalProducer:
        return producer if producer.began_ms is not None else replace(producer, began_ms=self._clock())

    def _save(self, transactional_id: str, producer: TransactionalProducer) -> None:
        producers = {**self._producers, transactional_id: producer}
        self._file.write({known_id: _to_json(known) for known_id, known in producers.items()})
        self._producers = producers


def _to_json(producer: TransactionalProducer) -> dict[str, Any]:
    return {
        "producer_id": producer.producer_id,
        "epoch": producer.epoch,
        "timeout_ms": producer.timeout_ms,
        "began_ms": producer.began_ms,
        "partitions": [[partition.topic, partition.partition] for partition in sorted(producer.partitions)],
        "offsets": {group: offsets_to_rows(offsets) for group, offsets in producer.offsets.items()},
    }


def _from_json(row: Mapping[str, Any]) -> TransactionalProducer:
    return TransactionalProducer(
        producer_id=int(row["producer_id"]),
        epoch=int(row["epoch"]),
        timeout_ms=int(row["timeout_ms"]),
        began_ms=None if row["began_ms"] is None else int(row["began_ms"]),
        partitions=frozenset(TopicPartition(str(topic), int(partition)) for topic, partition in row["partitions"]),
        offsets={group: offsets_from_rows(rows) for group, rows in row["offsets"].items()},
    )
