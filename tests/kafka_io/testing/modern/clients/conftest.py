"""The records that the tests write and read with clients of other libraries, and the brokers for these tests."""

import pytest

from kafka_io.model import Generation
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.conftest import StartModern

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_CODECS = ("none", "gzip", "snappy")
TOPIC = "clicks"
PARTITIONS = 2
# Partition, key, value.
Row = tuple[int, bytes, bytes]


def rows(codec: str, count: int = 100) -> list[Row]:
    """The records to write with a codec, by default enough for several batches."""
    return [
        (number % PARTITIONS, b"key-%d" % (number % 7), f"{codec}-{number}".encode() + b"." * (number % 50))
        for number in range(count)
    ]


def in_order(rows: list[Row]) -> list[list[Row]]:
    """The rows of each partition, in their original order."""
    return [[row for row in rows if row[0] == partition] for partition in range(PARTITIONS)]


@pytest.fixture
def broker(start_modern: StartModern) -> ModernBrokerServer:
    """A modern broker. Its segments are small, so that every client reads more than one."""
    return start_modern(partitions=PARTITIONS, segment_bytes=8000)


@pytest.fixture
def old_broker(start_modern: StartModern) -> ModernBrokerServer:
    """A broker of generation 0.8."""
    return start_modern(partitions=PARTITIONS, segment_bytes=8000, generation=Generation.V08)


def address(broker: ModernBrokerServer) -> str:
    """The bootstrap address of a broker."""
    return f"127.0.0.1:{broker.port}"
