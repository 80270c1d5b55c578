"""Sends messages in batches: groups them by partition, and returns one outcome for each message."""

import threading
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.producer.callbacks import Outcome
from kafka_io.producer.message import Delivered, Message
from kafka_io.producer.partitioner import Partitioner
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.transactions import TransactionManager
from kafka_io.zookeeper.paths import check_topic_name

BatchOutcome = int | KafkaIOError | None
"""The offset of a batch's first record, None if the broker does not report it, or why the batch was not confirmed."""


class Transport(Closing):
    """Sends batches to the brokers of one generation. Only one thread at a time uses it."""

    default_partitioner: ClassVar[type[Partitioner]]
    transactions: TransactionManager | None = None

    @abstractmethod
    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions, sorted by broker, then partition; at least one.

        Raises:
            KafkaIOError: the partitions are not known.
        """

    @abstractmethod
    def send(self, batches: Mapping[TopicPartition, Sequence[Message]]) -> Mapping[TopicPartition, BatchOutcome]:
        """Send one batch to each of these partitions. An error is the outcome of only the batches it concerns."""

    def stored_at(self, target: TopicPartition) -> BrokerPartition:
        """The partition as `Delivered` names it."""
        return target.within_topic

    def wait_until_registered(self, topic: str, partitions: Iterable[BrokerPartition], *, timeout_s: float) -> None:
        """Wait until the brokers of these partitions have registered the topic, see Producer: only 0.7 needs it."""


@dataclass(slots=True)
class _Batch:
    """Messages for one partition: their indexes in the list to send, and the total size of their keys and values."""

    indexes: list[int] = field(default_factory=list)
    size: int = 0


class Dispatcher:
    """Sends messages, in their order within each partition. Several threads may call it; they send one at a time."""

    def __init__(self, transport: Transport, settings: ProducerSettings) -> None:
        self.lock = threading.RLock()
        self.transport = transport
        self._partitioner = settings.partitioner or transport.default_partitioner()
        self._settings = settings

    def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Send the messages; returns one outcome for each. An error is the outcome of only the messages it concerns."""
        with self.lock:
            outcomes: dict[int, Outcome] = {}
            batches = self._batches(messages, outcomes)
            while batches:
                self._send_round(messages, self._next_round(batches), outcomes)
                batches = {target: pending for target, pending in batches.items() if pending}
            return [outcomes[index] for index in range(len(messages))]

    def _batches(self, messages: Sequence[Message], outcomes: dict[int, Outcome]) -> dict[TopicPartition, list[_Batch]]:
        """The batches of each partition. A message without a valid partition gets its outcome here."""
        batches: dict[TopicPartition, list[_Batch]] = {}
        # Topics are also listed for messages that name their partition: this makes brokers create a missing topic.
        partitions = {topic: self._list(topic) for topic in dict.fromkeys(message.topic for message in messages)}
        for index, message in enumerate(messages):
            try:
                target = TopicPartition.of(message.topic, self._choose_partition(message, partitions[message.topic]))
            except Exception as error:  # noqa: BLE001 - a user's partitioner may raise anything; it is the outcome
                outcomes[index] = error
                continue
            size = len(message.key or b"") + len(message.value or b"")
            pending = batches.setdefault(target, [])
            if not pending or pending[-1].size + size > self._settings.batch_bytes:
                pending.append(_Batch())
            pending[-1].indexes.append(index)
            pending[-1].size += size
        return batches

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions of a topic that messages can be sent to, see Producer."""
        check_topic_name(topic)
        with self.lock:
            return self.transport.partitions_for(topic)

    def _list(self, topic: str) -> Sequence[BrokerPartition] | Exception:
        try:
            return self.partitions_for(topic)
        except Exception as error:  # noqa: BLE001 - also of a topic that is no text; it is the outcome of its messages
            return error

    def _choose_partition(self, message: Message, partitions: Sequence[BrokerPartition] | Exception) -> BrokerPartition:
        if isinstance(partitions, Exception):
            raise partitions
        chosen = message.partition
        if chosen is not None:
            return chosen if isinstance(chosen, BrokerPartition) else BrokerPartition(None, chosen)
        index = self._partitioner.choose(message.topic, message.key, len(partitions))
        if not 0 <= index < len(partitions):
            raise IndexError(f"the partitioner chose {index} of {len(partitions)} partitions")
        return partitions[index]

    def _next_round(self, batches: Mapping[TopicPartition, list[_Batch]]) -> dict[TopicPartition, _Batch]:
        """Remove and return the first batch of each partition, as many as fit into one request.

        Later batches of a partition wait for the outcome of the first, so that retries never change the order.
        """
        next_batches: dict[TopicPartition, _Batch] = {}
        size = 0
        for target, pending in batches.items():
            size += pending[0].size
            if next_batches and size > self._settings.max_request_bytes:
                break
            next_batches[target] = pending.pop(0)
        return next_batches

    def _send_round(
        self, messages: Sequence[Message], batches: Mapping[TopicPartition, _Batch], outcomes: dict[int, Outcome]
    ) -> None:
        answers = self.transport.send(
            {target: [messages[index] for index in batch.indexes] for target, batch in batches.items()}
        )
        for target, batch in batches.items():
            first = answers[target]
            for position, index in enumerate(batch.indexes):
                if isinstance(first, KafkaIOError):
                    outcomes[index] = first
                else:
                    offset = None if first is None else first + position
                    partition = self.transport.stored_at(target)
                    outcomes[index] = Delivered(topic=target.topic, partition=partition, offset=offset)
