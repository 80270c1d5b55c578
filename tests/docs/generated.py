"""The pages that `make docs` generates from the code."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pipelines.cli.shapes import schema
from resources.settings_reference import reference
from tests.docs.pages import ROOT
from tests.docs.references import FAULTS, faults_page
from tests.pipelines.cli.walking import commands, help_of

_HEAD = """\
# Commands

The output of `--help` for every command. `make docs` generates this page from the code.
"""


def commands_page() -> str:
    """The page of commands: the help text of every command."""
    parts = (f"## {' '.join(path)}\n\n```text\n{help_of(path)}```\n" for path, _ in commands())
    return "\n".join([_HEAD, *parts])


def schema_page() -> str:
    """The JSON Schema of the output of the commands."""
    return json.dumps(schema(), indent=2) + "\n"


GENERATED: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "settings.md": reference,
    ROOT / "docs" / "commands.md": commands_page,
    ROOT / "docs" / "output.schema.json": schema_page,
    FAULTS: faults_page,
}


def write() -> None:
    """Write all generated pages."""
    for page, text in GENERATED.items():
        page.write_text(text(), encoding="utf-8")
