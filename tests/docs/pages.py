"""Reads the pages of the documentation: fenced blocks, commands, links, headings, and code in backquotes.

A block names its language. In `sh` each line is a command; two spaces and `#` begin a comment, and a line that ends
with a backslash continues in the next line. In `console`, lines that begin with `$ ` are commands, the others output.
`<!-- not run: REASON -->` on the line before a block says why no test runs it.
"""

import doctest
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    ROOT / ".github" / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
MARKDOWN = (
    *PAGES,
    ROOT / "CHANGELOG.md",
    *sorted({*(ROOT / ".github").rglob("*.md"), *(ROOT / "tests").rglob("*.md")} - {*PAGES}),
)
"""All files in Markdown: the pages, and the changelog, templates and notes, whose links must lead somewhere, too."""
LANGUAGES = {"sh", "console", "toml", "yaml", "text", "python", "sql", "mermaid"}

_FENCE = re.compile(r"(?:^<!-- not run: ([^>]*?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s{2,})#.*$")
_PRINTED = re.compile(r"print\(.*\)  # (.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page.

    Attributes:
        not_run: why no test runs the block; empty if a test runs it.
    """

    page: str
    language: str
    text: str
    not_run: str

    @property
    def reads_a_table(self) -> bool:
        """Whether the block is Python that reads a table, which must have been loaded before."""
        return self.language == "python" and any(
            name in self.text for name in ("DeltaTable(", "scan_delta(", "increment", "complete_through")
        )

    def check_output(self, output: str) -> None:
        """Check that the lines of `output` are those in the comments after the calls of `print`; `...` is any text."""
        lines = output.split("\n")
        for expected, line in zip(_PRINTED.findall(self.text), lines, strict=False):
            assert doctest.OutputChecker().check_output(expected, line, doctest.ELLIPSIS), line

    def commands(self) -> Iterator[str]:
        """The commands of the block, each on one line and without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in lines if self.language in {"sh", "console"} else ():
            command = " ".join(_COMMENT.sub("", line).split())
            if command:
                yield command


def name_of(page: Path) -> str:
    """The path of the page in the repository."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    return blocks_of(page.read_text(encoding="utf-8"), name_of(page))


def blocks_of(text: str, page: str = "") -> list[Block]:
    """All fenced blocks of a text, which is a part of the page with this name."""
    return [block for _, block in blocks_with_text(text, page)]


def blocks_with_text(text: str, page: str = "") -> Iterator[tuple[str, Block]]:
    """Each fenced block of a text, after the text between the block before it and this one."""
    end = 0
    for fence in _FENCE.finditer(text):
        reason, language, content = fence.groups(default="")
        yield (
            text[end : fence.start()],
            Block(page=page, language=language, text=content, not_run=" ".join(reason.split())),
        )
        end = fence.end()


def run_blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages that tests run."""
    return [block for block in blocks(page) if block.language in languages and not block.not_run]


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def section(page: Path, title: str) -> str:
    """The text of the section with this title, up to the next title of the same level."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    assert rest, f"{page.name} has no section {title!r}"
    return rest.partition("\n## ")[0]


def without_blocks(change: Callable[[str], str], text: str) -> str:
    """The text of a page with `change` applied to all that is outside of fenced blocks."""
    end, parts = 0, []
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def links(page: Path) -> list[str]:
    """The targets of the links of a page."""
    return _LINK.findall(prose(page))


def code(page: Path) -> list[str]:
    """The code in backquotes of a page, with single spaces."""
    return [" ".join(text.split()) for text in _CODE.findall(prose(page))]


def anchors(page: Path) -> set[str]:
    """The headings of a page as anchors, in the form that links use."""
    return {anchor_of(title) for title in _HEADING.findall(prose(page))}


def anchor_of(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
