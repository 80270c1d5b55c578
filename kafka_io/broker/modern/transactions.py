"""Transactions over all logs (KIP-98): what each transactional producer has under way, kept in one small file.

One lock for all of them, held also while a transactional batch is appended: none may land behind its own marker.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.groups.offsets import Committed, Offsets, Place
from kafka_io.broker.modern.json_file import JsonFile
from kafka_io.broker.modern.producer_ids import ProducerIds
from kafka_io.broker.modern.topics import Topics
from kafka_io.errors import BrokerError, Corrupt

logger = logging.getLogger(__name__)

_FILE = "transactions.json"
_LAST_EPOCH = 2**15 - 2  # the one behind it is left for fencing


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A transactional producer, and what the transaction holds that it has under way, if any."""

    producer_id: int
    epoch: int
    timeout_ms: int
    began_ms: int | None = None
    partitions: frozenset[Place] = frozenset()
    offsets: Mapping[str, Mapping[Place, Committed]] = field(default_factory=dict)  # by group

    @property
    def ended(self) -> "Producer":
        """The same producer with nothing under way."""
        return replace(self, began_ms=None, partitions=frozenset(), offsets={})


class Transactions:
    """The transactional producers by their ids; any thread may ask."""

    def __init__(self, config: ModernBrokerConfig, topics: Topics, offsets: Offsets, *, clock: ClockMs) -> None:
        self._most_timeout_ms = config.max_transaction_timeout_ms
        self._most_producers = config.max_transactional_ids
        self._file = JsonFile(config.data_dir / _FILE)
        self._topics = topics
        self._offsets = offsets
        self._clock = clock
        self._ids = ProducerIds(config.data_dir)
        self._lock = threading.RLock()
        self._producers: dict[str, Producer] = {}

    def load(self) -> None:
        """Read the file.

        Raises:
            Corrupt: it is no such.
        """
        try:
            self._producers = {name: _parse(row) for name, row in self._file.read({}).items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"{self._file.path} is no list of producers: {error!r}") from error

    def begin_producer(self, name: str | None, timeout_ms: int) -> tuple[int, int]:
        """An id and epoch. A transactional producer takes over from the one before it, whose transaction is aborted.

        Raises:
            BrokerError: a timeout that may not be (code 50), or too many producers (42).
            OSError: the disk refuses.
        """
        with self._lock:
            if name is None:
                return self._ids.take(), 0
            if not 0 < timeout_ms <= self._most_timeout_ms:
                raise BrokerError(f"a timeout of {timeout_ms} ms", code=Code.INVALID_TRANSACTION_TIMEOUT)
            known = self._producers.get(name)
            if known is None and (not name or len(self._producers) >= self._most_producers):
                raise BrokerError("an empty name, or there are max_transactional_ids", code=Code.INVALID_REQUEST)
            if known is not None:
                known = self._fence(name, known)
            if known is None or known.epoch > _LAST_EPOCH:
                known = Producer(producer_id=self._ids.take(), epoch=0, timeout_ms=timeout_ms)
            self._save(name, replace(known, timeout_ms=timeout_ms))
            return known.producer_id, known.epoch

    def add_partitions(self, name: str, producer: tuple[int, int], places: Iterable[Place]) -> None:
        """The transaction is about to write to `places`; it begins if none is under way.

        Raises:
            BrokerError: the producer is not, or no longer, the one of this name (codes 49, 47).
        """
        with self._lock:
            known = self._current(name, producer)
            self._save(name, replace(self._begun(known), partitions=known.partitions | frozenset(places)))

    def add_group(self, name: str, producer: tuple[int, int], group: str) -> None:
        """The transaction is about to commit offsets of `group`. Same errors as `add_partitions`."""
        with self._lock:
            known = self._current(name, producer)
            self._save(name, replace(self._begun(known), offsets={group: {}, **known.offsets}))

    def add_offsets(self, name: str, producer: tuple[int, int], group: str, offsets: Mapping[Place, Committed]) -> None:
        """Offsets that hold once the transaction is committed. Same errors; 48 when the group was not added."""
        with self._lock:
            known = self._current(name, producer)
            if group not in known.offsets:
                raise BrokerError("the group is not part of the transaction", code=Code.INVALID_TXN_STATE)
            merged = {**known.offsets, group: {**known.offsets[group], **offsets}}
            self._save(name, replace(known, offsets=merged))

    @contextmanager
    def writing(self, producer: tuple[int, int], place: Place) -> Iterator[None]:
        """A block in which a batch of the producer's transaction may be appended at `place`.

        Raises:
            BrokerError: it has none under way there (code 48), or was replaced (47).
        """
        with self._lock:
            producer_id, epoch = producer
            known = next((one for one in self._producers.values() if one.producer_id == producer_id), None)
            if known is not None and epoch != known.epoch:
                raise BrokerError("a newer producer has this id", code=Code.INVALID_PRODUCER_EPOCH)
            if known is None or place not in known.partitions:
                raise BrokerError("no transaction is under way here", code=Code.INVALID_TXN_STATE)
            yield

    def end(self, name: str, producer: tuple[int, int], *, commit: bool) -> None:
        """Commit or abort. Same errors as `add_partitions`; 48 when nothing is under way."""
        with self._lock:
            known = self._current(name, producer)
            if known.began_ms is None:
                raise BrokerError("no transaction is under way", code=Code.INVALID_TXN_STATE)
            self._end(name, known, commit=commit)

    def pending(self, group: str) -> frozenset[Place]:
        """Where offsets of the group will change when a transaction is committed."""
        return frozenset(place for one in tuple(self._producers.values()) for place in one.offsets.get(group, ()))

    def expire(self) -> None:
        """Abort the transactions whose time has run out, and shut out their producers."""
        now_ms = self._clock()
        with self._lock:
            for name, known in tuple(self._producers.items()):
                if known.began_ms is not None and now_ms - known.began_ms > known.timeout_ms:
                    logger.info("the transaction of %r is aborted after %d ms", name, known.timeout_ms)
                    self._save(name, self._fence(name, known))

    def _fence(self, name: str, known: Producer) -> Producer:
        """The producer with the next epoch, whose transaction is over; markers carry the new epoch into the logs."""
        bumped = replace(known, epoch=known.epoch + 1)
        return bumped if bumped.began_ms is None else self._end(name, bumped, commit=False)

    def _end(self, name: str, known: Producer, *, commit: bool) -> Producer:
        for topic, partition in sorted(known.partitions):
            found = self._topics.get(topic)
            if found is not None:  # it may have been deleted
                found.log(partition).end_transaction(known.producer_id, known.epoch, commit=commit)
        if commit:
            for group, offsets in known.offsets.items():
                self._offsets.commit(group, offsets)
        self._save(name, known.ended)
        return known.ended

    def _current(self, name: str, producer: tuple[int, int]) -> Producer:
        known = self._producers.get(name)
        producer_id, epoch = producer
        if known is None or known.producer_id != producer_id:
            raise BrokerError("another producer has this name", code=Code.INVALID_PRODUCER_ID_MAPPING)
        if known.epoch != epoch:
            raise BrokerError("a newer producer has this name", code=Code.INVALID_PRODUCER_EPOCH)
        return known

    def _begun(self, known: Producer) -> Producer:
        return known if known.began_ms is not None else replace(known, began_ms=self._clock())

    def _save(self, name: str, producer: Producer) -> None:
        producers = {**self._producers, name: producer}
        self._file.write({each: _formatted(one) for each, one in producers.items()})
        self._producers = producers


def _formatted(producer: Producer) -> dict[str, Any]:
    return {
        "producer_id": producer.producer_id,
        "epoch": producer.epoch,
        "timeout_ms": producer.timeout_ms,
        "began_ms": producer.began_ms,
        "partitions": sorted(producer.partitions),
        "offsets": {
            group: [[*place, one.offset, one.leader_epoch, one.metadata] for place, one in offsets.items()]
            for group, offsets in producer.offsets.items()
        },
    }


def _parse(row: Mapping[str, Any]) -> Producer:
    return Producer(
        producer_id=int(row["producer_id"]),
        epoch=int(row["epoch"]),
        timeout_ms=int(row["timeout_ms"]),
        began_ms=None if row["began_ms"] is None else int(row["began_ms"]),
        partitions=frozenset((str(topic), int(number)) for topic, number in row["partitions"]),
        offsets={
            group: {
                (str(topic), int(number)): Committed(int(offset), int(epoch), str(metadata))
                for topic, number, offset, epoch, metadata in rows
            }
            for group, rows in row["offsets"].items()
        },
    )
