"""Fixture: a log in a directory of the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import Where
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.log.log import PartitionLog07
from tests.kafka_io.testing.conftest import ManualClock

OpenLog = Callable[..., PartitionLog07]


def bounds(log: PartitionLog07) -> tuple[int, int]:
    """The start and the end of a log, as a reader sees them."""
    return log.start, log.end


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
