"""Terminals for tests: a real one of any size for a command, and a console in this process that writes to a text."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from rich.console import Console

from pipelines.cli.output import terminal

_COLOUR_VARIABLES = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}


class TerminalText(io.StringIO):
    """A text that says that it is a terminal."""

    def isatty(self) -> bool:
        """See TextIO."""
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, *, columns: int = 80, lines: int = 24) -> TerminalText:
    """Let stdout and stderr be one terminal; the result is what is printed on it."""
    text = TerminalText()
    for name in ("out", "err"):
        console = Console(file=text, theme=terminal._THEME, force_terminal=True, color_system="standard")
        console.size = (columns, lines)
        monkeypatch.setattr(terminal, name, console)
    monkeypatch.setattr(terminal, "width", lambda: columns)
    return text


@contextmanager
def command_on_terminal(
    command: Sequence[str], *, columns: int = 80, lines: int = 24, environment: Mapping[str, str] | None = None
) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    """A command on a real terminal. Yields its process, and the side of the terminal that its user sees."""
    user_side, command_side = pty.openpty()
    fcntl.ioctl(command_side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in _COLOUR_VARIABLES}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=command_side,
        stderr=command_side,
        env={**inherited, "TERM": "xterm", **(environment or {})},
    )
    os.close(command_side)
    try:
        yield process, user_side
    finally:
        process.kill()
        process.wait()
        os.close(user_side)


def read_until_end(user_side: int) -> str:
    """Everything that a command prints on its terminal until it ends."""
    parts: list[bytes] = []
    try:
        while part := os.read(user_side, 65536):
            parts.append(part)
    except OSError:  # Linux reports the end of the other side so
        pass
    return b"".join(parts).decode()


def shown_on_a_terminal(command: Sequence[str], *, columns: int = 80, **environment: str) -> str:
    """The output of a command on a terminal."""
    with command_on_terminal(command, columns=columns, environment=environment) as (_, user_side):
        return read_until_end(user_side)
