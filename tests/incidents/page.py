"""Reads docs/incidents.md: the table of symptoms, and the sections with what they show, their steps and their proof.

A line of output in the page stands for one printed line, in which `...` is any text. It continues in the next line if
that one begins with spaces.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.docs.pages import ROOT, Block, blocks_of

PAGE = ROOT / "docs" / "incidents.md"
PARTS = ("What you see", "What happened", "What it costs", "What to do", "How you know that it is over")
"""The parts of each section, in this order. Each begins a paragraph with its name in bold."""

_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_PART = re.compile(r"^\*\*([^*]+)\.\*\*", re.MULTILINE)
_STEP = re.compile(r"^(\d+)\. ", re.MULTILINE)
_ROW = re.compile(r"^\| (.+) \| \[(.+)\]\(#([\w-]+)\) \|$", re.MULTILINE)
_CONTINUED = re.compile(r"\n\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A command in a block of the page, and the lines that it prints."""

    command: str
    lines: Sequence[str]

    @classmethod
    def of(cls, block: Block) -> "Shown":
        """The command of a block, which has exactly one."""
        [command] = block.commands()
        _, *lines = _CONTINUED.sub(" ", block.text.strip()).splitlines()
        return cls(command=command, lines=lines)

    def missing_in(self, printed: str) -> list[str]:
        """The lines that the command did not print."""
        printed_lines = [" ".join(line.split()) for line in printed.splitlines()]
        return [line for line in self.lines if not any(map(_pattern(line).fullmatch, printed_lines))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A numbered step: blocks of settings and commands to carry out, or a sentence about what the operator does."""

    number: int
    text: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the page."""

    title: str
    parts: Mapping[str, str]

    @property
    def sights(self) -> Sequence[Shown]:
        """What shows that the incident has happened."""
        return [Shown.of(block) for block in blocks_of(self.parts["What you see"])]

    @property
    def steps(self) -> Sequence[Step]:
        """The steps that end the incident."""
        _, *numbered = _STEP.split(self.parts["What to do"])
        return [
            Step(number=int(number), text=text, blocks=blocks_of(text))
            for number, text in zip(numbered[::2], numbered[1::2], strict=True)
        ]

    @property
    def proof(self) -> Shown:
        """The command that proves the table in the end."""
        [block] = blocks_of(self.parts["How you know that it is over"])
        return Shown.of(block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A row of the table of symptoms: what somebody sees, and the title and the anchor of the section."""

    seen: str
    title: str
    anchor: str


def sections() -> Mapping[str, Section]:
    """The sections of the page by their titles."""
    _, *texts = _SECTION.split(PAGE.read_text(encoding="utf-8"))
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return {title: Section(title=title, parts=_parts(text)) for title, text in pairs}


def symptoms() -> Sequence[Symptom]:
    """The rows of the table at the beginning of the page."""
    beginning, *_ = _SECTION.split(PAGE.read_text(encoding="utf-8"))
    return [Symptom(seen=seen, title=title, anchor=anchor) for seen, title, anchor in _ROW.findall(beginning)]


def _parts(text: str) -> Mapping[str, str]:
    _, *named = _PART.split(text)
    return dict(zip(named[::2], named[1::2], strict=True))


def _pattern(line: str) -> re.Pattern[str]:
    """Matches a printed line with single spaces."""
    return re.compile(".*".join(re.escape(part) for part in " ".join(line.split()).split("...")))
