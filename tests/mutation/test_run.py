"""A run on a small project finds the mutants that its tests do not notice."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
from dataclasses import dataclass
from typing import ClassVar, TypeVar

ValueT = TypeVar("ValueT")
LIMIT = 5 + 1

@dataclass(slots=True, kw_only=True)
class Count:
    number: int
    is_even: bool = False
    is_counted: ClassVar[bool] = 1 == 1

    @property
    def small(self):
        return self.number < LIMIT

def first(numbers, *, ascending=True):
    for number in sorted(numbers, reverse=not ascending):
        if number > 0:
            return number

class Named(dict):
    def __init__(self):
        super().__init__(name=1)

def untested(a):
    return a == 1

def countdown(number):
    while number != 0:
        number = number - 1
"""
TESTS = """
from module import LIMIT, Count, Named, countdown, first

def test_a_count_is_odd_by_default(): assert not Count(number=1).is_even
def test_all_are_counted(): assert Count.is_counted
def test_6_is_not_small(): assert not Count(number=6).small
def test_the_limit_is_6(): assert LIMIT == 6
def test_the_first_number(): assert first([2, 1]) == 1
def test_a_named_dict_has_a_name(): assert list(Named()) == ["name"]
def test_a_countdown_ends(): countdown(2)
"""
PROGRAM = """
import sys
from pathlib import Path
import pytest
from tests.mutation.mutants import mutants_of
from tests.mutation.run import MutationRun

root = Path(sys.argv[1])
mutants = list(mutants_of(root, "module.py"))
show = lambda mutant, noticed_by: print(f"{mutant.change}: {noticed_by}", file=sys.stderr)
run = MutationRun(root=root, mutants=mutants, on_result=show)
options = ["-x", "-s", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:timeout"]
sys.exit(pytest.main([*options, "--rootdir", str(root), str(root / "test_module.py")], plugins=[run]))
"""


def results(project: Path) -> dict[str, str]:
    """Who noticed which change of the project's module."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(project)],
        cwd=project,
        env={"PYTHONPATH": f"{ROOT}:{project}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return dict(line.rsplit(": ", 1) for line in run.stderr.splitlines())


@pytest.mark.slow
def test_a_run_names_the_test_that_notices_each_mutant(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "test_module.py").write_text(TESTS)
    assert results(tmp_path) == {
        "5 + 1 -> 5": "test_module.py::test_the_limit_is_6",
        "False -> True": "test_module.py::test_a_count_is_odd_by_default",
        "1 == 1 -> 1 != 1": "test_module.py::test_all_are_counted",
        "self.number < LIMIT -> self.number <= LIMIT": "test_module.py::test_6_is_not_small",
        "True -> False": "test_module.py::test_the_first_number",
        "not ascending -> ascending": "test_module.py::test_the_first_number",
        "number > 0 -> number >= 0": "None",
        "super().__init__(name=1) -> pass": "test_module.py::test_a_named_dict_has_a_name",
        "a == 1 -> a != 1": "None",
        "number != 0 -> number == 0": "None",
        "number - 1 -> number": "test_module.py::test_a_countdown_ends, which does not end",
    }


def test_mutants_are_tried_although_the_collection_of_tests_freezes_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("def small(number):\n    return number < 5\n")
    (tmp_path / "test_module.py").write_text("from module import small\ndef test_5(): assert not small(5)\n")
    (tmp_path / "conftest.py").write_text("import gc\ndef pytest_collection_finish(): gc.freeze()\n")
    assert results(tmp_path) == {"number < 5 -> number <= 5": "test_module.py::test_5"}


@pytest.mark.slow
def test_a_test_that_takes_long_on_a_busy_machine_has_not_noticed_the_mutant(tmp_path: Path) -> None:
    """The test is recorded on an idle machine; its next two runs, with the mutant and without, take too long."""
    (tmp_path / "module.py").write_text("def small(number):\n    return number < 5\n")
    (tmp_path / "conftest.py").write_text("from tests.mutation import run\nrun._WAIT_S = 0.5\n")
    (tmp_path / "test_module.py").write_text(
        "from pathlib import Path\nfrom time import sleep\nfrom module import small\n"
        "RUNS = Path(__file__).with_name('runs')\n"
        "def test_4():\n"
        "    run = len(RUNS.read_text()) if RUNS.exists() else 0\n"
        "    RUNS.write_text('x' * (run + 1))\n"
        "    if run in (1, 2): sleep(30)\n"
        "    assert small(4)\n"
    )
    assert results(tmp_path) == {"number < 5 -> number <= 5": "None"}
    assert (tmp_path / "runs").read_text() == "x" * 4


def test_functions_that_dataclasses_make_under_one_name_are_not_taken_for_mutants(tmp_path: Path) -> None:
    """The garbage collector lists the two `__repr__` in any order."""
    classes = "@dataclass\nclass A:\n    a: int\n@dataclass\nclass B:\n    b: int\n    c: int\n"
    (tmp_path / "module.py").write_text(f"from dataclasses import dataclass\n{classes}def f(*, x=False): return x\n")
    (tmp_path / "test_module.py").write_text("from module import f\ndef test_f(): assert not f()\n")
    (tmp_path / "conftest.py").write_text(
        "import gc\nfrom itertools import cycle\nlisted, steps = gc.get_objects, cycle((1, -1))\n"
        "gc.get_objects = lambda: listed()[:: next(steps)]\n"
    )
    assert results(tmp_path) == {"False -> True": "test_module.py::test_f"}


def test_a_run_ends_if_tests_fail_without_a_mutant(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "test_module.py").write_text("import module\ndef test_nothing(): assert not module.LIMIT\n")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        results(tmp_path)
    assert "TestsFail: test_module.py::test_nothing" in failed.value.output + failed.value.stderr
