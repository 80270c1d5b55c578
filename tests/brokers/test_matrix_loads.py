"""10,000 records in each codec of each version: the table holds exactly what librdkafka reads from the broker."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.brokers.broker_lake import BrokerLake
from tests.brokers.reading import ReadRecord, read
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES, Release
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

COUNT = 10_000
SECOND_COUNT = 500
FIRST_MS = 1_700_000_000_000
HEADERS: tuple[list[tuple[str, bytes | None]], ...] = (
    [],
    [("same", b"1"), ("same", None), ("other", b"")],
    [("snow \u2744", b"\x00\xff")],
)


def record(number: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of record `number`. Some of them are null or empty."""
    key = (b"key %d" % (number % 100), b"", None)[(number % 7 == 0) + (number % 14 == 0)]
    value = (b"value %d " % number * (number % 9), None)[number % 11 == 0]
    return key, value


def details(number: int, release: Release) -> dict[str, Any]:
    """Timestamp and headers of a record, if the version stores them. The times are not in order."""
    fields: dict[str, Any] = {"timestamp": FIRST_MS + 999 * number * (-1) ** number} if release.times else {}
    return {**fields, "headers": HEADERS[number % 3]} if release.headers else fields


def expected(partition: int, numbers: range, release: Release) -> list[ReadRecord]:
    """The rows that the table must contain for these records."""
    return [
        ReadRecord(
            partition=partition,
            offset=number,
            key=key,
            value=value,
            headers=tuple(fields.get("headers", ())),
            timestamp=(0, float(fields["timestamp"])) if release.times else None,
        )
        for number in numbers
        for (key, value), fields in [(record(number), details(number, release))]
    ]


def publish(shared: SharedBroker, topic: str, numbers: range) -> list[ReadRecord]:
    """Publish the records, each codec to its own partition. Returns the expected rows."""
    rows = []
    for partition, codec in enumerate(shared.release.codecs):
        shared.broker.produce(
            topic,
            [record(number) for number in numbers],
            partition=partition,
            codec=codec,
            details=[details(number, shared.release) for number in numbers],
        )
        rows += expected(partition, numbers, shared.release)
    return rows


# faults B16, R18, R25: the settings have only ZooKeeper for old brokers, and only a bootstrap address for KRaft
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.matrix("load", "continue")
def test_every_record_of_every_codec_is_a_row_and_the_next_load_takes_only_new_records(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    codecs = RELEASES[version].codecs
    shared_broker.broker.create_topic(topic, len(codecs))
    lake = open_lake(shared_broker.cluster_settings())
    rows = publish(shared_broker, topic, range(COUNT))
    first = lake.load(topic)
    assert (first.error, first.rows) == (None, COUNT * len(codecs))
    assert lake.rows(topic) == rows
    assert read(shared_broker.broker, topic, len(codecs)) == rows

    assert lake.load(topic).rows == 0
    rows += publish(shared_broker, topic, range(COUNT, COUNT + SECOND_COUNT))
    second = lake.load(topic)
    assert (second.error, second.rows) == (None, SECOND_COUNT * len(codecs))
    assert lake.rows(topic) == sorted(rows, key=lambda row: (row.partition, row.offset))
    assert all(partition.offsets.start == COUNT for partition in second.partitions)
