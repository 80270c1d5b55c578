"""Every command on a page or in a help text works exactly as it is written."""

import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from dagster._cli import create_dagster_cli

from pipelines.cli.main import main
from tests.docs.block_coverage import is_run_in_order
from tests.docs.conftest import World
from tests.docs.pages import PAGES, ROOT, run_blocks
from tests.live import numbered
from tests.pipelines.cli.walking import PROGRAM, commands, examples_of, help_of, words_of
from tests.thorough import spread

TESTED_ELSEWHERE = {
    "dg scaffold defs penstock.PenstockComponent lake --bootstrap broker-1:9092 --lake s3://bucket/lake": (
        "tests/pipelines/defs/test_component.py"
    ),
    "make demo": "tests/pipelines/demo/test_demo.py",
    "make demo UI=1": "tests/ui/test_ui.py",
    "dagster code-server start -m pipelines.definitions --host 127.0.0.1 --port 4266 --location-name penstock": (
        "tests/ui/test_new_topics.py"
    ),
    **dict.fromkeys(
        (command for block in run_blocks(ROOT / "docs" / "security.md", "sh") for command in block.commands()),
        "tests/docs/test_security_page.py",
    ),
    r"sed -E '/^ +--hash/d; s/ \\$//' requirements.lock > constraints.txt": "tests/docs/test_install_page.py",
    "dagster dev -m pipelines.definitions": "tests/pipelines/defs/test_dev_command.py",
    "dagster-daemon run -w workspace.yaml": "tests/ui/test_ui.py",
    "dagster-webserver -h 127.0.0.1 -w workspace.yaml": "tests/ui/test_ui.py",
}
"""Commands that need a browser or other programs, or run for long, with the test that runs them."""

_ADDRESS = "127.0.0.1:2181"
_PORT = re.compile(r"--(port|serve) \d+")


def all_commands() -> set[str]:
    """All commands of the pages and help texts, each once."""
    of_pages = [block for page in PAGES for block in run_blocks(page, "sh", "console")]
    in_pages = {command for block in of_pages if not is_run_in_order(block) for command in block.commands()}
    in_help = {command for path, _ in commands() for command in examples_of(help_of(path))}
    return in_pages | in_help


def has_no_end(command: str) -> bool:
    """Whether the command runs until it is interrupted."""
    words = command.split()
    return (
        words[1] in {"broker", "registry", "zookeeper"}
        or (words[1] == "tail" and not {"--until", "--max"} & set(words))
        or bool({"--serve", "--watch"} & set(words))
    )


PENSTOCK_COMMANDS = sorted(command for command in all_commands() if command.split()[0] == PROGRAM)
INITIALISING = [command for command in PENSTOCK_COMMANDS if command.split()[1] == "init"]
ENDING = [command for command in PENSTOCK_COMMANDS if not has_no_end(command) and command not in INITIALISING]
DAGSTER_COMMANDS = sorted(command for command in all_commands() if command.startswith("dagster instance "))
ENDLESS = [command for command in PENSTOCK_COMMANDS if has_no_end(command)]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make stdin look like a terminal, so that commands ask for confirmation."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)


@pytest.mark.slow
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", ENDING)
def test_every_command_on_a_page_works(command: str, world: World) -> None:
    result = CliRunner().invoke(main, words_of(command), input="y\n")
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", INITIALISING)
def test_a_command_that_begins_works_in_a_folder_without_settings(command: str, world: World) -> None:
    (world.home / "penstock.toml").unlink()
    address = f"127.0.0.1:{world.port}"
    result = CliRunner().invoke(main, words_of(command.replace("localhost:9092", address)), input=f"{address}\n\n\n")
    assert result.exit_code == 0, result.output


@pytest.mark.zookeeper
@pytest.mark.parametrize("command", spread(5, ENDLESS))
def test_a_command_without_end_starts_and_ends_when_interrupted(
    command: str, world: World, request: pytest.FixtureRequest
) -> None:
    tested_command = _PORT.sub(r"--\1 0", command)
    if _ADDRESS in tested_command:
        tested_command = tested_command.replace(_ADDRESS, request.getfixturevalue("chroot"))
    words = [sys.executable, "-m", "pipelines", *words_of(tested_command)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            while not select.select([process.stdout], [], [], 0.5)[0]:
                world.publish("clicks", numbered(1))  # `penstock tail` prints a line when a record arrives
            assert process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    # The status of a topic can have a warning, if its round ends before the command does.
    problems = [line for line in errors.splitlines() if not line.startswith("warning: refunds: 1 rows have `_error`")]
    assert (process.returncode, problems) == (0, [])


@pytest.mark.parametrize("command", DAGSTER_COMMANDS)
def test_every_dagster_command_on_a_page_works(command: str, tmp_path: Path) -> None:
    dagster_cli: click.Group = create_dagster_cli()  # type: ignore[no-untyped-call] # Dagster gives it no types
    completed = CliRunner().invoke(dagster_cli, command.split()[1:], env={"DAGSTER_HOME": str(tmp_path)})
    assert completed.exit_code == 0, completed.output


def test_every_other_command_is_run_by_another_test() -> None:
    other_commands = {command for command in all_commands() if command.split()[0] != PROGRAM} - set(DAGSTER_COMMANDS)
    repair = "name their test in TESTED_ELSEWHERE, or write `<!-- not run: REASON -->` on the line before their block"
    assert other_commands - TESTED_ELSEWHERE.keys() == set(), repair
    assert TESTED_ELSEWHERE.keys() - other_commands == set(), "no page has these commands"
    assert all((ROOT / file).exists() for file in TESTED_ELSEWHERE.values())


def test_no_command_needs_a_shell() -> None:
    assert [command for command in PENSTOCK_COMMANDS if set(command) & set("|;&<>$`")] == []
