"""Says which tests guard a fault: those that cite its number in `docs/faults.md`.

python -m tests.docs.faults W04    prints their node ids, which pytest takes as arguments
python -m tests.docs.faults        prints how many tests guard each fault
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.docs.pages import ROOT
from tests.docs.references import FAULTS, Reference, references

_EXAMPLES = ROOT / "tests" / "docs" / "test_references.py"
"""The tests of references contain citations as examples."""


def guards() -> dict[str, list[str]]:
    """The node ids of the tests that cite each fault. A citation outside of all tests stands for its whole file."""
    by_fault: dict[str, list[str]] = defaultdict(list)
    for path in sorted({*(ROOT / "tests").rglob("test_*.py")} - {_EXAMPLES}):
        text = path.read_text(encoding="utf-8")
        if cited := [reference for reference in references(path, text) if reference.page == FAULTS.name]:
            names = names_by_line(text)
            for reference in sorted(cited, key=lambda reference: reference.line):
                _add(by_fault[reference.target], reference, names)
    return dict(by_fault)


def _add(nodeids: list[str], reference: Reference, names: Mapping[int, str]) -> None:
    file = str(reference.path.relative_to(ROOT))
    nodeid = f"{file}::{names[reference.line]}" if reference.line in names else file
    if nodeid not in nodeids:
        nodeids.append(nodeid)


def names_by_line(text: str) -> dict[int, str]:
    """The test that each line belongs to. The comments directly above a test belong to it."""
    lines = text.splitlines()
    names: dict[int, str] = {}
    for node in _tests(text):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        names |= dict.fromkeys(range(first, (node.end_lineno or first) + 1), node.name)
    return names


def _tests(text: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def lines(numbers: Sequence[str], tests: Mapping[str, Sequence[str]]) -> list[str]:
    """What the command prints: the tests of these faults, or the number of tests of each fault."""
    if numbers:
        return [nodeid for number in numbers for nodeid in tests.get(number, ())]
    return [f"{number}  {len(tests[number])}" for number in sorted(tests)]


if __name__ == "__main__":
    print("\n".join(lines(sys.argv[1:], guards())))  # noqa: T201
