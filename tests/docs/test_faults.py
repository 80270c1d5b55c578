"""Each fault of `docs/faults.md` has a test that cites it, and a command finds the tests of a fault."""

import pytest

from tests.docs.faults import guards, lines, names_by_line
from tests.docs.references import FAULTS, targets

TEXT = """\
def helper():
    return 1

# a comment
@pytest.mark.slow
def test_a():
    assert 1
"""


def test_each_fault_has_a_test() -> None:
    numbers = {target for target in targets(FAULTS) if target[0].isupper() and target[1:].isdigit()}
    assert len(numbers) > 200
    assert numbers - guards().keys() == set(), "cite the fault in a comment at its test"


@pytest.mark.parametrize(("letter", "count"), [("A", 19), ("E", 26), ("F", 17)])
def test_each_fault_of_the_audit_has_a_test_and_not_only_a_file_that_cites_it(letter: str, count: int) -> None:
    by_fault = guards()
    numbers = [f"{letter}{number:02}" for number in range(1, count + 1)]
    assert [number for number in numbers if not any("::" in test for test in by_fault[number])] == []


def test_a_citation_belongs_to_the_test_around_or_below_it() -> None:
    assert names_by_line(TEXT) == dict.fromkeys(range(4, 8), "test_a")


def test_the_command_prints_the_tests_of_the_faults_that_it_is_asked_for() -> None:
    tests = {"A": ["tests/test_a.py::test_b", "tests/test_c.py"], "B": ["tests/test_d.py"]}
    assert lines(["B", "A"], tests) == ["tests/test_d.py", "tests/test_a.py::test_b", "tests/test_c.py"]
    assert lines([], tests) == ["A  2", "B  1"]
