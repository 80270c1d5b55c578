"""Other clients read exactly the records that we write."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.layout import APPEND_TIME, CONTROL, TRANSACTIONAL
from tests.kafka_io.records.decoding import read_rows

RECORDS = [
    Record(offset=10, timestamp=5, key=b"k", value=b"v", headers=((b"a", b"1"), (b"a", None))),
    Record(offset=11, timestamp=3, key=None, value=b""),
    Record(offset=13, timestamp=9, key=b"", value=None),
]
Reader = Callable[[bytes], Iterable[Any]]


def by_kafka_python(data: bytes) -> Iterable[Any]:
    records = KafkaPythonRecords(data)
    while records.has_next():
        yield from records.next_batch()


def by_aiokafka(data: bytes) -> Iterable[Any]:
    records = AiokafkaRecords(data)
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        yield from batch


def rows(decoded: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [(record.offset, record.timestamp, record.key, record.value, list(record.headers)) for record in decoded]


@pytest.mark.parametrize("read", [by_kafka_python, by_aiokafka])
@pytest.mark.parametrize("codec", range(5))
def test_other_clients_read_our_batches(read: Reader, codec: int) -> None:
    assert rows(read(record_batch(RECORDS, codec=codec))) == [
        (record.offset, record.timestamp, record.key, record.value, [(key.decode(), v) for key, v in record.headers])
        for record in RECORDS
    ]


@pytest.mark.parametrize("read", [by_kafka_python, by_aiokafka])
@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)])
def test_other_clients_read_our_messages(read: Reader, magic: int, codec: int) -> None:
    decoded = rows(read(log_messages(RECORDS, magic=magic, codec=codec)))
    assert decoded == [
        (record.offset, record.timestamp if magic else None, record.key, record.value, []) for record in RECORDS
    ]


def test_all_records_have_the_append_time() -> None:
    for data in (record_batch(RECORDS, append_time=77), log_messages(RECORDS, magic=1, codec=1, append_time=77)):
        assert [(record.timestamp, record.timestamp_type) for record in by_kafka_python(data)] == [(77, 1)] * 3
    plain = log_messages(RECORDS, magic=1, append_time=77)
    assert [row[1:3] for row in read_rows(plain)] == [(77, 1)] * 3


def test_a_batch_holds_its_producer_and_its_offsets() -> None:
    data = record_batch(
        RECORDS, attributes=TRANSACTIONAL | CONTROL, append_time=1, span=(8, 20), producer=(1 << 40, 3, 9)
    )
    (batch,) = [KafkaPythonRecords(data).next_batch()]
    assert (batch.base_offset, batch.last_offset_delta) == (8, 12)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1 << 40, 3, 9)
    assert batch.attributes == TRANSACTIONAL | CONTROL | APPEND_TIME


@pytest.mark.parametrize("magic", [-1, 2])
def test_another_format_is_refused(magic: int) -> None:
    with pytest.raises(ValueError, match="magic"):
        log_messages(RECORDS, magic=magic)
