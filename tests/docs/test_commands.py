"""Every command that a page or a help text shows works as it is written."""

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
from tests.docs.conftest import World
from tests.docs.pages import PAGES, ROOT, blocks
from tests.live import numbered
from tests.pipelines.cli.walking import PROGRAM, commands, examples_of, help_of, words_of

ELSEWHERE = {
    "make demo": "tests/pipelines/demo/test_demo.py",
    "make demo UI=1": "tests/ui/test_ui.py",
    "dagster-daemon run -w workspace.yaml": "tests/ui/test_ui.py",
    "dagster-webserver -h 127.0.0.1 -w workspace.yaml": "tests/ui/test_ui.py",
}
"""Commands that need a browser, a machine of their own or hours, with the test that runs them."""

_ADDRESS = "127.0.0.1:2181"
_PORT = re.compile(r"--port \d+")


def shown() -> set[str]:
    """All commands of the pages and help texts, each once."""
    in_pages = {command for page in PAGES for block in blocks(page) for command in block.commands()}
    in_help = {one for path, _ in commands() for one in examples_of(help_of(path))}
    return in_pages | in_help


def goes_on(command: str) -> bool:
    """Whether the command runs until it is interrupted."""
    words = command.split()
    return words[1] in {"broker", "zookeeper"} or (words[1] == "tail" and not {"--until", "--max"} & set(words))


OURS = sorted(one for one in shown() if one.split()[0] == PROGRAM)
THAT_END = [one for one in OURS if not goes_on(one)]
DAGSTERS = sorted(one for one in shown() if one.startswith("dagster instance "))
THAT_GO_ON = [one for one in OURS if goes_on(one)]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stdin is a terminal at which somebody answers yes."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", THAT_END)
def test_every_command_on_a_page_works(command: str, world: World) -> None:
    result = CliRunner().invoke(main, words_of(command), input="y\n")
    assert result.exit_code == 0, result.output


@pytest.mark.zookeeper
@pytest.mark.parametrize("command", THAT_GO_ON)
def test_a_command_without_end_starts_and_ends_when_interrupted(
    command: str, world: World, request: pytest.FixtureRequest
) -> None:
    here = _PORT.sub("--port 0", command)
    if _ADDRESS in here:
        here = here.replace(_ADDRESS, request.getfixturevalue("chroot"))
    words = [sys.executable, "-m", "pipelines", *words_of(here)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            while not select.select([process.stdout], [], [], 0.5)[0]:
                world.publish("clicks", numbered(1))  # a tail shows what comes
            assert process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


@pytest.mark.parametrize("command", DAGSTERS)
def test_every_dagster_command_on_a_page_works(command: str, tmp_path: Path) -> None:
    dagster_cli: click.Group = create_dagster_cli()  # type: ignore[no-untyped-call] # Dagster gives it no types
    done = CliRunner().invoke(dagster_cli, command.split()[1:], env={"DAGSTER_HOME": str(tmp_path)})
    assert done.exit_code == 0, done.output


def test_every_other_command_is_run_by_another_test() -> None:
    others = {one for one in shown() if one.split()[0] != PROGRAM} - set(DAGSTERS)
    assert others == ELSEWHERE.keys()
    assert all((ROOT / file).exists() for file in ELSEWHERE.values())


def test_no_command_needs_a_shell() -> None:
    assert [one for one in OURS if set(one) & set("|;&<>$`")] == []
