"""Every command has help with examples, explained options, fixed exit codes, and prints no traceback."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from tests.docs.pages import ROOT
from tests.pipelines.cli.walking import WIDTH, commands, examples_of, help_of, words_of
from tests.small_table import SmallTable
from tests.thorough import first

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


@pytest.mark.parametrize(("path", "command"), LEAVES)
def test_every_command_whose_result_is_no_data_has_quiet(path: tuple[str, ...], command: click.Command) -> None:
    has_quiet = any({"--quiet", "-q"} <= set(option.opts) for option in command.params)
    assert has_quiet is (" ".join(path[1:]) not in WITHOUT_RESULTS | {"tail", "config show"})


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


@pytest.mark.parametrize(("words", "extra"), [("zookeeper", "spark"), ("state", "duckdb"), ("complete", "duckdb")])
def test_the_help_of_a_command_names_the_extra_that_it_needs(words: str, extra: str) -> None:  # fault F10
    (path,) = (path for path, _ in commands() if path[-1] == words)
    assert f"extra `{extra}`" in " ".join(help_of(path).split())


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
@pytest.mark.parametrize(
    "arguments",
    first(
        4,
        [
            ("config", "reference"),
            ("status",),
            ("verify", "--all", "--json"),
            ("config", "check"),
            ("config", "schema"),
            ("config", "show", "--json"),
            ("config", "check", "--json"),
            ("status", "--json"),
            ("topics", "--json"),
            ("history", "clicks", "--json"),
        ],
    ),
)
def test_a_closed_pipe_changes_nothing_but_the_output(arguments: tuple[str, ...], tmp_path: Path) -> None:  # fault F06
    reading, writing = os.pipe()
    os.close(reading)
    once = f'lake = "{tmp_path}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[caps]\nattempts = 1\n'
    command = penstock("--settings", settings(tmp_path, once), *arguments)
    with os.fdopen(writing, "wb") as stdout:
        closed = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)
    usual = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (closed.returncode, closed.stderr) == (usual.returncode, usual.stderr)
    assert usual.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("publish", "clicks", "-"), "Invalid value for 'FILE': stdin is closed: give a file, or pipe lines"),
        (("rewind", "clicks", "--version", "0"), "confirmation is needed and there is no terminal: give --yes"),
        (("init",), "give --bootstrap or --zookeeper: there is no terminal to ask at"),
    ],
)
def test_a_closed_stdin_is_wrong_use(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, small: SmallTable
) -> None:  # fault F06
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 60))
    file = () if arguments == ("init",) else ("--settings", settings(tmp_path))
    command = shlex.join(penstock(*file, *arguments))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    completed = subprocess.run(
        f"{command} <&-", shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (completed.returncode, sentence in completed.stderr) == (ExitCode.WRONG_USE, True), completed.stderr
