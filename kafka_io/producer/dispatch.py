"""Groups messages into batches per partition, sends them, and returns one outcome for each message."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.producer.callbacks import Outcome
from kafka_io.producer.message import Delivered, Message
from kafka_io.producer.modern_produce import BATCHES_SINCE, TIMES_SINCE
from kafka_io.producer.partitioner import Partitioner
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.transport import ProducerBatch, Transport
from kafka_io.records.build import Record
from kafka_io.registry.paths import check_topic_name


@dataclass(slots=True)
class _PendingBatch:
    """Messages for one partition: their indexes in the list to send, and the total size of their keys and values."""

    indexes: list[int] = field(default_factory=list)
    size: int = 0


class Dispatcher:
    """Sends messages, in their order within each partition. Several threads may call it; they send one at a time."""

    def __init__(self, transport: Transport, partitioner: Partitioner, settings: ProducerSettings) -> None:
        self.lock = threading.RLock()
        self._transport = transport
        self._partitioner = partitioner
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

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions of a topic that messages can be sent to, see Producer."""
        check_topic_name(topic)
        with self.lock:
            return self._transport.partitions_for(topic)

    def _batches(
        self, messages: Sequence[Message], outcomes: dict[int, Outcome]
    ) -> dict[TopicPartition, list[_PendingBatch]]:
        """The batches of each partition. A message without a valid partition gets its outcome here."""
        batches: dict[TopicPartition, list[_PendingBatch]] = {}
        partitions: dict[str, Sequence[BrokerPartition] | KafkaIOError] = {}
        for index, message in enumerate(messages):
            try:
                target = TopicPartition.of(message.topic, self._choose_partition(message, partitions))
            except Exception as error:  # noqa: BLE001 - a user's partitioner may raise anything; it is the outcome
                outcomes[index] = error
                continue
            size = len(message.key or b"") + len(message.value or b"")
            pending = batches.setdefault(target, [_PendingBatch()])
            if pending[-1].indexes and pending[-1].size + size > self._settings.batch_bytes:
                pending.append(_PendingBatch())
            pending[-1].indexes.append(index)
            pending[-1].size += size
        return batches

    def _choose_partition(
        self, message: Message, known: dict[str, Sequence[BrokerPartition] | KafkaIOError]
    ) -> BrokerPartition:
        check_topic_name(message.topic)
        if message.topic not in known:  # also for a message with a partition: asking creates a topic that is missing
            try:
                known[message.topic] = self._transport.partitions_for(message.topic)
            except KafkaIOError as error:
                known[message.topic] = error
        partitions, given = known[message.topic], message.partition
        if isinstance(partitions, KafkaIOError):
            raise partitions
        if given is not None:
            return given if isinstance(given, BrokerPartition) else BrokerPartition(None, given)
        index = self._partitioner.choose(message.topic, message.key, len(partitions))
        if not 0 <= index < len(partitions):
            raise IndexError(f"the partitioner chose {index} of {len(partitions)} partitions")
        return partitions[index]

    def _next_round(self, batches: Mapping[TopicPartition, list[_PendingBatch]]) -> dict[TopicPartition, _PendingBatch]:
        """Remove and return the first batch of each partition, as many as fit into one request.

        Later batches of a partition wait for the outcome of the first, so that retries never change the order.
        """
        taken: dict[TopicPartition, _PendingBatch] = {}
        size = 0
        for target, pending in batches.items():
            size += pending[0].size
            if taken and size > self._settings.max_request_bytes:
                break
            taken[target] = pending.pop(0)
        return taken

    def _send_round(
        self, messages: Sequence[Message], batches: Mapping[TopicPartition, _PendingBatch], outcomes: dict[int, Outcome]
    ) -> None:
        answers = self._transport.send(
            [
                self._producer_batch(target, [messages[index] for index in batch.indexes])
                for target, batch in batches.items()
            ]
        )
        for target, batch, answer in zip(batches, batches.values(), answers, strict=True):
            for position, index in enumerate(batch.indexes):
                if isinstance(answer, KafkaIOError):
                    outcomes[index] = answer
                else:
                    offset = None if answer is None else answer + position
                    outcomes[index] = Delivered(topic=target.topic, partition=target.within_topic, offset=offset)

    def _producer_batch(self, target: TopicPartition, messages: Sequence[Message]) -> ProducerBatch:
        now_ms = time.time_ns() // 1_000_000
        return ProducerBatch(
            topic=target.topic,
            partition=target.within_topic,
            codec=self._settings.codec_of(target.topic),
            records=tuple(_record(position, message, now_ms) for position, message in enumerate(messages)),
            since=max(_since(message) for message in messages),
        )


def _record(position: int, message: Message, now_ms: int) -> Record:
    return Record(
        offset=position,
        timestamp=now_ms if message.timestamp_ms is None else message.timestamp_ms,
        key=message.key,
        value=message.value,
        headers=tuple((name.encode(), value) for name, value in message.headers),
    )


def _since(message: Message) -> int:
    """The first version of Produce that can carry all parts of the message."""
    if message.headers:
        return BATCHES_SINCE
    return 0 if message.timestamp_ms is None else TIMES_SINCE
