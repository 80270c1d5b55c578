"""What `make test` leaves to `make thorough` exists, and so do the tests that keep its laws."""

import ast

import pytest

from tests.sampling import ROOT
from tests.thorough import MOVED, Moved

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
