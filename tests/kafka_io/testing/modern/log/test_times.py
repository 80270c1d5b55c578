"""The first record at a time is found by the timestamps in headers, then by those of the records."""

import pytest

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.modern.log.times import TimestampOffset, first_record_since, record_with_max_timestamp
from tests.kafka_io.testing.modern.log.conftest import OpenLog

TIMES = [[100, 105, 103], [90, 91], [200, 150, 200]]


@pytest.fixture(params=[0, 1])
def log(open_log: OpenLog, request: pytest.FixtureRequest) -> PartitionLog:
    """A log with a segment per batch. The timestamps are not in order. With and without compression."""
    new_log = open_log(segment_bytes=10)
    for times in TIMES:
        records = [Record(offset=index, timestamp=time, value=b"x") for index, time in enumerate(times)]
        new_log.append(bytearray(record_batch(records, codec=request.param)))
    return new_log


@pytest.mark.parametrize(
    ("time_ms", "expected"),
    [
        (0, TimestampOffset(0, 100)),
        (101, TimestampOffset(1, 105)),
        (105, TimestampOffset(1, 105)),
        (106, TimestampOffset(5, 200)),
        (200, TimestampOffset(5, 200)),
        (201, None),
    ],
)
def test_the_first_record_at_or_after_a_time_is_found(
    log: PartitionLog, time_ms: int, expected: TimestampOffset | None
) -> None:
    assert first_record_since(log, time_ms) == expected


def test_the_record_with_the_largest_timestamp_is_the_first_of_equal_ones(log: PartitionLog) -> None:
    assert record_with_max_timestamp(log) == TimestampOffset(5, 200)


def test_deleted_records_are_not_found_by_time(log: PartitionLog) -> None:
    log.delete_before(1)
    assert first_record_since(log, 0) == TimestampOffset(1, 105)
    log.delete_before(log.end)
    assert (first_record_since(log, 0), record_with_max_timestamp(log)) == (None, None)


def test_an_empty_log_has_no_times(open_log: OpenLog) -> None:
    assert (first_record_since(open_log(), 0), record_with_max_timestamp(open_log())) == (None, None)
