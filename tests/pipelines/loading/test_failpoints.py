"""Failpoints end a process where a test says so, and do nothing in other processes."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pipelines.loading import failpoints as steps
from pipelines.loading.failpoints import KILL_AT, ONCE, failpoint, parsed


@pytest.fixture(autouse=True)
def unpassed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_passed", Counter())
    monkeypatch.delenv(KILL_AT, raising=False)
    monkeypatch.delenv(ONCE, raising=False)


def test_in_production_a_step_is_nothing() -> None:
    for name in steps.FAILPOINTS:
        failpoint(name)
    assert not steps._passed


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("planned", ("kill", "planned", 1)),
        ("file written:3", ("kill", "file written", 3)),
        ("stop:before log entry", ("stop", "before log entry", 1)),
        ("raise:batch fetched:2", ("raise", "batch fetched", 2)),
    ],
)
def test_a_passing_is_told_in_a_word(told: str, meant: tuple[str, str, int]) -> None:
    assert parsed(told) == meant


def test_a_process_ends_at_the_passing_that_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL_AT, "kill:loaded:9,raise:planned:2")
    failpoint("planned")
    failpoint("fetched")
    with pytest.raises(MemoryError, match="planned"):
        failpoint("planned")
    failpoint("planned")


def test_of_all_processes_only_the_first_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL_AT, "raise:planned")
    monkeypatch.setenv(ONCE, str(tmp_path))
    with pytest.raises(MemoryError):
        failpoint("planned")
    monkeypatch.setattr(steps, "_passed", Counter())
    failpoint("planned")
    assert int((tmp_path / "raise:planned").read_text()) > 0


@pytest.mark.parametrize(("how", "code"), [("kill", -9), ("fault", -11), ("exit", 1)])
def test_a_process_can_end_in_several_ways(how: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL_AT, f"{how}:planned")
    program = "from pipelines.loading.failpoints import failpoint; failpoint('planned')"
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=60)
    assert ended.returncode == code
