"""Finds references in code and documentation, and their possible targets.

`.github/CONTRIBUTING.md` defines the forms:

    [kafka-0.7: Fetch]        a section of docs/kafka-0.7.md, docs/kafka-0.8.md or docs/architecture.md; several are
                              separated by commas
    fault W04                 an entry of docs/faults.md; faults W04, W05
    decision D03              an entry of docs/decisions.md; decisions D03, D04
    docs/install.md#how-do-i-start-on-a-laptop    a page, with or without a heading
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, prose

FAULTS = ROOT / "docs" / "faults.md"
DECISIONS = ROOT / "docs" / "decisions.md"

_FOLDERS = ("kafka_io", "resources", "pipelines", "tests", "docs", ".github")
_FILES = ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".ci/run")
_SUFFIXES = {".py", ".md", ".toml"}

_SECTION = re.compile(r"\[(kafka-[0-9.]+|architecture): ([^\]\n]+)\]")
_ENTRY = re.compile(r"\b(fault|decision)s? ([A-Z]\d{2}\b(?:,\s+(?:# )?[A-Z]\d{2}\b)*)")
_NUMBER = re.compile(r"\b[ABDEFGHLNOPRSUWXYZ]\d{2}\b")
_HEADING = re.compile(r"^#{2,} (.+)$", re.MULTILINE)
_NUMBERED = re.compile(r"^### ([A-Z]\d{2}) ", re.MULTILINE)
_PAGE = re.compile(r"(?<![\w./-])((?:docs|\.github)/[\w./-]+\.md)\b(?:#([\w-]+))?")


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


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
