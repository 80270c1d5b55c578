"""Retention deletes whole segments from the start: by the timestamps of their records, or by size."""

import os

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.modern.log.log import PartitionLog
from tests.kafka_io.testing.conftest import ManualClock
from tests.kafka_io.testing.modern.log.conftest import OpenLog

HOUR_MS = 3_600_000


def hourly(open_log: OpenLog, clock: ManualClock, count: int, **limits: int) -> PartitionLog:
    """A log with one segment for each hour up to now, and one record in each."""
    log = open_log(segment_bytes=10, **limits)
    for hours in reversed(range(count)):
        record = Record(timestamp=clock.now_ms - hours * HOUR_MS, value=b"x")
        log.append(bytearray(record_batch([record])))
    return log


def test_without_limits_no_segment_is_deleted(open_log: OpenLog, clock: ManualClock) -> None:
    log = hourly(open_log, clock, 3)
    assert log.clean() == 0


def test_expired_segments_are_deleted_and_the_log_start_moves(open_log: OpenLog, clock: ManualClock) -> None:
    log = hourly(open_log, clock, 4, retention_ms=2 * HOUR_MS)
    assert log.clean() == 1
    assert (log.start, log.end) == (1, 4)
    log.close()
    reopened_log = open_log()
    assert (reopened_log.start, reopened_log.end) == (1, 4)


def test_a_completely_expired_log_keeps_its_end(open_log: OpenLog, clock: ManualClock) -> None:
    log = hourly(open_log, clock, 2, retention_ms=HOUR_MS)
    clock.now_ms += 5 * HOUR_MS
    assert log.clean() == 2
    assert (log.start, log.end) == (2, 2)
    assert log.clean() == 0
    assert log.append(bytearray(record_batch([Record()]))) == 2


def test_retention_uses_the_file_time_for_records_without_timestamps(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(segment_bytes=10, retention_ms=2 * HOUR_MS)
    for _ in range(2):
        log.append(bytearray(record_batch([Record()])))
    for segment, hours in zip(log.segments, (3, 0), strict=True):
        modified_s = (clock.now_ms - hours * HOUR_MS) / 1000
        os.utime(segment.path, (modified_s, modified_s))
    assert log.clean() == 1
    assert log.start == 1


def test_a_log_keeps_at_least_the_configured_number_of_bytes(open_log: OpenLog, clock: ManualClock) -> None:
    size = len(record_batch([Record(timestamp=clock.now_ms, value=b"x")]))
    log = hourly(open_log, clock, 5, retention_bytes=2 * size + 1)
    assert log.clean() == 2
    assert log.start == 2
