"""Reads records with an independent client: librdkafka, which supports all brokers from 0.8 on."""

import time
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.cimpl import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError

from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES

_TIMEOUT_S = 60.0
_MAX_MESSAGES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """A record. `timestamp` is a pair: the type (0: create time, 1: append time), and the time in milliseconds."""

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
        KafkaException: the broker answered with an error.
        TimeoutError: the end of a partition was not reached in time.
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
        return sorted(_read_to_end(consumer, partitions), key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def _read_to_end(consumer: Consumer, partitions: int) -> list[ReadRecord]:
    ended: set[int | None] = set()
    records = []
    deadline = time.monotonic() + _TIMEOUT_S
    while len(ended) < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {_TIMEOUT_S:g} s only partitions {ended} of {partitions} were read to their end")
        for message in consumer.consume(_MAX_MESSAGES, timeout=0.2):
            error = message.error()
            if error is None:
                records.append(_read_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
    return records


def _read_record(message: Message) -> ReadRecord:
    timestamp_type, milliseconds = message.timestamp()
    headers: Any = message.headers()  # the type stub declares a union
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
        if timestamp_type == TIMESTAMP_NOT_AVAILABLE
        else (int(timestamp_type == TIMESTAMP_LOG_APPEND_TIME), float(milliseconds)),
    )
