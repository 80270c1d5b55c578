"""A log in a directory of its own, and a clock that stands still."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_io.broker.modern.log.header import BatchHeader
from kafka_io.broker.modern.log.log import Log, LogLimits
from kafka_io.errors import Where
from tests.kafka_io.broker.log.conftest import ManualClock

OpenLog = Callable[..., Log]


def append(log: Log, batch: bytearray) -> int:
    """Append a batch as the broker does."""
    return log.append(batch, BatchHeader.parse(batch))


def content(log: Log) -> bytes:
    """Everything that can be read, segment by segment."""
    data, at = b"", log.start
    while (region := log.region(at, 10**9, whole=True)) is not None:
        data += region.read()
        at = region.segment.next
    return data


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "clicks-0"


@pytest.fixture
def open_log(directory: Path, clock: ManualClock) -> Iterator[OpenLog]:
    """Opens the log in `directory`; closed after the test."""
    with ExitStack() as logs:

        def open_it(*, segment_bytes: int = 1_000_000, roll_ms: int = 10**12) -> Log:
            limits = LogLimits(segment_bytes=segment_bytes, roll_ms=roll_ms)
            log = Log.open(directory, limits, clock=clock, where=Where(topic="clicks", partition=0))
            logs.callback(log.close)
            return log

        yield open_it
