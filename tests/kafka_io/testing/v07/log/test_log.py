"""A 0.7 log: appends, new segments, flushes, reads, and offsets by time."""

import os
from pathlib import Path

import pytest

from kafka_io.errors import Corrupt, OffsetOutOfRange
from kafka_io.testing.segment_file import FileRegion
from kafka_io.v07.messages import EARLIEST_TIME, LATEST_TIME
from tests.kafka_io.testing.conftest import ManualClock
from tests.kafka_io.testing.v07.log.conftest import OpenLog, bounds
from tests.kafka_io.testing.v07.talk import numbered


def content(region: FileRegion | None) -> bytes:
    return b"" if region is None else region.read()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_log_is_one_empty_segment_that_starts_at_offset_0(open_log: OpenLog, directory: Path) -> None:
    log = open_log()
    assert (names(directory), bounds(log)) == (["00000000000000000000.kafka"], (0, 0))


def test_a_read_can_start_at_any_message(open_log: OpenLog) -> None:
    log, messages = open_log(), numbered(3)
    for message in messages:
        log.append(message, 1)
    assert [content(log.read(offset, 1000)) for offset in (0, 20, 40, 60)] == [
        b"".join(messages),
        b"".join(messages[1:]),
        messages[2],
        b"",
    ]


@pytest.mark.parametrize("max_size", [0, 3, 19, 20, 21])
def test_a_read_is_cut_at_its_size_in_the_middle_of_a_message(open_log: OpenLog, max_size: int) -> None:
    log, data = open_log(), b"".join(numbered(2))
    log.append(data, 2)
    assert content(log.read(0, max_size)) == data[:max_size]


def test_the_end_of_the_log_has_no_bytes_and_an_offset_after_it_is_out_of_range(open_log: OpenLog) -> None:
    log = open_log()
    log.append(b"".join(numbered(2)), 2)
    assert log.read(40, 100) is None
    for offset in (-1, 41, 2**62):
        with pytest.raises(OffsetOutOfRange) as refused:
            log.read(offset, 100)
        assert (refused.value.code, refused.value.where.offset) == (1, offset)


def test_a_new_segment_begins_when_the_last_one_has_exceeded_the_limit(open_log: OpenLog, directory: Path) -> None:
    """A segment of exactly the limit still gets the next append, which exceeds the limit [kafka-0.7: Log]."""
    log, messages = open_log(segment_bytes=40), numbered(6)
    for message in messages:
        log.append(message, 1)
    assert names(directory) == ["00000000000000000000.kafka", "00000000000000000060.kafka"]
    assert [segment.size for segment in log.segments] == [60, 60]


def test_a_read_ends_at_the_end_of_its_segment(open_log: OpenLog) -> None:
    log, messages = open_log(segment_bytes=30), numbered(4)
    for message in messages:
        log.append(message, 1)
    assert content(log.read(0, 1000)) == b"".join(messages[:2])
    assert content(log.read(20, 1000)) == messages[1]
    assert content(log.read(40, 1000)) == b"".join(messages[2:])


def test_a_new_segment_begins_when_the_first_append_is_too_long_ago(open_log: OpenLog, clock: ManualClock) -> None:
    log, messages = open_log(roll_ms=1000), numbered(3)
    clock.now_ms += 10_000  # an empty segment does not age
    log.append(messages[0], 1)
    clock.now_ms += 1000
    log.append(messages[1], 1)
    clock.now_ms += 1
    log.append(messages[2], 1)
    assert [segment.start for segment in log.segments] == [0, 40]


def test_unflushed_bytes_are_not_visible_to_readers(open_log: OpenLog) -> None:
    log, messages = open_log(flush_messages=3), numbered(3)
    log.append(messages[0], 1)
    log.append(messages[1], 1)
    assert (bounds(log), log.read(0, 1000), log.offsets_before(LATEST_TIME, 9)) == ((0, 0), None, (0,))
    with pytest.raises(
        OffsetOutOfRange
    ):  # after the flushed bytes, but before the end of the file [kafka-0.7: Flushing]
        log.read(20, 1000)
    log.append(messages[2], 1)
    assert (bounds(log), content(log.read(20, 1000))) == ((0, 60), b"".join(messages[1:]))


def test_a_flush_makes_messages_below_the_flush_count_readable(open_log: OpenLog) -> None:
    log, messages = open_log(flush_messages=100), numbered(1)
    log.append(messages[0], 1)
    log.flush()
    assert content(log.read(0, 1000)) == messages[0]


def test_a_segment_is_flushed_before_the_next_one_begins(open_log: OpenLog) -> None:
    log, messages = open_log(segment_bytes=10, flush_messages=100), numbered(2)
    log.append(messages[0], 1)
    log.append(messages[1], 1)
    assert (bounds(log), content(log.read(0, 1000))) == ((0, 20), messages[0])


def test_offsets_before_a_time_use_the_modification_times_of_the_files(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(segment_bytes=10)
    for message in numbered(3):
        log.append(message, 1)
    for number, segment in enumerate(log.segments):
        os.utime(segment.path, (1000 + number, 1000 + number))
    expected = {LATEST_TIME: (60, 40, 20, 0), EARLIEST_TIME: (0,), 999_999: (), 1_000_000: (0,), 1_001_500: (20, 0)}
    expected |= {1_002_000: (40, 20, 0), clock.now_ms - 1: (40, 20, 0), clock.now_ms: (60, 40, 20, 0), -3: ()}
    assert {time: log.offsets_before(time, 10) for time in expected} == expected
    assert log.offsets_before(LATEST_TIME, 2) == (60, 40)
    assert log.offsets_before(LATEST_TIME, 0) == ()


def test_an_empty_log_starts_and_ends_at_the_same_offset(open_log: OpenLog) -> None:
    log = open_log()
    os.utime(log.segments[0].path, (1000, 1000))
    times = (LATEST_TIME, EARLIEST_TIME, 1_000_000, 999_999)
    assert [log.offsets_before(time, 10) for time in times] == [(0,), (0,), (0,), ()]


def test_a_negative_number_of_offsets_is_refused(open_log: OpenLog) -> None:
    with pytest.raises(Corrupt):
        open_log().offsets_before(LATEST_TIME, -1)


def test_a_reopened_log_appends_after_its_last_message(open_log: OpenLog) -> None:
    messages = numbered(4)
    first = open_log(segment_bytes=30)
    for message in messages[:3]:
        first.append(message, 1)
    first.close()
    second = open_log(segment_bytes=30)
    second.append(messages[3], 1)
    assert bounds(second) == (0, 80)
    assert content(second.read(40, 1000)) == b"".join(messages[2:])


def test_a_log_with_a_missing_segment_is_refused(open_log: OpenLog, directory: Path) -> None:
    log = open_log(segment_bytes=10)
    for message in numbered(3):
        log.append(message, 1)
    log.segments[1].path.unlink()
    with pytest.raises(Corrupt, match="ends at 20, the next segment starts at 40"):
        open_log()


def test_a_full_disk_leaves_the_log_unchanged(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log, messages = open_log(), numbered(2)
    log.append(messages[0], 1)
    write = os.pwrite

    def refuse_the_rest(descriptor: int, data: memoryview, position: int) -> int:
        if position > 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:7], position)

    monkeypatch.setattr(os, "pwrite", refuse_the_rest)
    with pytest.raises(OSError, match="No space"):
        log.append(messages[1], 1)
    monkeypatch.undo()
    assert (log.segments[0].path.stat().st_size, bounds(log)) == (20, (0, 20))
    log.append(messages[1], 1)
    assert content(log.read(20, 1000)) == messages[1]
