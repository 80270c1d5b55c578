"""The pages that `make docs` generates from the code."""

import json
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path

from pipelines.cli.output_schema import schema
from resources.explanations.explanation import ExitCode, Explanation
from resources.explanations.texts import explanations
from resources.settings.settings import Settings
from resources.settings.settings_reference import reference
from tests.docs.pages import ROOT
from tests.pipelines.cli.walking import commands, help_of

_ERRORS_HEAD = """\
# Error codes

The message of an error ends with a code, such as `PS-301`. A code never gets another meaning. `penstock explain PS-301`
prints what this page says about it, without a network, and `penstock explain` lists all codes. With `--json` and
`--log-format json` it is in the field `code`. This page is generated from the code.

## Which exit codes are there?

A command in which several things fail, such as `penstock load --all`, has the exit code of their kind, or 1 if they are
of several kinds. `penstock status` has exit code 1 while a topic has the state error or losing, and `penstock complete`
while a table is not complete.

| exit code | meaning |
|---|---|
"""
_HEAD = """\
# Commands

The output of `--help` for every command. `make docs` generates this page from the code.
"""


def commands_page() -> str:
    """The page of commands: the help text of every command."""
    parts = (f"## {' '.join(path)}\n\n```text\n{help_of(path)}```\n" for path, _ in commands())
    return "\n".join([_HEAD, *parts])


def errors_page() -> str:
    """The page of errors: the exit codes, and the explanation of every code."""
    exits = "".join(f"| {code} | {code.meaning} |\n" for code in ExitCode)
    families = groupby(explanations().values(), lambda explanation: explanation.family)
    parts = (f"## {title}\n\n" + "\n".join(map(_explanation, family)) for title, family in families)
    return "\n".join([_ERRORS_HEAD + exits, *parts])


def _explanation(explanation: Explanation) -> str:
    """An explanation. Its heading is only its code, so that links do not depend on its title."""
    row = explanation.row
    kinds = ", ".join(f"`{kind}`" for kind in row.kinds)
    repairs = "".join(f"- {repair}\n" for repair in explanation.repairs)
    page = explanation.page.partition(".")[0]
    return (
        f"### {row.code}\n\n**{explanation.title}** ({kinds}, exit code {row.exit_code})\n\n{explanation.meaning}\n\n"
        f"Why: {explanation.causes}\n\n{repairs}\nMore: [{page}]({explanation.page})\n"
    )


def schema_page() -> str:
    """The JSON Schema of the output of the commands."""
    return json.dumps(schema(), indent=2) + "\n"


GENERATED: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "settings.md": lambda: reference(Settings),
    ROOT / "docs" / "commands.md": commands_page,
    ROOT / "docs" / "output.schema.json": schema_page,
    ROOT / "docs" / "errors.md": errors_page,
}


def write() -> None:
    """Write all generated pages."""
    for page, text in GENERATED.items():
        page.write_text(text(), encoding="utf-8")
