"""Checks the sentences of pages, docstrings, comments and messages: a part of `make check`."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.prose.passages import ROOT, modules, pages, passages
from tests.prose.rules import findings, mixed_headings

_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_OWN_FOLDER = ROOT / "tests" / "prose"  # its files name what it forbids


def problems() -> Iterator[str]:
    """Every sentence and heading that breaks a rule."""
    for path in [*pages(), *modules()]:
        if path.parent != _OWN_FOLDER:
            yield from _problems_of(path)


def _problems_of(path: Path) -> Iterator[str]:
    is_test = path.is_relative_to(ROOT / "tests")
    for passage in passages(path):
        if not (is_test and passage.kind == "message"):  # in tests these are data, too
            yield from map(str, findings(passage))
    if path.suffix == ".md":
        page = _BLOCK.sub("", path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(ROOT)}: {message}" for message in mixed_headings(page))


def main() -> int:
    """Print all problems. The exit code is 1 if there is one."""
    lines = list(problems())
    for line in lines:
        print(line)  # noqa: T201 - the output of the check
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
