"""The tests that `make test` and `make full` leave out exist. So do the tests that keep their laws."""

import ast
from unittest.mock import Mock

import pytest

from tests.sampling import ROOT
from tests.thorough import LONG, MOVED, SLOW, STAYING, Moved, unknown_cases

IDS = [moved.tests.rpartition("/")[2] for moved in MOVED]


def named(prefix: str) -> list[str]:
    """The names of the tests that this beginning of node ids selects, without their parameters."""
    file, _, name = prefix.partition("::")
    functions = [
        node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
    ]
    if "[" in name:
        return [function for function in functions if function == name.partition("[")[0]]
    return [function for function in functions if function.startswith(name or "test_")]


@pytest.mark.parametrize("moved", MOVED, ids=IDS)
def test_moved_tests_and_those_that_stay_exist(moved: Moved) -> None:
    assert named(moved.tests)
    assert moved.staying
    for staying in moved.staying:
        assert named(staying), staying


@pytest.mark.parametrize("moved", MOVED, ids=IDS)
def test_a_test_that_stays_is_not_moved_itself(moved: Moved) -> None:
    for staying in moved.staying:
        assert not [other.tests for other in MOVED if staying.startswith(other.tests)], staying


def test_a_case_that_should_stay_and_does_not_exist_is_found() -> None:
    test, cases = next(iter(STAYING.items()))
    items = [Mock(nodeid=f"{test}[{case}]") for case in cases]
    assert unknown_cases(items) == []
    assert unknown_cases(items[1:]) == [f"{test}[{cases[0]}]"]
    assert unknown_cases([]) == []


@pytest.mark.parametrize("tests", [LONG, SLOW], ids=["long", "slow"])
def test_long_and_slow_tests_exist_and_are_sorted(tests: tuple[str, ...]) -> None:
    assert list(tests) == sorted(set(tests))
    for beginning in tests:
        file, _, name = beginning.partition("::")
        is_there = (ROOT / file).is_dir() if file.endswith("/") else named(beginning) or name == "TestTwoRuns"
        assert is_there, beginning
