"""A log in a directory of its own, and a clock that stands still."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_io.errors import Where
from kafka_io.testing.v07.log.log import LogLimits07, PartitionLog07

OpenLog = Callable[..., PartitionLog07]


def bounds(log: PartitionLog07) -> tuple[int, int]:
    """What a reader sees of a log: its first offset, and its end."""
    return log.segments[0].start, log.segments[-1].end


class ManualClock:
    """Wall time that stands still until it is set."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        """Now, in ms since the epoch."""
        return self.now_ms


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "clicks-0"


@pytest.fixture
def open_log(directory: Path, clock: ManualClock) -> Iterator[OpenLog]:
    """Opens the log in `directory`, flushing after every message unless told otherwise; closed after the test."""
    with ExitStack() as logs:

        def open_it(
            *, segment_bytes: int = 1_000_000, roll_ms: int = 10**12, flush_messages: int = 1
        ) -> PartitionLog07:
            limits = LogLimits07(segment_bytes=segment_bytes, roll_ms=roll_ms, flush_messages=flush_messages)
            log = PartitionLog07.open(directory, limits, clock=clock, where=Where(topic="clicks", partition=0))
            logs.callback(log.close)
            return log

        yield open_it
