"""A failpoint ends a process where a test asks for it, and does nothing in other processes."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipelines.ledger.ledger import CommitKind
from resources import failpoints
from resources.failpoints import KILL_AT, ONCE, failpoint, parsed
from tests.failpoints import (
    ERASE_FAILPOINTS,
    FAILPOINTS,
    INCREMENT_FAILPOINTS,
    RETIRE_FAILPOINTS,
    REWRITE_FAILPOINTS,
    SCRUB_FAILPOINTS,
    STATE_FAILPOINTS,
)
from tests.fakes.cluster import FakeCluster
from tests.pipelines.load.test_choices import load
from tests.small_table import SmallTable

_CALL = re.compile(r'failpoint\(f?"([^"]+)"\)')


@pytest.fixture(autouse=True)
def no_failpoint_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_pass_counts", Counter())
    monkeypatch.delenv(KILL_AT, raising=False)
    monkeypatch.delenv(ONCE, raising=False)


def test_the_tests_know_every_failpoint_of_the_code() -> None:
    root = Path(failpoints.__file__).parents[1] / "pipelines"
    names = {name for file in root.rglob("*.py") for name in _CALL.findall(file.read_text())}
    of_kinds = {name.format(self=Kind(kind)) for name in names if "{self.kind}" in name for kind in CommitKind}
    assert {name for name in names if "{" not in name} | of_kinds == {
        *FAILPOINTS,
        *ERASE_FAILPOINTS,
        *INCREMENT_FAILPOINTS,
        *RETIRE_FAILPOINTS,
        *REWRITE_FAILPOINTS,
        *STATE_FAILPOINTS,
        *SCRUB_FAILPOINTS,
    }


class Kind:
    """A change of this kind, for the names of failpoints that contain the kind."""

    def __init__(self, kind: CommitKind) -> None:
        self.kind = kind


def test_a_failpoint_does_nothing_in_production() -> None:
    for name in FAILPOINTS:
        failpoint(name)
    assert not failpoints._pass_counts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("planned", ("kill", "planned", 1)),
        ("file written:3", ("kill", "file written", 3)),
        ("stop:before load entry", ("stop", "before load entry", 1)),
        ("raise:batch fetched:2", ("raise", "batch fetched", 2)),
    ],
)
def test_a_text_says_how_and_where_and_at_which_pass_a_process_ends(text: str, parts: tuple[str, str, int]) -> None:
    assert parsed(text) == parts


def test_a_process_ends_at_the_named_pass_of_a_failpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL_AT, "kill:loaded:9,raise:planned:2")
    failpoint("planned")
    failpoint("fetched")
    with pytest.raises(MemoryError, match="planned"):
        failpoint("planned")
    failpoint("planned")


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, int]:
    """The number of passes of each failpoint, in order of the first pass."""
    monkeypatch.setenv(KILL_AT, "raise:no failpoint")
    return failpoints._pass_counts


def test_a_load_passes_its_failpoints_in_order(passed: Mapping[str, int], fake: FakeCluster, tmp_path: Path) -> None:
    """Otherwise no crash test would end a load there."""
    with fake:
        assert load(fake, tmp_path).error is None
    assert list(passed) == [
        "discovered",
        "no table found",
        "table made",
        "table opened",
        "bounds known",
        "planned",
        "fetch began",
        "batch fetched",
        "file opened",
        "file written",
        "file closed",
        "file synced",
        "facts sent",
        "fetched",
        "files checked",
        "before load entry",
        "log entry written",
        "after load entry",
        "log entry found",
        "log entry synced",
        "loaded",
        "mirrored",
    ]


def test_a_commit_after_a_conflict_passes_two_more_failpoints(passed: Mapping[str, int], small: SmallTable) -> None:
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 50))
    assert not {"conflict seen", "rebased"} & passed.keys()
    small.commit(small.write(0, 50, partition=1), snapshot=snapshot)
    assert (passed["conflict seen"], passed["rebased"]) == (1, 1)


def test_only_the_first_of_several_processes_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL_AT, "raise:planned")
    monkeypatch.setenv(ONCE, str(tmp_path))
    with pytest.raises(MemoryError):
        failpoint("planned")
    monkeypatch.setattr(failpoints, "_pass_counts", Counter())
    failpoint("planned")
    assert int((tmp_path / "raise:planned").read_text()) > 0


@pytest.mark.parametrize(("how", "code"), [("kill", -9), ("fault", -11), ("exit", 1)])
def test_a_process_can_end_in_several_ways(how: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL_AT, f"{how}:planned")
    program = "from resources.failpoints import failpoint; failpoint('planned')"
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=60)
    assert ended.returncode == code
