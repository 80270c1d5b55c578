"""Finds out which mutants the tests notice.

The tests are collected once. A fork of the process runs them and records which lines each test runs, and for how long.
After that there is a fork for each mutant. It changes the loaded module, and runs the tests that run the changed lines
until one fails. First come the tests of the mutants' rooms. All others take longer, and are run, recorded too, only if
mutants are left that the first ones do not notice.

The forks begin before any test has run: the runtime of delta-rs does not survive a fork. mutmut works alike, but makes
eight times as many mutants (decision D49).
"""

import gc
import pickle
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import hypothesis
import pytest
from coverage import Coverage

from tests.mutation.forks import forked
from tests.mutation.loaded import LoadedModules, NoDifference
from tests.mutation.mutants import Mutant

_CPU_S, _WAIT_S = 2.0, 20.0
"""The limits of a test under a mutant for CPU and for time, besides ten times its usual time."""
_NOTICED = 1
_TOO_LONG = {-signal.SIGALRM, -signal.SIGPROF}


class TestsFail(Exception):
    """Tests fail without a mutant."""

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The tests that ran without a mutant.

    Args:
        seconds: how long each test ran.
        tests_by_line: the tests that ran a line, by file and line. A line that runs at import only is not there.
    """

    seconds: Mapping[str, float]
    tests_by_line: Mapping[tuple[str, int], Collection[str]]

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that might notice the mutant: those of the module first, fast tests before slow ones.

        For code that runs at import, these are all tests that use the module.
        """
        first, last = mutant.lines
        running = {test for line in range(first, last + 1) for test in self.tests_by_line.get((mutant.file, line), ())}
        own = {test for test in self.seconds if f"test_{Path(mutant.file).name}::" in test}
        if mutant.at_import and not running:
            running = own.union(*(tests for (file, _), tests in self.tests_by_line.items() if file == mutant.file))
        return sorted(running, key=lambda test: (test not in own, self.seconds[test]))


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationRun:
    """A plugin of pytest: it runs the collected tests on mutants, and reports for each mutant who noticed it.

    Args:
        root: the folder of the mutants' files.
        mutants: the mutants to try.
        on_result: is called with each mutant and the reason why it was noticed; None if it survived.
        near: the beginnings of the names of tests that are near to all modules.
        prepare: is called once, before the first fork.
    """

    root: Path
    mutants: Sequence[Mutant]
    on_result: Callable[[Mutant, str | None], None]
    near: tuple[str, ...] = ()
    prepare: Callable[[], None] = lambda: None

    def pytest_sessionstart(self) -> None:
        """Before tests are imported: the examples of Hypothesis are the same in each run, and are not simplified."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", hypothesis.settings(), derandomize=True, database=None, phases=phases
        )
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of `session` without a mutant, and then with each of them."""
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        if reporter := session.config.pluginmanager.getplugin("terminalreporter"):
            session.config.pluginmanager.unregister(reporter)
        self.prepare()
        loaded = LoadedModules(self.root, sorted({mutant.file for mutant in self.mutants}))
        left = self.mutants
        near = (*self.near, *{f"tests/{Path(mutant.file).parent}/" for mutant in left})
        for is_near in (True, False):
            items = [item for item in session.items if item.nodeid.startswith(near) == is_near]
            if items and left:
                left = list(self._unnoticed(session, items, loaded, left))
        for mutant in left:
            self.on_result(mutant, None)
        gc.unfreeze()
        return True

    def _unnoticed(
        self, session: pytest.Session, items: Sequence[pytest.Item], loaded: LoadedModules, mutants: Sequence[Mutant]
    ) -> Iterator[Mutant]:
        """The mutants that none of these tests notices. All others are reported."""
        recording = _recorded(session, items, self.root, sorted({mutant.file for mutant in mutants}))
        by_id = {item.nodeid: item for item in items}
        for mutant in mutants:
            tests = {by_id[test]: recording.seconds[test] for test in recording.tests_for(mutant)}
            if noticed_by := _noticed_by(session, loaded, mutant, tests):
                self.on_result(mutant, noticed_by)
            else:
                yield mutant


def _recorded(session: pytest.Session, items: Sequence[pytest.Item], root: Path, files: Sequence[str]) -> Recording:
    """Run these tests in a fork, and record them."""

    def work(report: BinaryIO) -> int:
        coverage = Coverage(data_file=None, config_file=False, include=[str(root / file) for file in files])
        seconds: dict[str, float] = {}
        coverage.start()
        for item, following in _with_following(items):
            coverage.switch_context(item.nodeid)
            started = time.monotonic()
            _run(item, following)
            seconds[item.nodeid] = time.monotonic() - started
            if session.testsfailed:
                report.write(item.nodeid.encode())
                return _NOTICED
        coverage.stop()
        data = coverage.get_data()
        tests_by_line = {
            (file, line): {test for test in tests if test}
            for file in files
            for line, tests in data.contexts_by_lineno(str(root / file)).items()
        }
        report.write(pickle.dumps(Recording(seconds=seconds, tests_by_line=tests_by_line)))
        return 0

    result = forked(work)
    if result.code:
        raise TestsFail(result.report.decode() or f"code {result.code}")
    recording: Recording = pickle.loads(result.report)
    return recording


def _noticed_by(
    session: pytest.Session, loaded: LoadedModules, mutant: Mutant, seconds: Mapping[pytest.Item, float]
) -> str | None:
    """The first test that fails with the mutant, in a fork; None if all pass. `seconds` are their usual times.

    A test that takes much longer has noticed the mutant: something waits or repeats for ever. On a busy machine any
    test may take that long. Then it also does without the mutant, and the mutant is tried again with more time.
    """
    items = {item.nodeid: item for item in seconds}
    patience = 1
    while True:
        result = forked(partial(_run_with_limits, session, partial(loaded.mutate, mutant), seconds, patience))
        if not result.code:
            return None
        test = result.report.decode().rpartition("\n")[2]
        if result.code != -signal.SIGALRM or _ends(session, items[test], seconds[items[test]], patience):
            break
        patience *= 2
    if result.code in _TOO_LONG:
        return f"{test}, which does not end"
    return test if result.code == _NOTICED else f"{test}, which ends with {result.code}"


def _ends(session: pytest.Session, item: pytest.Item, seconds: float, patience: int) -> bool:
    """Whether a test ends in time without a mutant."""
    result = forked(partial(_run_with_limits, session, lambda: None, {item: seconds}, patience))
    return result.code != -signal.SIGALRM


def _run_with_limits(
    session: pytest.Session,
    mutate: Callable[[], None],
    seconds: Mapping[pytest.Item, float],
    patience: int,
    report: BinaryIO,
) -> int:
    """Run tests in this process, until one fails. A signal ends the process if one takes too long.

    `patience` multiplies the usual limit of its time.
    """
    try:
        mutate()
    except NoDifference:
        return 0  # nothing was tried, so nobody has noticed anything
    except Exception as error:  # noqa: BLE001 - whatever the mutated module raises at import
        report.write(repr(error).encode())
        return _NOTICED
    for item, following in _with_following(list(seconds)):
        report.write(f"\n{item.nodeid}".encode())
        signal.setitimer(signal.ITIMER_PROF, _CPU_S + 10 * seconds[item])
        signal.setitimer(signal.ITIMER_REAL, patience * (_WAIT_S + 10 * seconds[item]))
        _run(item, following)
        if session.testsfailed:
            return _NOTICED
    return 0


def _with_following(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip_longest(items, items[1:])


def _run(item: pytest.Item, following: pytest.Item | None) -> None:
    """Run a test. pytest keeps the fixtures that the following test needs."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
