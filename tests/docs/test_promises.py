"""Each promise of the pages names the faults that could break it, and each of these faults has tests."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from resources.explanations.codes import ROWS
from resources.explanations.explanation import CodeRow
from tests.docs.faults import guards
from tests.docs.pages import ROOT, section
from tests.docs.references import FAULTS, references

PAGE = ROOT / "docs" / "exactly-once.md"
_ROW = re.compile(r"^\| (\d+) [^|]+\| ([^|]+) \|$", re.MULTILINE)
_PROMISE = re.compile(r"^(\d+)\. ", re.MULTILINE)
_LIMIT = re.compile(r"^\| (?!condition|---)(?P<condition>[^|]+) \|.*\|(?P<faults>[^|]*)\|$", re.MULTILINE)
_ENTRY = re.compile(r"^### ([A-Z]\d\d) ", re.MULTILINE)
_OF_OUTPUTS = "faults P21, P22"
"""Faults of outputs of increments, which have promises of their own in docs/increments.md."""
_WITHOUT_A_NAME = {
    "PS-609": "a load shows its sentence as a warning, and tests compare the whole sentence",
    "PS-711": "Python raises it for files that the system refuses; which file that is does not matter",
    "PS-901": "it stands for every error without a code of its own",
}
"""Codes whose errors no test names, with the reason."""


def faults_of(text: str) -> list[str]:
    """The numbers of the faults that a text cites."""
    return [reference.target for reference in references(PAGE, text)]


def guarded() -> Mapping[str, Sequence[str]]:
    """The faults behind each promise, by its number."""
    return {number: faults_of(cell) for number, cell in _ROW.findall(section(PAGE, "Which tests guard each promise?"))}


def test_each_promise_of_the_readme_names_the_faults_that_could_break_it() -> None:
    promised = _PROMISE.findall(section(ROOT / "README.md", "What does Penstock promise?"))
    assert len(promised) >= 10
    assert list(guarded()) == promised
    assert [number for number, faults in guarded().items() if len(faults) < 3] == []


def limits() -> Mapping[str, Sequence[str]]:
    """The faults behind each condition under which the promise does not hold."""
    rows = _LIMIT.finditer(section(PAGE, "When does it not hold?"))
    return {row["condition"]: faults_of(row["faults"]) for row in rows}


def test_each_fault_behind_a_promise_has_a_test() -> None:
    cited = {fault for faults in guarded().values() for fault in faults}
    assert cited - guards().keys() == set()


@pytest.mark.parametrize("heading", ["Proof", "Rows that would be wrong"])
def test_each_fault_that_a_proof_would_not_show_is_behind_a_promise(heading: str) -> None:
    cited = {fault for faults in guarded().values() for fault in faults}
    entries = set(_ENTRY.findall(section(FAULTS, heading)))
    assert len(entries) >= 20
    assert entries - cited - {*faults_of(_OF_OUTPUTS)} == set()


def test_what_is_said_of_each_limit_is_tested_too() -> None:
    table = limits()
    assert len(table) >= 14
    assert [condition for condition, faults in table.items() if not faults] == []
    assert {fault for faults in table.values() for fault in faults} - guards().keys() == set()


@cache
def words_of_tests() -> frozenset[str]:
    """All words of the tests, except those of the explanations of errors, which name every code."""
    files = {*(ROOT / "tests").rglob("test_*.py"), ROOT / "tests" / "incidents" / "incidents.py"}
    texts = (file.read_text() for file in files if file.name not in {"test_explanations.py", "test_promises.py"})
    return frozenset(word for text in texts for word in re.findall(r"[\w-]+", text))


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.code)
def test_each_error_of_the_table_of_codes_is_named_by_a_test(row: CodeRow) -> None:
    assert ({row.code, *row.kinds} & words_of_tests()) or row.code in _WITHOUT_A_NAME
