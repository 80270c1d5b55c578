"""Recovery cuts off the damage that a crash leaves at the end of a log, and nothing before it."""

# faults R01, R02, R04, R12
import os
from pathlib import Path

import pytest

from kafka_io.testing.v07.log.log import PartitionLog07
from tests.kafka_io.testing.v07.log.conftest import OpenLog, bounds
from tests.kafka_io.testing.v07.talk import message, numbered

WHOLE = b"".join(numbered(2)) + message(b"old", magic=0)
LAST = message(b"the last one")


def damaged(open_log: OpenLog, directory: Path, tail: bytes, *, start: int = 0) -> PartitionLog07:
    directory.mkdir()
    (directory / f"{start:020d}.kafka").write_bytes(WHOLE + tail)
    return open_log()


@pytest.mark.parametrize("cut", range(1, len(LAST)))
def test_an_incomplete_message_is_cut_off_at_any_length(open_log: OpenLog, directory: Path, cut: int) -> None:
    log = damaged(open_log, directory, LAST[:cut])
    assert bounds(log) == (0, len(WHOLE))
    assert log.segments[0].path.read_bytes() == WHOLE


@pytest.mark.parametrize(
    "damage",
    [
        bytes(4096),
        b"\xff" * 4096,
        bytes.fromhex("0000000501"),  # shorter than its own header
        bytes.fromhex("7fffffff0100"),
        bytes.fromhex("0000000600") + LAST[5:],
        LAST[:-1] + b"!",
        b"\x00\x00\x00\x12\x02" + LAST[5:],  # magic 2
        LAST[:-1] + b"!" + LAST,  # a valid message after an invalid one, whose length cannot be trusted
    ],
)
def test_a_block_of_random_content_is_cut_off(open_log: OpenLog, directory: Path, damage: bytes) -> None:
    log = damaged(open_log, directory, damage, start=700)
    assert bounds(log) == (700, 700 + len(WHOLE))
    assert log.segments[0].path.read_bytes() == WHOLE


def test_a_log_without_damage_is_not_changed(open_log: OpenLog, directory: Path) -> None:
    log = damaged(open_log, directory, LAST)
    assert bounds(log) == (0, len(WHOLE) + len(LAST))
    assert log.segments[0].path.read_bytes() == WHOLE + LAST


def test_recovery_checks_only_the_last_segment(open_log: OpenLog, directory: Path) -> None:
    """The other segments were flushed before the next one began. Cutting them would remove offsets in the middle."""
    directory.mkdir()
    (directory / f"{0:020d}.kafka").write_bytes(b"x" * 50)
    (directory / f"{50:020d}.kafka").write_bytes(WHOLE + LAST[:5])
    log = open_log()
    assert bounds(log) == (0, 50 + len(WHOLE))
    assert [segment.path.read_bytes() for segment in log.segments] == [b"x" * 50, WHOLE]


def test_an_append_after_recovery_begins_at_the_cut(open_log: OpenLog, directory: Path) -> None:
    log = damaged(open_log, directory, LAST[:-3])
    log.append(LAST, 1)
    assert log.segments[0].path.read_bytes() == WHOLE + LAST


def test_bytes_of_a_killed_broker_are_flushed_after_the_next_start(
    open_log: OpenLog, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process leaves its bytes in the memory of the system. They are not on disk before the next fsync."""
    log = damaged(open_log, directory, LAST)
    synced_descriptors: list[int] = []
    monkeypatch.setattr(os, "fsync", synced_descriptors.append)
    log.flush()
    assert synced_descriptors == [log.segments[-1].descriptor]
