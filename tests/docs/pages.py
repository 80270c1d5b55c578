"""The pages of the documentation, and what stands in them: fenced blocks, commands, links, code between backquotes.

A block says its language. In `sh` each line is a command; two spaces and `#` begin a comment, and a line that ends
with a backslash goes on in the next. In `console` lines that begin with `$ ` are commands, the others what they print.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / ".github" / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
LANGUAGES = {"sh", "console", "toml", "yaml", "text", "python"}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s{2,})#.*$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: str
    language: str
    text: str

    def commands(self) -> Iterator[str]:
        """The commands in it, each on one line, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in lines if self.language in {"sh", "console"} else ():
            command = " ".join(_COMMENT.sub("", line).split())
            if command:
                yield command


def name_of(page: Path) -> str:
    """Its path in the repository."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """All blocks of a page."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [Block(page=name_of(page), language=language, text=text) for language, text in found]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Where its links lead."""
    return _LINK.findall(prose(page))


def code(page: Path) -> list[str]:
    """What stands between backquotes."""
    return [" ".join(one.split()) for one in _CODE.findall(prose(page))]


def anchors(page: Path) -> set[str]:
    """The names of its headings, as links have them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(prose(page))}
