"""The pages that are made from the code; `make docs` writes them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from resources.settings_reference import reference
from tests.docs.pages import ROOT
from tests.pipelines.commands.walking import commands, help_of

_HEAD = """\
# Commands

What `--help` prints. This page is made from the code: `make docs` writes it.
"""


def commands_page() -> str:
    """The help of every command."""
    parts = (f"## {' '.join(path)}\n\n```text\n{help_of(path)}```\n" for path, _ in commands())
    return "\n".join([_HEAD, *parts])


GENERATED: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "settings.md": reference,
    ROOT / "docs" / "commands.md": commands_page,
}


def write() -> None:
    """Write all of them."""
    for page, text in GENERATED.items():
        page.write_text(text(), encoding="utf-8")
