"""The tutorial works from top to bottom in an empty folder, and every command prints what the page shows."""

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT, SIGKILL

import pytest
from deltalake import DeltaTable

from resources.processes import dying_with_parent
from resources.settings import PATH_VARIABLE
from tests.brokers.ports import free_ports
from tests.docs.stories import check_shown, penstock, run, steps
from tests.ui.waiting import until

PAGE = "docs/tutorial.md"
DAGSTER = "How do I let Dagster load the topic?"
_EXPORTED = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Runs the commands of the page. What the page leaves running in other terminals ends with the test.

    Args:
        ports: a free port for each port that the page names.
        environment: what the page exports.
    """

    running: ExitStack
    ports: dict[str, int]
    environment: dict[str, str] = field(default_factory=dict)

    def execute(self, command: str) -> str:
        """Run a command, and return what it prints."""
        for on_page, port in self.ports.items():
            command = re.sub(rf"\b{on_page}\b", str(port), command)
        match command.split()[:2]:
            case ["mkdir", name]:
                Path(name).mkdir()
            case ["export", *_]:
                exported = _EXPORTED.findall(command.replace("$PWD", str(Path.cwd())))
                self.environment.update(exported)
            case ["penstock", "broker"]:
                return self.begin(command.replace("penstock", "pipelines", 1))
            case ["penstock", "metrics"] if "--serve" in command:
                return self.begin(command.replace("penstock", "pipelines", 1))
            case ["penstock", _]:
                return penstock(command)
            case ["dagster", "dev"]:
                self.begin(f"{command} -p {self.ports['3000']}", waits_for_output=False)
            case _:
                pytest.fail(f"the page has a command that no test runs: {command}")
        return ""

    def begin(self, command: str, *, waits_for_output: bool = True) -> str:
        """Start a program that runs until it is interrupted. Its first line says that it is ready."""
        process = self.running.enter_context(_program(command, self.environment))
        if not waits_for_output:
            return ""
        assert process.stdout is not None
        return process.stdout.readline()


@contextmanager
def _program(command: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with (
        Path("errors.log").open("ab") as log,
        subprocess.Popen(
            [sys.executable, "-m", *command.split()],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log if command.startswith("dagster") else subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
        ) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
            with suppress(ProcessLookupError):  # Dagster's code servers end later than the program that started them
                os.killpg(process.pid, SIGKILL)


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    ports = free_ports(3)
    with ExitStack() as running:
        yield Terminal(running=running, ports=dict(zip(("9092", "9464", "3000"), ports, strict=True)))


def test_the_tutorial_works_from_top_to_bottom(terminal: Terminal) -> None:
    """The part about Dagster is the last one, and has a test of its own."""
    story = list(steps(PAGE))
    headings = list(dict.fromkeys(step.heading for step in story))
    assert headings[-1] == DAGSTER
    assert len(headings) > 8
    for step in story:
        if step.heading != DAGSTER:
            run(step, terminal.execute)
    targets = re.search(r'targets: \["(.*)"\]', Path("prometheus.yml").read_text())
    assert targets is not None
    address = f"http://{targets[1]}/metrics".replace("9464", str(terminal.ports["9464"]))
    with urllib.request.urlopen(address) as answer:
        assert b'penstock_table_rows{cluster="main",topic="orders"} 4.0' in answer.read()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_dagster_loads_the_topic_of_the_tutorial(terminal: Terminal) -> None:
    """Dagster's own programs start as the page says, find the topic, and load it."""
    for step in steps(PAGE):
        for command, _ in step.commands():
            if command.startswith("penstock history orders --limit"):
                until(lambda: DeltaTable("lake/main/orders").version() == 4, "Dagster loads the topic", timeout_s=600)
        run(step, terminal.execute)


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("orders 3 rows\n", "orders  3  rows\n"),
        ("at 2026-11-26 12:39:27\n", "at 2026-11-27 01:00:00\n"),
        ("...\nend\n", "one\ntwo\nend\n"),
        ("run 51d1ec74 took 2 s\n", "run 6bbe8d9a took 1 m 13 s\n"),
        ("227 bytes\n", "230 bytes\n"),
    ],
)
def test_what_differs_between_runs_may_differ_from_the_page(shown: str, output: str) -> None:
    check_shown("penstock", shown, output)


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("orders 3 rows\n", "orders 4 rows\n"),
        ("orders\n", "orders\nviews\n"),
        ("orders\nviews\n", "orders\n"),
        ("begin\n...\nend\n", "begin\ntwo\n"),
        ("orders\n", ""),
    ],
)
def test_another_output_than_the_page_shows_is_an_error(shown: str, output: str) -> None:
    with pytest.raises(AssertionError, match="but the page shows"):
        check_shown("penstock", shown, output)
