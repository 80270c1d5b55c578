"""The first record at a time, by the times in headers and then by the records themselves."""

import pytest

from kafka_io.broker.modern.log.log import Log
from kafka_io.broker.modern.log.times import Found, first_at, newest
from kafka_io.records.build import Record, record_batch
from tests.kafka_io.broker.modern.log.conftest import OpenLog, append

TIMES = [[100, 105, 103], [90, 91], [200, 150, 200]]


@pytest.fixture(params=[0, 1])
def log(open_log: OpenLog, request: pytest.FixtureRequest) -> Log:
    """Batches with times that do not grow, plain and compressed, in segments of their own."""
    opened = open_log(segment_bytes=10)
    for times in TIMES:
        records = [Record(offset=index, timestamp=time, value=b"x") for index, time in enumerate(times)]
        append(opened, bytearray(record_batch(records, codec=request.param)))
    return opened


@pytest.mark.parametrize(
    ("time_ms", "found"),
    [
        (0, Found(0, 100)),
        (101, Found(1, 105)),
        (105, Found(1, 105)),
        (106, Found(5, 200)),
        (200, Found(5, 200)),
        (201, None),
    ],
)
def test_the_first_record_as_late_as_a_time(log: Log, time_ms: int, found: Found | None) -> None:
    assert first_at(log, time_ms) == found


def test_the_newest_is_the_first_of_its_time(log: Log) -> None:
    assert newest(log) == Found(5, 200)


def test_what_was_given_up_is_not_found(log: Log) -> None:
    log.delete_before(1)
    assert first_at(log, 0) == Found(1, 105)
    log.delete_before(log.end)
    assert (first_at(log, 0), newest(log)) == (None, None)


def test_an_empty_log_has_no_times(open_log: OpenLog) -> None:
    assert (first_at(open_log(), 0), newest(open_log())) == (None, None)
