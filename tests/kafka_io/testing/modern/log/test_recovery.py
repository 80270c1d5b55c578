"""Recovery cuts off what a crash leaves at the end of a log, and nothing before it."""

# faults R01, R02, R04, R12
import os
from pathlib import Path

import pytest

from kafka_io.errors import Corrupt
from kafka_io.testing.modern.log.header import stamp
from kafka_io.testing.modern.log.log import PartitionLog
from tests.kafka_io.testing.modern.log.conftest import OpenLog, content
from tests.kafka_io.testing.modern.talk import batch


def placed(base: int, count: int = 3) -> bytes:
    data = batch(count)
    stamp(data, base)
    return bytes(data)


WHOLE = placed(0) + placed(3, 2)
LAST = placed(5)


def damaged(open_log: OpenLog, directory: Path, tail: bytes) -> PartitionLog:
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(WHOLE + tail)
    return open_log()


@pytest.mark.parametrize("cut", range(1, len(LAST)))
def test_an_incomplete_batch_is_cut_off_at_any_length(open_log: OpenLog, directory: Path, cut: int) -> None:
    log = damaged(open_log, directory, LAST[:cut])
    assert log.end == 5
    assert log.segments[0].path.read_bytes() == WHOLE


@pytest.mark.parametrize(
    "damage",
    [
        bytes(4096),
        b"\xff" * 4096,
        LAST[:-1] + b"!",
        LAST[:16] + b"\x03" + LAST[17:],  # magic 3
        LAST[:8] + b"\x7f" + LAST[9:],  # a length that exceeds the file
        LAST[:8] + bytes(4) + LAST[12:],  # a length of 0
        placed(4),  # an offset that the log has already
        LAST[:-1] + b"!" + placed(8),  # a valid batch after an invalid one, whose length cannot be trusted
    ],
)
def test_a_block_of_random_content_is_cut_off(open_log: OpenLog, directory: Path, damage: bytes) -> None:
    log = damaged(open_log, directory, damage)
    assert log.end == 5
    assert log.segments[0].path.read_bytes() == WHOLE


def test_an_append_after_recovery_begins_at_the_cut(open_log: OpenLog, directory: Path) -> None:
    log = damaged(open_log, directory, LAST[:-3])
    assert log.append(batch(3)) == 5
    assert content(log) == WHOLE + LAST


def test_bytes_of_a_killed_broker_are_flushed_after_the_next_start(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process leaves its bytes in the memory of the system. They are not on disk before the next fsync."""
    open_log().append(batch(3))
    log = open_log()
    synced_descriptors: list[int] = []
    monkeypatch.setattr(os, "fsync", synced_descriptors.append)
    log.flush()
    assert synced_descriptors == [log.segments[-1].descriptor]


def test_a_log_is_the_same_when_it_is_opened_again(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=500)
    for number in range(30):
        log.append(batch(1 + number % 3))
    stored = content(log)
    bounds = (log.start, log.end, [segment.max_timestamp for segment in log.segments])
    log.close()
    reopened_log = open_log()
    assert (
        reopened_log.start,
        reopened_log.end,
        [segment.max_timestamp for segment in reopened_log.segments],
    ) == bounds
    assert content(reopened_log) == stored


def test_a_missing_segment_is_an_error(open_log: OpenLog, directory: Path) -> None:
    log = open_log(segment_bytes=10)
    for _ in range(3):
        log.append(batch(3))
    log.close()
    (directory / f"{3:020d}.log").unlink()
    with pytest.raises(Corrupt, match="the next segment starts at 6"):
        open_log()


def test_damage_before_the_last_segment_is_an_error(open_log: OpenLog, directory: Path) -> None:
    log = open_log(segment_bytes=10)
    for _ in range(2):
        log.append(batch(3))
    log.close()
    first = directory / f"{0:020d}.log"
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(Corrupt, match="no whole batch at byte 0"):
        open_log()
