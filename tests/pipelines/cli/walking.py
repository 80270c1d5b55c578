"""All commands of `penstock`, and the examples in their help."""

import re
import shlex
from collections.abc import Iterator, Sequence

import click

from pipelines.cli.main import main

PROGRAM = "penstock"
WIDTH = 100
_EXAMPLES = re.compile(r"\n  Examples:\n((?:    .+\n)+)")


def commands(
    command: click.Command = main, path: tuple[str, ...] = (PROGRAM,)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command with the words that call it, groups before their members."""
    yield path, command
    if isinstance(command, click.Group):
        for name, member in sorted(command.commands.items()):
            yield from commands(member, (*path, name))


def help_of(path: Sequence[str], *, width: int = WIDTH) -> str:
    """What `--help` prints on a terminal of that width."""
    context = click.Context(main, info_name=PROGRAM, terminal_width=width, **main.context_settings)
    for name in path[1:]:
        assert isinstance(context.command, click.Group)
        context = click.Context(context.command.commands[name], info_name=name, parent=context)
    return context.get_help() + "\n"


def examples_of(text: str) -> list[str]:
    """The examples in a help text, a command each."""
    return [line.strip() for block in _EXAMPLES.findall(text) for line in block.splitlines()]


def leads_on(code: str) -> str:
    """The line below the first error with a code."""
    return f"`penstock explain {code}` says what this means and what to do\n"


def words_of(line: str) -> list[str]:
    """The arguments of an example, without the program's name."""
    return shlex.split(line)[1:]
