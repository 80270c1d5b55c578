"""Finds the prose of the project: paragraphs of pages, and the docstrings, comments and messages of modules."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("kafka_io", "pipelines", "resources", "tests")

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LIST_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
_INDENTED = re.compile(r"\n(?: {4,}|\t).*")
_DIRECTIVE = re.compile(r"^#\s*(?:noqa|type:|pragma|!|fmt:)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A paragraph, a cell of a table, a docstring, a comment or a message.

    Attributes:
        path: the file, relative to the root of the project.
        line: the number of its first line.
        kind: `page`, `comment`, `message`, `summary` for the first paragraph of a docstring, or `docstring`.
    """

    path: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def pages() -> list[Path]:
    """The pages of prose of the project."""
    folders = (ROOT / "docs", ROOT / ".github")
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(p for folder in folders for p in folder.rglob("*.md"))]


def modules() -> list[Path]:
    """The modules of the product and of the tests."""
    return [ROOT / "penstock.py", *sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))]


def passages(path: Path) -> Iterator[Passage]:
    """The passages of a page or module."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    yield from passages_of_page(name, text) if path.suffix == ".md" else passages_of_module(name, text)


def passages_of_page(path: Path, text: str) -> Iterator[Passage]:
    """The paragraphs, list items, headings and table cells of a page, without its blocks of code."""
    prose = _without(_HTML_COMMENT, _without(_FENCE, text))
    paragraph: list[str] = []
    first = 0
    for number, line in enumerate([*prose.split("\n"), ""], 1):
        begins = not line.strip() or line[0] in "|#" or _LIST_ITEM.match(line)
        if begins and paragraph:
            yield Passage(path=path, line=first, kind="page", text=" ".join(paragraph))
            paragraph = []
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip("|")):
                yield Passage(path=path, line=number, kind="page", text=cell.strip())
        elif line.strip():
            first = first if paragraph else number
            paragraph.append(_LIST_ITEM.sub("", line).strip())


def passages_of_module(path: Path, text: str) -> Iterator[Passage]:
    """The docstrings, comments and messages of a module. Neighbouring lines of a comment are one passage."""
    tree = ast.parse(text)
    docstrings: set[ast.expr] = set()
    for node in ast.walk(tree):
        for literal in _docstrings(node):
            docstrings.add(literal)
            yield from _paragraphs(path, literal)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield Passage(path=path, line=node.lineno, kind="message", text=node.value)
    yield from _comments(path, text)


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """The literals of strings that are statements: docstrings, and texts below constants."""
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else ():
        literal = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
            yield literal


def _paragraphs(path: Path, literal: ast.Constant) -> Iterator[Passage]:
    line = literal.lineno
    for number, paragraph in enumerate(str(literal.value).split("\n\n")):
        kind = "docstring" if number else "summary"
        yield Passage(path=path, line=line, kind=kind, text=paragraph.strip())
        line += paragraph.count("\n") + 2


def _comments(path: Path, text: str) -> Iterator[Passage]:
    last: Passage | None = None
    last_line = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        words = token.string.lstrip("# ")
        whole_line = not token.line[: token.start[1]].strip()
        if last and whole_line and token.start[0] == last_line + 1:
            last = Passage(path=path, line=last.line, kind="comment", text=f"{last.text} {words}")
        else:
            if last:
                yield last
            last = Passage(path=path, line=token.start[0], kind="comment", text=words)
        last_line = token.start[0]
    if last:
        yield last


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text without what matches, and with the same number of lines."""
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
