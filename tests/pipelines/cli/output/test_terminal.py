"""Colours mean something, and only add to words; a pipe has none, and its lines have any length."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.style import Style

from pipelines.cli.output import log_lines, shown_status, terminal
from pipelines.cli.output.tail_lines import write
from tests.pipelines.cli.output.test_printed_table import LONG
from tests.pipelines.cli.terminals import TerminalText, on_terminal, shown_on_a_terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
SOURCE = f"""
from rich.text import Text
from pipelines.cli.output import terminal
from pipelines.cli.output.printed_table import print_table
print_table("topic state", [{{"topic": {LONG!r}, "state": Text("loaded", terminal.GOOD)}}])
print("colours" if terminal.has_colours(terminal.out) else "plain")
"""
PROGRAM = [sys.executable, "-c", SOURCE]


@pytest.mark.slow
def test_a_terminal_gets_colours_and_lines_that_fit() -> None:
    shown = shown_on_a_terminal(PROGRAM, columns=40)
    assert COLOUR.search(shown)
    assert "colours" in shown
    assert "\u2026" in shown


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_without_colours_has_the_same_words(name: str, value: str) -> None:
    shown = shown_on_a_terminal(PROGRAM, columns=40, **{name: value})
    assert not COLOUR.search(shown)
    assert ("plain" in shown, "loaded" in shown, "\u2026" in shown) == (True, True, True)


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "has_colours"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_a_pipe_gets_whole_lines_and_colours_only_if_they_are_forced(
    environment: dict[str, str], has_colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    piped = subprocess.run(PROGRAM, capture_output=True, text=True, timeout=60, check=True)
    assert bool(COLOUR.search(piped.stdout)) is has_colours
    assert LONG in piped.stdout
    assert piped.stdout.splitlines()[-1] == ("colours" if has_colours else "plain")


def test_every_style_of_a_state_is_one_of_the_meanings() -> None:
    meanings = {terminal.GOOD, terminal.WARN, terminal.BAD, terminal.DIM, ""}
    assert set(shown_status._STATES.values()) == meanings
    assert all(isinstance(terminal.out.get_style(name), Style) for name in meanings if name)


def test_errors_and_warnings_are_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch)
    log_lines.error("it broke")
    log_lines.warning("it may break")
    error, warning = screen.getvalue().splitlines()
    assert COLOUR.search(error)
    assert COLOUR.search(warning)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in (error, warning)] == [
        "penstock: it broke",
        "warning: it may break",
    ]


def test_records_have_colours_where_results_have_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    styled = ["\x1b[36mkey\x1b[0m"]
    write(styled)
    assert capsys.readouterr().out == "key\n"
    on_terminal(monkeypatch)
    write(styled)
    assert capsys.readouterr().out == "\x1b[36mkey\x1b[0m\n"


def test_one_module_names_colours() -> None:
    folder = Path(terminal.__file__).parent
    colours = re.compile(r"\[(bold )?(red|green|yellow|cyan|blue)\]|\"(bold )?(red|green|yellow|blue)\"")
    named = [path.name for path in folder.glob("*.py") if colours.search(path.read_text())]
    assert sorted(named) == ["tail_lines.py", "terminal.py"]


def test_the_width_is_that_of_the_terminal_on_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.width() is None
    monkeypatch.setattr(terminal, "out", Console(file=TerminalText()))
    monkeypatch.setenv("COLUMNS", "33")
    assert terminal.width() == 33
