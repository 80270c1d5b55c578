"""From messages to parcels, those of one partition together, and back to what became of each message."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafka_io.client.modern.writing import BATCHES_SINCE, TIMES_SINCE
from kafka_io.client.producer.callbacks import Outcome
from kafka_io.client.producer.message import Delivered, Message
from kafka_io.client.producer.partitioner import Partitioner
from kafka_io.client.producer.settings import ProducerSettings
from kafka_io.client.producer.transport import Parcel, Transport
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record
from kafka_io.registry.paths import check_topic_name

Place = tuple[str, BrokerPartition]
Targets = Sequence[BrokerPartition] | KafkaIOError


@dataclass(slots=True)
class _Open:
    """Messages for one partition, by their places in what was given; `size` is that of their keys and values."""

    numbers: list[int] = field(default_factory=list)
    size: int = 0


class Dispatcher:
    """Sends messages, in their order within each partition. Threads take turns."""

    def __init__(self, transport: Transport, partitioner: Partitioner, settings: ProducerSettings) -> None:
        self.lock = threading.RLock()
        self._transport = transport
        self._partitioner = partitioner
        self._settings = settings

    def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """What became of each message; an error hides only what it concerns."""
        with self.lock:
            outcomes: dict[int, Outcome] = {}
            batches = self._batches(messages, outcomes)
            while batches:
                self._send_round(messages, self._round(batches), outcomes)
                batches = {place: waiting for place, waiting in batches.items() if waiting}
            return [outcomes[number] for number in range(len(messages))]

    def _batches(self, messages: Sequence[Message], outcomes: dict[int, Outcome]) -> dict[Place, list[_Open]]:
        batches: dict[Place, list[_Open]] = {}
        targets: dict[str, Targets] = {}
        for number, message in enumerate(messages):
            try:
                place = message.topic, self._target(message, targets)
            except Exception as error:  # noqa: BLE001 - a partitioner may be anyone's; its message comes back with this
                outcomes[number] = error
                continue
            size = len(message.key or b"") + len(message.value or b"")
            waiting = batches.setdefault(place, [_Open()])
            if waiting[-1].numbers and waiting[-1].size + size > self._settings.batch_bytes:
                waiting.append(_Open())
            waiting[-1].numbers.append(number)
            waiting[-1].size += size
        return batches

    def _target(self, message: Message, known: dict[str, Targets]) -> BrokerPartition:
        check_topic_name(message.topic)
        if message.topic not in known:  # also where the partition is given: it makes a topic that is not there
            known[message.topic] = self._targets(message.topic)
        targets, given = known[message.topic], message.partition
        if isinstance(targets, KafkaIOError):
            raise targets
        if given is not None:
            return given if isinstance(given, BrokerPartition) else BrokerPartition(None, given)
        index = self._partitioner.choose(message.topic, message.key, len(targets))
        if not 0 <= index < len(targets):
            raise IndexError(f"the partitioner chose {index} of {len(targets)} partitions")
        return targets[index]

    def _targets(self, topic: str) -> Targets:
        try:
            return self._transport.targets(topic)
        except KafkaIOError as error:
            return error

    def _round(self, batches: Mapping[Place, list[_Open]]) -> dict[Place, _Open]:
        """The first batch of each partition, as many as fit: the next one goes when what became of it is known."""
        taken: dict[Place, _Open] = {}
        size = 0
        for place, waiting in batches.items():
            size += waiting[0].size
            if taken and size > self._settings.max_request_bytes:
                break
            taken[place] = waiting.pop(0)
        return taken

    def _send_round(
        self, messages: Sequence[Message], batches: Mapping[Place, _Open], outcomes: dict[int, Outcome]
    ) -> None:
        parcels = [
            self._parcel(place, [messages[number] for number in batch.numbers]) for place, batch in batches.items()
        ]
        answers = self._transport.send(parcels)
        for (topic, partition), batch, answer in zip(batches, batches.values(), answers, strict=True):
            for index, number in enumerate(batch.numbers):
                if isinstance(answer, KafkaIOError):
                    outcomes[number] = answer
                else:
                    offset = None if answer is None else answer + index
                    outcomes[number] = Delivered(topic=topic, partition=partition, offset=offset)

    def _parcel(self, place: Place, messages: Sequence[Message]) -> Parcel:
        topic, partition = place
        now_ms = time.time_ns() // 1_000_000
        return Parcel(
            topic=topic,
            partition=partition,
            codec=self._settings.codec_of(topic),
            records=tuple(_record(number, message, now_ms) for number, message in enumerate(messages)),
            since=max(_since(message) for message in messages),
        )


def _record(number: int, message: Message, now_ms: int) -> Record:
    return Record(
        offset=number,
        timestamp=now_ms if message.timestamp_ms is None else message.timestamp_ms,
        key=message.key,
        value=message.value,
        headers=tuple((name.encode(), value) for name, value in message.headers),
    )


def _since(message: Message) -> int:
    """The first version of Produce that can carry the message whole."""
    if message.headers:
        return BATCHES_SINCE
    return 0 if message.timestamp_ms is None else TIMES_SINCE
