"""Fixture: a log in a directory of the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import Where
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.log.log import PartitionLog
from tests.kafka_io.testing.conftest import ManualClock

OpenLog = Callable[..., PartitionLog]


def content(log: PartitionLog) -> bytes:
    """All bytes of a log that a reader sees, read segment by segment."""
    data, offset = b"", log.start
    while (region := log.region(offset, 10**9, whole=True)) is not None:
        data += region.read()
        offset = region.segment.end
    return data


@pytest.fixture
def open_log(directory: Path, clock: ManualClock) -> Iterator[OpenLog]:
    """Opens the log in `directory` with the given settings. It is closed after the test."""
    with ExitStack() as logs:

        def open_with(**settings: Any) -> PartitionLog:
            config = ModernBrokerConfig(broker_id=0, data_dir=directory.parent, **{"roll_ms": 10**12, **settings})
            log = PartitionLog.open(directory, config, clock=clock, where=Where(topic="clicks", partition=0))
            logs.callback(log.close)
            return log

        yield open_with
