"""`penstock explain`: what the code of an error means, without a network or a settings file."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.text import Text

from pipelines.cli.options import GlobalOptions
from pipelines.cli.output import terminal
from pipelines.cli.output.result import CommandResult, prints_result
from resources.explanations.codes import RETIRED, ROWS, code_of, typed_code
from resources.explanations.texts import explanations
from resources.printed import printed
from resources.suggestion import did_you_mean

_HEADING = "bold"
_WIDTH = 100  # of a line of text; wider terminals would make lines that are hard to read


@click.command("explain")
@click.argument("code", required=False)
@prints_result
def explain_command(_options: GlobalOptions, code: str | None) -> CommandResult:
    """Explain the code of an error.

    The command says what the error means, why it happens, and what to do. CODE is a code such as PS-301, its number, or
    the name of an error such as CursorExpired. Without CODE the command lists all codes. It needs neither the settings
    nor a network.

    \b
    Examples:
      penstock explain PS-301
      penstock explain 301
      penstock explain CursorExpired
      penstock explain
    """
    chosen = [_code(code)] if code else ROWS
    rows = [explanations()[each] for each in chosen]
    records = [{**printed(row), "page": f"docs/{row.page}"} for row in rows]
    return CommandResult(records=records, show=_show_one if code else _show_all)


def _code(text: str) -> str:
    """The code that a user means.

    Raises:
        UsageError: there is no such code, or no longer.
    """
    wrong_use = getattr(click.exceptions, text, None)  # such as NoSuchOption, the kind of an error in JSON
    if isinstance(wrong_use, type) and issubclass(wrong_use, click.ClickException):
        return code_of(wrong_use)
    code = typed_code(text)
    if code in RETIRED:
        raise click.UsageError(f"{code} is not used any more: {RETIRED[code]}")
    if code not in ROWS:
        known = [*ROWS, *(kind for row in ROWS.values() for kind in row.kinds)]
        more = did_you_mean(code, known) or "; `penstock explain` lists all codes"
        raise click.UsageError(f"there is no code {code!r}{more}")
    return code


def _show_one(records: Sequence[Mapping[str, Any]]) -> None:
    """Print everything about one code."""
    width = min(terminal.out.width, _WIDTH)
    for record in records:
        _print(f"{record['code']}: {record['title']}", width, style=_HEADING)
        _print(f"{', '.join(record['kinds'])}; exit code {record['exit_code']}", width, style=terminal.DIM)
        for heading, texts in (
            ("What does it mean?", [record["meaning"]]),
            ("Why does it happen?", [record["causes"]]),
            ("What can I do?", [f"- {repair}" for repair in record["repairs"]]),
        ):
            terminal.print_line(Text())
            _print(heading, width, style=_HEADING)
            for text in texts:
                _print(text, width)
        terminal.print_line(Text(f"\nmore: {record['page']}"))


def _print(text: str, width: int, *, style: str = "") -> None:
    terminal.print_line(Text(_wrapped(text, width), style))


def _wrapped(text: str, width: int) -> str:
    """The text in lines of this width. Commands stay on one line, so that they can be copied."""
    unbroken = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(unbroken, width, subsequent_indent=indent, break_on_hyphens=False).replace("\0", " ")


def _show_all(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each code, below its family."""
    family = None
    for record in records:
        if record["family"] != family:
            blank, family = "\n" if family else "", record["family"]
            terminal.print_line(Text(f"{blank}{family}", _HEADING))
        terminal.print_line(Text(f"  {record['code']}  {record['title']}"))
