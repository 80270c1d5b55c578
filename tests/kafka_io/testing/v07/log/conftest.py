"""Fixtures: a log in a directory of the test, and a clock that only the test moves."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import Where
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.log.log import PartitionLog07

OpenLog = Callable[..., PartitionLog07]


def bounds(log: PartitionLog07) -> tuple[int, int]:
    """The start and the end of a log, as a reader sees them."""
    return log.start, log.end


class ManualClock:
    """A clock that only the test moves, by setting `now_ms`."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        """The time in ms since 1970."""
        return self.now_ms


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "clicks-0"


@pytest.fixture
def open_log(directory: Path, clock: ManualClock) -> Iterator[OpenLog]:
    """Opens the log in `directory` with the given settings. By default it flushes after every message."""
    with ExitStack() as logs:

        def open_with(**settings: Any) -> PartitionLog07:
            defaults: dict[str, Any] = {"roll_ms": 10**12, "retention_ms": None}
            config = BrokerConfig07(broker_id=0, data_dir=directory.parent, **{**defaults, **settings})
            log = PartitionLog07.open(directory, config, clock=clock, where=Where(topic="clicks", partition=0))
            logs.callback(log.close)
            return log

        yield open_with
