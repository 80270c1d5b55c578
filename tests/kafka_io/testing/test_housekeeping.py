"""Housekeeping flushes the logs and deletes expired segments at the configured intervals; the test sets the clock."""

import os
import threading
from pathlib import Path

import pytest

from kafka_io.testing.housekeeping import BrokerHousekeeping
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.logs import BrokerLogs07
from tests.kafka_io.testing.v07.log.conftest import bounds
from tests.kafka_io.testing.v07.talk import TIMEOUT_S, numbered

START_MS = 1_700_000_000_000


class HousekeptLog:
    """A log with one message that is not flushed, and its housekeeping."""

    def __init__(self, data_dir: Path) -> None:
        self.now_ms = START_MS
        config = BrokerConfig07(
            broker_id=0,
            data_dir=data_dir,
            flush_messages=10_000,
            flush_interval_ms=5,
            retention_ms=5_000,
            retention_check_ms=1_000,
        )
        self.logs = BrokerLogs07(config, clock=lambda: self.now_ms, on_change=lambda _: None)
        self.housekeeping = BrokerHousekeeping(
            self.logs.config, flush=self.logs.flush, clean=self.logs.clean, clock=lambda: self.now_ms
        )
        self.log = self.logs.find_or_create("clicks", 0)
        self.log.append(numbered(1)[0], 1)


def test_a_tick_of_housekeeping_flushes_the_logs(tmp_path: Path) -> None:
    broker_log = HousekeptLog(tmp_path)
    assert bounds(broker_log.log) == (0, 0)
    broker_log.housekeeping.tick()
    assert bounds(broker_log.log) == (0, 20)
    broker_log.logs.close()


def test_retention_is_checked_once_per_interval(tmp_path: Path) -> None:
    broker_log = HousekeptLog(tmp_path)
    broker_log.housekeeping.tick()
    os.utime(broker_log.log.segments[0].path, (1000, 1000))
    broker_log.now_ms += 999
    broker_log.housekeeping.tick()
    assert bounds(broker_log.log) == (0, 20)
    broker_log.now_ms += 1
    broker_log.housekeeping.tick()
    assert bounds(broker_log.log) == (20, 20)
    broker_log.logs.close()


def test_the_thread_ends_when_housekeeping_stops(tmp_path: Path) -> None:
    broker_log = HousekeptLog(tmp_path)
    broker_log.housekeeping.start()
    broker_log.housekeeping.stop()
    assert not broker_log.housekeeping._thread.is_alive()
    broker_log.logs.close()


def test_a_failed_flush_is_repeated_and_the_thread_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers do not see bytes that the disk has refused."""
    broker_log = HousekeptLog(tmp_path)
    flushed = threading.Event()
    failures = iter([OSError(5, "Input/output error")])

    def fail_once(_: int) -> None:
        for failure in failures:
            raise failure
        flushed.set()

    monkeypatch.setattr(os, "fsync", fail_once)
    broker_log.housekeeping.start()
    assert flushed.wait(TIMEOUT_S)
    broker_log.housekeeping.stop()
    assert bounds(broker_log.log) == (0, 20)
    broker_log.logs.close()
