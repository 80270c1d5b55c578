"""Describes the terminal to the commands: its width, its colours, and whether anything may be printed on it.

Results are printed on `out`, progress and sentences on `err`. A style is named after what it means. Each text says the
same without colours: NO_COLOR and TERM=dumb turn them off, FORCE_COLOR turns them on in a pipe.
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text
from rich.theme import Theme

GOOD, WARN, BAD, DIM = "good", "warn", "bad", "dim"
_THEME = Theme({GOOD: "green", WARN: "yellow", BAD: "bold red", DIM: "dim"})
_ELLIPSIS = "\u2026"


class _Output(Console):
    """A console whose reader may leave: that raises BrokenPipeError, as `print` does. rich would end the process."""

    def on_broken_pipe(self) -> None:
        """Raise the error again."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


out = _Output(theme=_THEME)
err = Console(theme=_THEME, stderr=True)


def is_terminal(console: Console) -> bool:
    """Whether a console prints on a terminal. rich also says so if FORCE_COLOR is set, which is only about colours."""
    return console.file.isatty()


def has_colours(console: Console) -> bool:
    """Whether texts on a console have colours."""
    return console.color_system is not None and not console.no_color


def can_redraw() -> bool:
    """Whether stdout is a terminal on which the cursor can be moved."""
    return is_terminal(out) and not out.is_dumb_terminal


@contextmanager
def captured(console: Console) -> Iterator[Callable[[], str]]:
    """Keep what is printed on a console if it is a terminal. Yields a function that returns the text later."""
    if not is_terminal(console):
        yield str
        return
    with console.capture() as capture:
        yield capture.get


def width() -> int | None:
    """The number of columns of the terminal on stdout; None in a pipe, where lines have any length."""
    return shutil.get_terminal_size().columns if is_terminal(out) else None


def is_quiet() -> bool:
    """Whether `--quiet` was given: only errors are printed for people."""
    return out.quiet


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """In the `with` block, let a reader of stdout such as `head` leave early: the rest is lost, and nothing fails.

    See fault F06.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends


@contextmanager
def quieted(*, quiet: bool) -> Iterator[None]:
    """If `quiet`, print no results for people and no warnings in the `with` block."""
    before, out.quiet = out.quiet, quiet
    try:
        yield
    finally:
        out.quiet = before


def print_line(text: Text) -> None:
    """Print a line on stdout as it is: a terminal wraps it if it is too long."""
    out.print(text, soft_wrap=True, highlight=False)


def shortened(text: str, columns: int) -> str:
    """`text` in at most so many columns of a terminal; an ellipsis in the middle stands for what is left out.

    Both ends stay, because names of topics and paths often differ only there.
    """
    if cell_len(text) <= columns:
        return text
    if columns <= 1:
        return _ELLIPSIS[:columns]
    head = set_cell_size(text, columns // 2).rstrip()
    tail = set_cell_size(text[::-1], columns - 1 - columns // 2).rstrip()[::-1]
    return f"{head}{_ELLIPSIS}{tail}"
