"""Fixtures: a log in a directory of the test, and a clock that the test moves."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_io.errors import Where
from kafka_io.testing.modern.log.header import BatchHeader
from kafka_io.testing.modern.log.log import LogLimits, PartitionLog
from tests.kafka_io.testing.v07.log.conftest import ManualClock

OpenLog = Callable[..., PartitionLog]


def append(log: PartitionLog, batch: bytearray) -> int:
    """Append a batch as the broker does."""
    return log.append(batch, BatchHeader.parse(batch))


def content(log: PartitionLog) -> bytes:
    """All bytes that can be read, segment by segment."""
    data, offset = b"", log.start
    while (region := log.region(offset, 10**9, whole=True)) is not None:
        data += region.read()
        offset = region.segment.end
    return data


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "clicks-0"


@pytest.fixture
def open_log(directory: Path, clock: ManualClock) -> Iterator[OpenLog]:
    """Opens the log in `directory`. It is closed after the test."""
    with ExitStack() as logs:

        def open_it(*, segment_bytes: int = 1_000_000, roll_ms: int = 10**12) -> PartitionLog:
            limits = LogLimits(segment_bytes=segment_bytes, roll_ms=roll_ms)
            log = PartitionLog.open(directory, limits, clock=clock, where=Where(topic="clicks", partition=0))
            logs.callback(log.close)
            return log

        yield open_it
