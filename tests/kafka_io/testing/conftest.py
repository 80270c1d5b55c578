"""Fixtures: a clock that only the test moves, and the directory of a log."""

from pathlib import Path

import pytest


class ManualClock:
    """A clock that only the test moves, by setting `now_ms`."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        """The time in ms since 1970."""
        return self.now_ms


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "clicks-0"
