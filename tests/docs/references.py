"""Finds references in code and documentation, and their possible targets. Lists the tests of each fault.

`.github/CONTRIBUTING.md` defines the forms:

    [kafka-0.7: Fetch]        a section of docs/kafka-0.7.md, docs/kafka-0.8.md or docs/architecture.md; several are
                              separated by commas
    fault W04                 an entry of docs/faults.md; faults W04, W05
    decision D03              an entry of docs/decisions.md; decisions D03, D04
    docs/install.md#how-do-i-start-on-a-laptop    a page, with or without a heading
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT, prose

FAULTS = ROOT / "docs" / "faults.md"
DECISIONS = ROOT / "docs" / "decisions.md"

_FOLDERS = ("kafka_io", "resources", "pipelines", "tests", "docs", ".github")
_FILES = ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".ci/run")
_SUFFIXES = {".py", ".md", ".toml"}
_SHOWN_TESTS = 4

_SECTION = re.compile(r"\[(kafka-[0-9.]+|architecture): ([^\]\n]+)\]")
_ENTRY = re.compile(r"\b(fault|decision)s? ([A-Z]\d{2}\b(?:,\s+(?:# )?[A-Z]\d{2}\b)*)")
_NUMBER = re.compile(r"\b[BDGHLNOPRSUWXZ]\d{2}\b")
_HEADING = re.compile(r"^#{2,} (.+)$", re.MULTILINE)
_NUMBERED = re.compile(r"^### ([A-Z]\d{2}) ", re.MULTILINE)
_PAGE = re.compile(r"(?<![\w./-])((?:docs|\.github)/[\w./-]+\.md)\b(?:#([\w-]+))?")
_TEST_LINK = re.compile(r"\[(test_\w+\.py)(?:::(\w+))?\]\(\.\./([^)]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One reference: `page` is a file of docs/, `target` is a heading or the number of an entry in it."""

    path: Path
    line: int
    page: str
    target: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.page}, {self.target}"


def texts() -> Iterator[tuple[Path, str]]:
    """Every file that may contain references, with its text."""
    files = [file for folder in _FOLDERS for file in sorted((ROOT / folder).rglob("*")) if file.suffix in _SUFFIXES]
    for file in [*files, *(ROOT / name for name in _FILES if (ROOT / name).is_file())]:
        yield file, file.read_text(encoding="utf-8")


def references(path: Path, text: str) -> Iterator[Reference]:
    """The references in a file, in the order of their form."""
    for match in _SECTION.finditer(text):
        for section in match[2].split(", "):
            yield Reference(path=path, line=_line(text, match.start()), page=f"{match[1]}.md", target=section)
    for match in _ENTRY.finditer(text):
        for number in _NUMBER.finditer(match[0]):
            line = _line(text, match.start() + number.start())
            yield Reference(path=path, line=line, page=f"{match[1]}s.md", target=number[0])


def named_pages(text: str) -> set[tuple[str, str]]:
    """The pages that a text names by their path, each with the anchor after it or an empty text."""
    return {(match[1], match[2] or "") for match in _PAGE.finditer(text)}


def bare_numbers(path: Path, text: str) -> list[str]:
    """Numbers of faults and decisions without the word fault or decision before them, except in defining headings."""
    uncited = _NUMBERED.sub("", text) if path in {FAULTS, DECISIONS} else text
    return _NUMBER.findall(_ENTRY.sub("", uncited))


def targets(page: Path) -> set[str]:
    """The headings of a page and the numbers of its entries, which can be cited."""
    return {*_HEADING.findall(prose(page)), *_NUMBERED.findall(prose(page))}


def linked_tests(page: Path) -> list[tuple[Path, str]]:
    """The tests that a page names: the file, and the function or an empty text."""
    return [(ROOT / path, name) for _, name, path in _TEST_LINK.findall(page.read_text(encoding="utf-8"))]


@cache
def names_of_tests(path: Path) -> set[str]:
    """The functions of a file of tests."""
    return {node.name for node in _functions(path.read_text(encoding="utf-8"))}


def faults_page() -> str:
    """The text of `docs/faults.md` with new lists of tests."""
    tests = _tests_by_fault()
    head, *entries = re.split(r"(?=^### )", FAULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return head + "".join(_with_tests(entry, tests) for entry in entries).rstrip() + "\n"


def _with_tests(entry: str, tests: Mapping[str, list[str]]) -> str:
    # The heading of the next chapter stays after the list of tests.
    body, mark, after = entry.partition("\n## ")
    description = re.sub(r"\n\n(?:Tests: .*|No test\.)$", "", body.rstrip())
    return f"{description}\n\n{_links_text(tests.get(entry[4:7], []))}\n" + (f"{mark}{after}" if mark else "\n")


def _links_text(links: list[str]) -> str:
    if not links:
        return "No test."
    others = f", and {len(links) - _SHOWN_TESTS} more" if len(links) > _SHOWN_TESTS else ""
    return f"Tests: {', '.join(links[:_SHOWN_TESTS])}{others}."


def _tests_by_fault() -> dict[str, list[str]]:
    """Links to the tests that cite each fault: the first function of each file, or the file."""
    by_fault: dict[str, list[str]] = defaultdict(list)
    # The tests of references contain citations as examples.
    for path in sorted(set((ROOT / "tests").rglob("test_*.py")) - {ROOT / "tests" / "docs" / "test_references.py"}):
        text = path.read_text(encoding="utf-8")
        cited = sorted(
            (reference for reference in references(path, text) if reference.page == FAULTS.name),
            key=lambda reference: reference.line,
        )
        names = _names_by_line(text) if cited else {}
        # A function is more exact than a file, so citations outside of all functions come last.
        cited.sort(key=lambda reference: reference.line not in names)
        for fault in dict.fromkeys(reference.target for reference in cited):
            line = next(reference.line for reference in cited if reference.target == fault)
            name = f"{path.name}::{names[line]}" if line in names else path.name
            by_fault[fault].append(f"[{name}](../{path.relative_to(ROOT)})")
    return by_fault


def _names_by_line(text: str) -> dict[int, str]:
    """The test that each line belongs to. The comments directly above a test belong to it."""
    lines = text.splitlines()
    names: dict[int, str] = {}
    for node in _functions(text):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        names |= dict.fromkeys(range(first, (node.end_lineno or first) + 1), node.name)
    return names


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
