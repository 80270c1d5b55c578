"""Fills topics with records that look like events or orders. They are the same in every run.

The producer fills a batch for up to 50 ms, with up to 128 KiB before compression.
"""

import random
from collections.abc import Iterator

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.bench.cases import Case
from tests.bench.orders import FIELDS, framed, order, schema_of

_FIRST_MS = 1_700_000_000_000
_EVENT = (
    b'{"id":%d,"user":"u%08d","at":%d,"type":"%b","url":"/catalog/items/%06d","price":%d.%02d,'
    b'"session":"%016x","country":"%b","device":"mobile","ok":true}'
)
EVENT_COLUMNS = {
    "id": "long",
    "user": "string",
    "at": "long",
    "type": "string",
    "url": "string",
    "price": "double",
    "session": "string",
    "country": "string",
    "device": "string",
    "ok": "boolean",
}
"""The keys of an event with their types, as Spark and the settings write them."""
SCHEMA_ID = 1
"""The id of the schema of orders: the first one of a new registry."""
_TYPES = (b"view_item", b"view_item", b"add_to_cart", b"purchase")
_COUNTRIES = (b"DE", b"FR", b"US", b"BR", b"IN", b"JP", b"PL")
_MIXER = 0x9E3779B97F4A7C15  # odd: multiplication by it scatters neighbouring numbers over 64 bits
_FIRST_ID = 1_000_000_000  # large enough that all ids have the same length
_POLL_EVERY = 5_000


class NotDelivered(RuntimeError):
    """The broker does not have exactly the records that were sent."""


def produce(case: Case, bootstrap: str, topic: str) -> int:
    """Send the records of the case to its partitions in turn; return the total size of all values in bytes.

    Raises:
        NotDelivered: a partition does not have the expected number of records.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": case.codec,
            "linger.ms": 50,
            "batch.size": 128 * 1024,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 3,  # errors only
        }
    )
    total = 0
    for number, value in enumerate(values(case)):
        total += len(value)
        _send(producer, topic, number, value, number % case.partitions)
    producer.flush()
    _check(case, bootstrap, topic)
    return total


def _send(producer: Producer, topic: str, number: int, value: bytes, partition: int) -> None:
    key = b"u%08d" % (_scattered(number) % 50_000)
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"%08x" % (number & 0xFFFFFFFF))]
    timestamp_ms = _FIRST_MS + number
    while True:
        try:
            producer.produce(topic, value, key, partition, timestamp=timestamp_ms, headers=headers)
        except BufferError:
            producer.poll(0.1)
        else:
            break
    if number % _POLL_EVERY == 0:
        producer.poll(0)


def values(case: Case) -> Iterator[bytes]:
    """The values of a topic, in order."""
    if case.format == "avro":
        yield from _orders(case.records)
        return
    if case.value_bytes < len(event(0)) // 2:
        for number in range(case.records):
            yield b'{"id":%d}' % (1000 * _FIRST_ID + number)
        return
    events = round(case.value_bytes / len(event(0)))
    for number in range(case.records):
        if events == 1:
            yield event(number)
        else:
            yield b"[" + b",".join(event(number * events + index) for index in range(events)) + b"]"


def _orders(count: int) -> Iterator[bytes]:
    schema, rng = fastavro.parse_schema(schema_of(FIELDS)), random.Random(7)
    return (framed(SCHEMA_ID, schema, {**order(rng), "id": _FIRST_ID + number}) for number in range(count))


def event(number: int) -> bytes:
    """The JSON of one event, about 200 bytes."""
    mixed = _scattered(number)
    return _EVENT % (
        _FIRST_ID + number,
        mixed % 50_000,
        _FIRST_MS + number,
        _TYPES[mixed >> 8 & 3],
        mixed >> 16 & 0xFFFFF,
        mixed >> 36 & 0xFF,
        (mixed >> 44 & 0xFF) % 100,
        mixed,
        _COUNTRIES[(mixed >> 52) % len(_COUNTRIES)],
    )


def _scattered(number: int) -> int:
    return number * _MIXER & 0xFFFF_FFFF_FFFF_FFFF


def _check(case: Case, bootstrap: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    try:
        watermarks = [
            consumer.get_watermark_offsets(TopicPartition(topic, partition)) for partition in range(case.partitions)
        ]
    finally:
        consumer.close()
    expected = [(0, case.records // case.partitions)] * case.partitions
    if watermarks != expected:
        raise NotDelivered(f"{topic}: the watermarks of its partitions are {watermarks}, not {expected}")
