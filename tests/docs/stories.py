"""Runs the blocks of a page from top to bottom in one folder, as a new user does, and compares what they print.

The line before a block says what happens to it. If it names a file, as in "into the file `orders.jsonl`", the block is
written into that file; "to the file `penstock.toml`" appends it. A block after `<!-- not run: REASON -->` is not run.
Times, ages, sizes, ids of runs, versions and ports may differ from the page, and a line `...` is any number of lines.
"""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from pipelines.cli.main import main
from tests.docs.pages import ROOT, Block, blocks_with_text
from tests.pipelines.cli.walking import words_of

HOME = "/home/ada/shop"
"""The folder in which the pages say that the user works."""

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_FILE = re.compile(r"\b(?P<how>into|to) the file `(?P<name>[\w./-]+)`")
_DIFFERING = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), "TIME"),
    (re.compile(r"(?:\b\d+(?:\.\d)? (?:ms|s|min|h|d)\b ?)+"), "DURATION "),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8}\b"), "RUN"),
    (re.compile(r"\b\d+\.\d+\.\d+\b"), "RELEASE"),
    (re.compile(r"\b\d{2,6}\b"), "SIZE"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A block of a page, with the heading above it and the line before it."""

    heading: str
    before: str
    block: Block

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command with the output that the page shows after it."""
        if self.block.language == "sh":
            yield from ((command, "...") for command in self.block.commands())
        for part in re.split(r"^\$ ", self.block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def steps(page: str) -> Iterator[Step]:
    """The blocks of a page in their order, without those that it marks as not run."""
    heading = ""
    for text, block in blocks_with_text((ROOT / page).read_text(encoding="utf-8"), page):
        *_, heading = [heading, *_HEADING.findall(text)]
        if not block.not_run:
            yield Step(heading=heading, before="".join(text.strip().splitlines()[-1:]), block=block)


def run(step: Step, execute: Callable[[str], str]) -> None:
    """Write the block into its file, run it as Python, or execute each of its commands and check the output."""
    file = _FILE.search(step.before)
    if file:
        with Path(file["name"]).open("a" if file["how"] == "to" else "w", encoding="utf-8") as output:
            output.write(step.block.text)
    elif step.block.language == "python":
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(step.block.text, step.block.page, "exec"), {})
        step.block.check_output(printed.getvalue())
    else:
        commands = list(step.commands())
        assert commands, f"nothing runs this block of {step.block.page}:\n{step.block.text}"
        for command, shown in commands:
            check_shown(command, shown, execute(command))


def penstock(command: str) -> str:
    """Run a command of `penstock`, which must succeed; returns what it prints."""
    result = CliRunner().invoke(main, words_of(command))
    assert result.exit_code == 0, f"{command}\n{result.output}"
    return result.output


def check_shown(command: str, shown: str, output: str) -> None:
    """Check that a command printed the lines that the page shows."""
    expected = "".join("(?:.*\n)*?" if line == "..." else f"{_pattern(line)}\n" for line in shown.splitlines())
    printed = "".join(f"{_same(line)}\n" for line in output.replace(str(Path.cwd()), HOME).splitlines())
    assert re.fullmatch(expected, printed), f"$ {command}\n{output}\nbut the page shows\n{shown}"


def _pattern(line: str) -> str:
    return re.escape(_same(line)).replace(r"\.\.\.", ".*")


def _same(line: str) -> str:
    """The line without what differs from one run to another."""
    for pattern, name in _DIFFERING:
        line = pattern.sub(name, line)
    return line.strip()
