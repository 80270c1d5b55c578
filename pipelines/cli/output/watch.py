"""Shows the result of a command again and again: in place on a terminal, as a block for each round in a pipe."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import process_time, sleep
from traceback import walk_stack
from types import FrameType

import click
from rich.text import Text

from kafka_io.errors import Where
from pipelines.cli.output import log_lines, terminal
from pipelines.cli.output.result import CommandResult
from resources.settings.settings import SettingsError

Ask = Callable[[], CommandResult]
Show = Callable[[Ask], None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def watch(ask: Ask, *, title: str, pause_s: float, as_json: bool) -> None:
    """Show the result of `ask` until SIGINT or SIGTERM arrives.

    A pause is at least as long as the CPU time of the round before it, so that the command needs at most half of a core
    if one thread works. Wrong use ends the command only in the first round: later it is an error, such as a topic that
    was deleted meanwhile.
    """
    text = f"{title}, pauses of {pause_s:g} s, Ctrl-C ends"
    with _interruptible() as is_interrupted, _shown(text, as_json=as_json) as show:
        is_first = True
        while True:
            began_s = process_time()
            show(ask if is_first else partial(_without_wrong_use, ask))
            is_first = False
            if is_interrupted():
                return
            sleep(max(pause_s, process_time() - began_s))


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """End the `with` block at SIGINT and SIGTERM, which are no errors. Yields whether one of them has arrived.

    A signal that arrives in an import or in `__del__` raises nothing there: the first often becomes an ImportError, and
    the second is lost. So the block must ask. A signal that the process ignores stays ignored.
    """
    arrived: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        if not _loses_exceptions(frame):
            raise KeyboardInterrupt

    caught = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handle) for number in caught}
    try:
        yield lambda: bool(arrived)
    except KeyboardInterrupt:
        return
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _loses_exceptions(frame: FrameType | None) -> bool:
    """Whether an exception that a handler raises in this frame may not arrive where the caller handles it."""
    codes = [caller.f_code for caller, _ in walk_stack(frame)]
    return any(code.co_name == "__del__" or code.co_filename.startswith("<frozen importlib.") for code in codes)


def _without_wrong_use(ask: Ask) -> CommandResult:
    """The result of `ask`, in which wrong use is an error."""
    from pipelines.ledger.failure import SliceFailure

    try:
        return ask()
    except (click.ClickException, SettingsError) as error:
        reason = error.format_message() if isinstance(error, click.ClickException) else error.reason
        failure = replace(SliceFailure.of(error, Where()), reason=reason)
        return CommandResult(records=(), show=lambda _: None, errors=[failure])


@contextmanager
def _shown(text: str, *, as_json: bool) -> Iterator[Show]:
    """How rounds are shown: on a terminal that can be drawn again, or as lines."""
    if as_json:
        yield lambda ask: ask().print(as_json=True)
    elif log_lines.is_json() or not terminal.can_redraw():
        yield _print_block
    else:
        screen = _Screen(text)
        try:
            with terminal.out.screen():
                terminal.out.update_screen(Text("waiting for the first answer", terminal.DIM))
                yield screen.draw
        finally:
            screen.print_last()


def _print_block(ask: Ask) -> None:
    """Print the time and the result of a round, and an empty line."""
    terminal.print_line(Text(_time(), terminal.DIM))
    ask().print(as_json=False)
    terminal.print_line(Text())


class _Screen:
    """The screen of a terminal, which is drawn again after each round. `text` is its first line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._result = Text()
        self._problems = Text()

    def draw(self, ask: Ask) -> None:
        """Ask, and draw the result. Until the answer is there, the screen shows the last one."""
        log_lines.forget_hints()
        with terminal.captured(terminal.out) as result, terminal.captured(terminal.err) as problems:
            ask().print(as_json=False)
        self._result, self._problems = Text.from_ansi(result().rstrip()), Text.from_ansi(problems().rstrip())
        terminal.out.update_screen(self._lines())

    def _lines(self) -> Text:
        """The lines that fit on the screen. If there are too many, problems get at least half of it."""
        size = terminal.out.size
        heading = Text(terminal.shortened(f"{_time()}, {self._text}", size.width), terminal.DIM)
        result, problems = (
            list(text.wrap(terminal.out, size.width)) if text else [] for text in (self._result, self._problems)
        )
        room = size.height - 1
        problems = problems[: max(room // 2, room - len(result))]
        if len(result) > room - len(problems):
            result = result[: room - len(problems) - 1]
            result.append(Text("the terminal is too low for all lines", terminal.DIM))
        return Text("\n").join([heading, *result, *problems])

    def print_last(self) -> None:
        """Print the newest result where it stays when the command has ended."""
        for text in (self._result, self._problems):
            if text:
                terminal.print_line(text)


def _time() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
