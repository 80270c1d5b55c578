"""Records as an independent client reads them: librdkafka, which still supports every broker from 0.8 on."""

import time
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.cimpl import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError

from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES

_WITHIN_S = 60.0
_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """A record. `timestamp` is its type (0: create time, 1: append time) and milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, float] | None


def read(
    broker: RealBroker,
    topic: str,
    partitions: int = 1,
    *,
    isolation: Literal["committed", "uncommitted"] = "committed",
) -> list[ReadRecord]:
    """All records of the topic up to the end of each partition, in order of partition and offset.

    Raises:
        KafkaException: the broker refused.
        TimeoutError: a partition did not end in time.
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": topic,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": f"read_{isolation}",
        "fetch.wait.max.ms": 100,
        **RELEASES[broker.version].librdkafka,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        return sorted(_until_ended(consumer, partitions), key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def _until_ended(consumer: Consumer, partitions: int) -> list[ReadRecord]:
    ended: set[int | None] = set()
    records = []
    deadline = time.monotonic() + _WITHIN_S
    while len(ended) < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"partitions {ended} of {partitions} ended within {_WITHIN_S:g} s")
        for message in consumer.consume(_AT_ONCE, timeout=0.2):
            error = message.error()
            if error is None:
                records.append(_read_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
    return records


def _read_record(message: Message) -> ReadRecord:
    kind, milliseconds = message.timestamp()
    headers: Any = message.headers()  # its type stub is a union
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return ReadRecord(
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=tuple(headers or ()),
        timestamp=None
        if kind == TIMESTAMP_NOT_AVAILABLE
        else (int(kind == TIMESTAMP_LOG_APPEND_TIME), float(milliseconds)),
    )
