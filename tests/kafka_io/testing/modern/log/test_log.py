"""A log assigns offsets, finds the batch of an offset, and begins new segments at its limits."""

import threading

import pytest

from kafka_io.errors import OffsetOutOfRange
from kafka_io.testing.modern.log.header import BatchHeader, whole_batches
from tests.kafka_io.testing.conftest import ManualClock
from tests.kafka_io.testing.modern.log.conftest import OpenLog, content
from tests.kafka_io.testing.modern.talk import batch, expected_values, values

SIZE = len(batch(3))


def test_each_batch_gets_the_offsets_after_the_previous_batch(open_log: OpenLog) -> None:
    log = open_log()
    assert [log.append(batch(count)) for count in (3, 1, 5)] == [0, 3, 4]
    assert (log.start, log.end) == (0, 9)
    assert len(values(content(log))) == 9


def test_the_log_changes_only_offset_and_leader_epoch_of_a_batch(open_log: OpenLog) -> None:
    log = open_log()
    log.append(batch(2))
    sent = bytes(batch(3, codec=1))
    log.append(bytearray(sent))
    region = log.region(2, 10**6, whole=True)
    assert region is not None
    stored = region.read()
    assert (stored[8:12], stored[16:]) == (sent[8:12], sent[16:])
    assert (stored[:8], stored[12:16]) == ((2).to_bytes(8, "big"), bytes(4))


@pytest.mark.parametrize("segment_bytes", [10, 3 * SIZE, 10**9])
def test_every_offset_is_found_in_its_batch(open_log: OpenLog, segment_bytes: int) -> None:
    """The index has no entry for most of the batches."""
    log = open_log(segment_bytes=segment_bytes)
    for number in range(200):
        log.append(batch(3, first=3 * number))
    for offset in range(log.end):
        region = log.region(offset, SIZE, whole=True)
        assert region is not None
        assert BatchHeader.parse(region.read()).base_offset == offset - offset % 3


def test_the_end_of_the_log_has_no_records_and_an_offset_after_it_is_out_of_range(open_log: OpenLog) -> None:
    log = open_log()
    log.append(batch(3))
    assert log.region(3, 100, whole=True) is None
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            log.region(offset, 100, whole=True)


def test_the_first_batch_is_complete_only_if_requested(open_log: OpenLog) -> None:
    log = open_log()
    log.append(batch(3))
    counts = [region.count for whole in (True, False) if (region := log.region(1, 10, whole=whole))]
    assert counts == [SIZE, 10]


def test_a_new_segment_begins_before_a_batch_that_would_exceed_the_limit(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        log.append(batch(3))
    assert [segment.path.name for segment in log.segments] == [f"{base:020d}.log" for base in (0, 6, 12)]


def test_a_new_segment_begins_when_the_first_append_is_too_long_ago(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(roll_ms=1000)
    log.append(batch(3))
    clock.now_ms += 1000
    log.append(batch(3))
    clock.now_ms += 1
    log.append(batch(3))
    assert [segment.start for segment in log.segments] == [0, 6]


def test_records_before_an_offset_can_be_deleted(open_log: OpenLog) -> None:
    """The offset can be inside a batch. Segments without remaining records are deleted. A restart keeps the start."""
    log = open_log(segment_bytes=10)
    for number in range(4):
        log.append(batch(3, first=3 * number))
    assert log.delete_before(7) == 7
    assert log.delete_before(2) == 7
    assert [segment.start for segment in log.segments] == [6, 9]
    with pytest.raises(OffsetOutOfRange):
        log.region(6, 100, whole=True)
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(13)
    log.close()
    reopened_log = open_log()
    assert (reopened_log.start, reopened_log.end) == (7, 12)
    assert values(content(reopened_log), start=7) == expected_values(5, first=7)


def test_delete_before_the_end_deletes_all_records(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=10)
    for _ in range(2):
        log.append(batch(3))
    assert log.delete_before(6) == 6
    assert log.append(batch(1)) == 6


def test_a_reader_sees_only_whole_batches_while_others_are_written(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=20 * SIZE)
    writing = threading.Thread(target=lambda: [log.append(batch(3)) for _ in range(300)])
    writing.start()
    offset = 0
    while offset < 900:
        region = log.region(offset, 10**6, whole=True)
        if region is not None:
            data = region.read()
            headers = [header for _, header in whole_batches(data)]
            assert sum(header.size for header in headers) == len(data)
            assert headers[0].base_offset == offset
            offset = headers[-1].next_offset
            assert offset <= log.end
    writing.join()


def test_a_reader_can_read_a_deleted_log(open_log: OpenLog) -> None:
    log = open_log()
    log.append(batch(3))
    region = log.region(0, 10**6, whole=True)
    log.remove()
    assert region is not None
    assert values(region.read()) == expected_values(3)
