"""Chooses a sample of the selected tests: `make thorough SHARE=8` runs one eighth of the thorough cases.

CI runs such a sample for each commit. The commit chooses it: in the course of some commits all cases run, and the same
commit has the same sample again. A case takes from milliseconds to minutes, but the sample has a fixed place in the
time of CI. So a case that would begin too late is left out. The commit also chooses the order, except that scenarios of
minutes begin first.
"""

import hashlib
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pytest

from tests import spreading
from tests.thorough import MOVED

ROOT = Path(__file__).parents[1]
PLUGIN = "penstock sample"
_REPORTED = "left_out_late"
_LONG = ("tests/ui/", "tests/spark/", *(moved.tests for moved in MOVED))
"""Each of these takes a minute or more, so it begins at once, and the sample ends soon after the last one begins."""


def add_options(parser: pytest.Parser) -> None:
    """Add the options of samples to the command line of pytest."""
    group = parser.getgroup("sample", "a sample of the tests")
    group.addoption("--share", type=int, default=1, help="Run one of so many tests.")
    group.addoption("--sample-of", default="", help="Any text that chooses these tests; the commit by default.")
    group.addoption("--begin-within", type=float, help="Begin no test later than so many seconds after the first.")


def commit_or_day() -> str:
    """What chooses the sample: the commit, or the day if the tree is no clone."""
    command = ["git", "rev-parse", "HEAD"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return completed.stdout.strip() or f"{datetime.now(UTC):%Y-%m-%d}"


def number_of(text: str, name: str) -> int:
    """A number that only a text and the name of a sample determine."""
    return int.from_bytes(hashlib.sha256(f"{name} {text}".encode()).digest()[:8], "big")


@dataclass(slots=True, kw_only=True)
class Sample:
    """The sample that a process of pytest runs; a plugin of pytest. Without `--share` it has all tests.

    Args:
        share: the sample has one of so many tests.
        name: the text that chooses it.
        begin_within_s: no test begins later than so many seconds after the first.
        late_count: how many tests did not begin.
    """

    share: int
    name: str
    begin_within_s: float | None = None
    late_count: int = 0
    _deadline: float | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> Self:
        """The sample that the options of pytest ask for."""
        share = config.getoption("--share")
        if share > 1 and not config.option.sample_of:
            config.option.sample_of = commit_or_day()  # the processes that run tests get the options of this one
        return cls(share=share, name=config.option.sample_of, begin_within_s=config.getoption("--begin-within"))

    def has(self, nodeid: str) -> bool:
        """Whether the test is in the sample."""
        return number_of(nodeid, self.name) % self.share == 0

    def choose(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the tests that are not in the sample."""
        others = [item for item in items if not self.has(item.nodeid)]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if self.has(item.nodeid)]

    def rank_of(self, nodeid: str) -> tuple[int, int]:
        """The rank of a test: what takes long begins first. The other units of a sample have an order of its own."""
        if self.share == 1:
            return spreading.rank_of(nodeid), 0
        return int(not nodeid.startswith(_LONG)), number_of(spreading.unit_of(nodeid), self.name)

    def pytest_report_header(self) -> str:
        """Say how to run the same sample again."""
        return f"sample: one of {self.share} tests, --sample-of={self.name}" if self.share > 1 else ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Leave out a test that would begin too late. True tells pytest that nothing remains to be done."""
        if self.begin_within_s is None:
            return None
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self.begin_within_s
        if now < self._deadline:
            return None
        self.late_count += 1
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that distributes the tests, if there is one, how many did not begin here."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_REPORTED] = self.late_count

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Add the tests that did not begin in a process that has ended."""
        self.late_count += getattr(node, "workeroutput", {}).get(_REPORTED, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many tests did not begin."""
        if self.late_count:
            terminalreporter.write_line(f"{self.late_count} tests did not begin within {self.begin_within_s:g} s")


def sample_of(config: pytest.Config) -> Sample:
    """The sample of this process."""
    sample = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(sample, Sample)
    return sample
