"""Retention deletes whole segments from the start of a log, by age and by size."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_io.errors import OffsetOutOfRange
from kafka_io.testing.v07.log.log import PartitionLog07
from kafka_io.v07.messages import EARLIEST_TIME, LATEST_TIME
from tests.kafka_io.testing.conftest import ManualClock
from tests.kafka_io.testing.v07.log.conftest import OpenLog
from tests.kafka_io.testing.v07.talk import numbered


def three_segments(open_log: OpenLog, clock: ManualClock, **limits: int) -> PartitionLog07:
    """Segments of 20 bytes, last written to 3000, 2000 and 1000 ms ago."""
    log = open_log(segment_bytes=10, **limits)
    for message in numbered(3):
        log.append(message, 1)
    for number, segment in enumerate(log.segments):
        at_ns = (clock.now_ms - 3000 + 1000 * number) * 1_000_000
        os.utime(segment.path, ns=(at_ns, at_ns))
    return log


def starts(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.iterdir())


@pytest.mark.parametrize(("age_ms", "remaining"), [(3000, [0, 20, 40]), (2999, [20, 40]), (1500, [40]), (999, [60])])
def test_segments_whose_last_write_is_too_old_are_deleted(
    open_log: OpenLog, clock: ManualClock, directory: Path, age_ms: int, remaining: list[int]
) -> None:
    log = three_segments(open_log, clock, retention_ms=age_ms)
    log.clean()
    assert starts(directory) == [segment.start for segment in log.segments] == remaining


@pytest.mark.parametrize(("size_bytes", "remaining"), [(60, [0, 20, 40]), (41, [0, 20, 40]), (40, [20, 40]), (0, [60])])
def test_segments_are_deleted_while_the_rest_is_large_enough(
    open_log: OpenLog, clock: ManualClock, directory: Path, size_bytes: int, remaining: list[int]
) -> None:
    log = three_segments(open_log, clock, retention_bytes=size_bytes)
    log.clean()
    assert starts(directory) == remaining


def test_a_segment_that_is_not_expired_keeps_the_segments_after_it(open_log: OpenLog, clock: ManualClock) -> None:
    """Segments are deleted from the start only, so that no offsets are missing in the middle of a log."""
    log = three_segments(open_log, clock, retention_ms=1)
    os.utime(log.segments[0].path)
    assert log.clean() == 0


def test_a_completely_expired_log_is_empty_at_its_former_end(open_log: OpenLog, clock: ManualClock) -> None:
    """Both special times give the former end. A fetch there is empty, and a fetch before it is out of range."""
    log = three_segments(open_log, clock, retention_ms=1)
    assert log.clean() == 3
    assert log.offsets_before(LATEST_TIME, 9) == log.offsets_before(EARLIEST_TIME, 9) == (60,)
    assert log.read(60, 100) is None
    with pytest.raises(OffsetOutOfRange):
        log.read(59, 100)


def test_an_expired_empty_segment_stays_and_gets_the_present_time(
    open_log: OpenLog, clock: ManualClock, directory: Path
) -> None:
    log = open_log(retention_ms=1)
    os.utime(log.segments[0].path, (1000, 1000))
    assert log.clean() == 0
    assert (starts(directory), log.segments[0].modified_ms > 1_000_000) == ([0], True)


def test_a_reader_can_read_a_segment_that_was_deleted_meanwhile(open_log: OpenLog, clock: ManualClock) -> None:
    log = three_segments(open_log, clock, retention_ms=1)
    region = log.read(0, 100)
    assert region is not None
    log.clean()
    assert os.pread(region.segment.descriptor, region.count, region.position) == numbered(1)[0]


def test_a_deleted_segment_is_closed_when_no_reader_refers_to_it(open_log: OpenLog, clock: ManualClock) -> None:
    log = three_segments(open_log, clock, retention_ms=1500)
    files = [_open_file(segment.descriptor) for segment in log.segments[:2]]
    descriptors = [segment.descriptor for segment in log.segments[:2]]
    log.clean()
    assert all(_open_file(descriptor) != file for descriptor, file in zip(descriptors, files, strict=True))


def _open_file(descriptor: int) -> tuple[int, int] | None:
    """Device and inode of an open file; None if nothing is open. Another thread may use a closed descriptor again."""
    with suppress(OSError):
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino
    return None
