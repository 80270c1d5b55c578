"""Every command has help with examples, explained options, fixed exit codes, and prints no traceback."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import click
import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.progress import Progress

from pipelines.cli import console
from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from tests.pipelines.cli.walking import WIDTH, commands, examples_of, help_of, words_of

ALL = [pytest.param(path, command, id=" ".join(path)) for path, command in commands()]
LEAVES = [parameter for parameter in ALL if not isinstance(parameter.values[1], click.Group)]
WITHOUT_RESULTS = {"broker", "registry", "zookeeper", "completion", "config reference", "config schema", "metrics"}
"""Commands that run servers or print plain text."""
SETTINGS = 'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n'


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_command_has_help_with_examples_of_its_own(path: tuple[str, ...], command: click.Command) -> None:
    text = help_of(path)
    examples = examples_of(text)
    assert examples
    assert all(example.startswith(" ".join(path)) for example in examples)
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_option_is_explained(path: tuple[str, ...], command: click.Command) -> None:
    silent = [option.name for option in command.params if isinstance(option, click.Option) and not option.help]
    assert not silent


@pytest.mark.parametrize(("path", "command"), ALL)
def test_no_line_of_a_list_of_commands_is_cut_short(path: tuple[str, ...], command: click.Command) -> None:
    assert "..." not in help_of(path, width=80).partition("Commands:")[2]


@pytest.mark.parametrize(("path", "command"), LEAVES)
def test_every_command_with_results_has_json(path: tuple[str, ...], command: click.Command) -> None:
    has_json = any("--json" in option.opts for option in command.params)
    assert has_json is (" ".join(path[1:]) not in WITHOUT_RESULTS)


@pytest.mark.parametrize(("path", "command"), ALL)
def test_an_unknown_option_is_wrong_use_of_every_command(path: tuple[str, ...], command: click.Command) -> None:
    assert CliRunner().invoke(main, [*path[1:], "--nonsense"]).exit_code == ExitCode.WRONG_USE


@pytest.mark.parametrize(("path", "command"), LEAVES)
def test_every_interrupted_command_prints_one_line(
    path: tuple[str, ...], command: click.Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(_: click.Context) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("lines.txt").touch()
    monkeypatch.setattr(command, "invoke", interrupted)
    result = CliRunner().invoke(main, words_of(examples_of(help_of(path))[0]))
    assert (result.exit_code, result.stdout, result.stderr) == (ExitCode.INTERRUPTED, "", "penstock: interrupted\n")


def penstock(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipelines", *arguments]


def settings(folder: Path, text: str = SETTINGS) -> str:
    file = folder / "penstock.toml"
    file.write_text(text)
    return str(file)


@pytest.mark.slow
def test_ctrl_c_ends_a_command_that_waits_for_a_broker(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        file = settings(tmp_path, SETTINGS.replace("127.0.0.1:1", address))
        command = penstock("--settings", file, "topics")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process, silent.accept()[0]:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (ExitCode.INTERRUPTED, "penstock: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("config", "reference"), ("config", "show", "--json"), ("config", "check")])
def test_a_closed_pipe_is_no_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = penstock("--settings", settings(tmp_path), *arguments)
    with os.fdopen(writing, "wb") as stdout:
        completed = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)
    assert completed.stderr == b""


def shown_on_a_terminal(command: list[str], **environment: str) -> str:
    """The output of a command on a terminal."""
    terminal, command_side = pty.openpty()
    inherited = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
    with os.fdopen(terminal, "rb", closefd=True) as screen:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=command_side,
            stderr=command_side,
            env={**inherited, "TERM": "xterm", **environment},
            timeout=60,
            check=False,
        )
        os.close(command_side)
        return screen.read1(65536).decode()


def test_progress_bars_are_printed_on_terminals_only(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.progress() as begin:
        begin("clicks")(1, 2)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(console, "_err", Console(stderr=True, force_terminal=True))
    with console.progress() as begin:
        begin("clicks")(1, 2)
    out, err = capfd.readouterr()
    assert out == ""
    assert "clicks" in err


def test_a_topic_has_a_progress_bar_only_while_it_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over thousands of topics would fill the terminal."""
    monkeypatch.setattr(console, "_err", Console(stderr=True, force_terminal=True))
    shown: list[list[str]] = []
    with console.progress() as begin, patch.object(Progress, "update", autospec=True) as update:
        for number in range(20):
            begin(f"topic-{number}")(1, 2)
            bars = update.call_args.args[0]
            begin(f"topic-{number}")(2, 2)
            begin(f"without news-{number}")
            begin(f"without news-{number}")(1, 1)
            shown.append([task.description for task in bars.tasks])
        begin("clicks")(1, 2)
        assert [task.description for task in bars.tasks] == ["clicks"]
    assert shown == [[]] * 20


COLOURS = re.compile(r"\x1b\[[0-9;]*3[0-9]m")


@pytest.mark.slow
def test_colours_are_printed_on_terminals_without_no_color(tmp_path: Path) -> None:
    command = penstock("--settings", str(tmp_path / "none.toml"), "topics")
    assert COLOURS.search(shown_on_a_terminal(command))
    assert not COLOURS.search(shown_on_a_terminal(command, NO_COLOR="1"))
    piped = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "\x1b" not in piped.stdout + piped.stderr
    assert piped.returncode == ExitCode.WRONG_USE
