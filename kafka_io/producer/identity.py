"""The identity of an idempotent producer, and the sequence numbers of its batches (KIP-98).

A batch keeps its sequence number however often it is sent, so brokers store it once. After a batch is given up, nobody
knows whether brokers stored it, so no later sequence number of that partition can be right. The producer then continues
with a new id or epoch, whose sequence numbers start at 0.
"""

from collections.abc import Callable, Iterable, Mapping

from kafka_io.model import TopicPartition
from kafka_io.records.build import NO_PRODUCER

RequestIdentity = Callable[[], tuple[int, int] | None]
"""Asks the brokers for a producer's id and epoch; None if batches are not numbered."""
_SEQUENCE_NUMBERS = 2**31


class ProducerIdentity:
    """Gives each batch its producer id, epoch and sequence number; NO_PRODUCER if `request` returns None."""

    def __init__(self, request: RequestIdentity) -> None:
        self._request = request
        self._id_and_epoch: tuple[int, int] | None = None
        self._next_sequence: dict[TopicPartition, int] = {}
        self._known = False

    def begin(self) -> tuple[int, int] | None:
        """The id and epoch, which are requested if they are not known.

        Raises:
            KafkaIOError: the brokers did not assign them.
        """
        if not self._known:
            self._id_and_epoch, self._known = self._request(), True
        return self._id_and_epoch

    def numbers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int, int]]:
        """Id, epoch and first sequence number of each partition's next batch. Raises what `begin` does."""
        identity = self.begin()
        if identity is None:
            return dict.fromkeys(partitions, NO_PRODUCER)
        return {partition: (*identity, self._next_sequence.get(partition, 0)) for partition in partitions}

    def count(self, stored: Mapping[TopicPartition, int]) -> None:
        """Advance the sequence numbers by the number of records stored in each partition."""
        for partition, records in stored.items():
            self._next_sequence[partition] = (self._next_sequence.get(partition, 0) + records) % _SEQUENCE_NUMBERS

    def forget(self) -> None:
        """Request a new id or epoch before the next batch."""
        self._known = False
        self._next_sequence.clear()
