"""The tutorial works from top to bottom in an empty folder, and every command prints what the page shows."""

import os
import re
import runpy
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT, SIGKILL

import dagster as dg
import pytest
from deltalake import DeltaTable

from resources.processes import dying_with_parent
from resources.settings import PATH_VARIABLE
from tests.brokers.ports import free_ports
from tests.docs.stories import check_shown, penstock, run, steps
from tests.ui.waiting import until

PAGE = "docs/tutorial.md"
_EXPORTED = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Runs the commands of the page. What the page leaves running in other terminals ends with the test.

    Args:
        running: the programs that run.
        ports: a free port for each port that the page names.
        exported: sets the variables that the page exports.
    """

    running: ExitStack
    ports: dict[str, int]
    exported: pytest.MonkeyPatch

    def execute(self, command: str) -> str:
        """Run a command, and return what it prints."""
        for on_page, port in self.ports.items():
            command = re.sub(rf"\b{on_page}\b", str(port), command)
        match command.split()[:2]:
            case ["mkdir", name]:
                Path(name).mkdir()
            case ["export", *_]:
                for name, value in _EXPORTED.findall(command.replace("$PWD", str(Path.cwd()))):
                    self.exported.setenv(name, value)
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
        process = self.running.enter_context(_program(command))
        if not waits_for_output:
            return ""
        assert process.stdout is not None
        return process.stdout.readline()


@contextmanager
def _program(command: str) -> Iterator[subprocess.Popen[str]]:
    with (
        Path("errors.log").open("ab") as log,
        subprocess.Popen(
            [sys.executable, "-m", *command.split()],
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
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    ports = free_ports(3)
    with ExitStack() as running:
        yield Terminal(
            running=running, ports=dict(zip(("9092", "9464", "3000"), ports, strict=True)), exported=monkeypatch
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")
def test_the_tutorial_works_from_top_to_bottom(terminal: Terminal) -> None:
    """What Dagster's daemon does with the sensor happens in this process; the next test starts the daemon itself."""
    story = list(steps(PAGE))
    assert len({step.heading for step in story}) > 8
    for step in story:
        if "dagster dev" in step.block.text:
            tick_and_run()
        else:
            run(step, terminal.execute)
    targets = re.search(r'targets: \["(.*)"\]', Path("prometheus.yml").read_text())
    assert targets is not None
    address = f"http://{targets[1]}/metrics".replace("9464", str(terminal.ports["9464"]))
    with urllib.request.urlopen(address) as answer:
        assert b'penstock_topic_up{cluster="main",topic="orders"} 1.0' in answer.read()


def tick_and_run() -> None:
    """Let the sensor that the page names look for topics, as the daemon does, and execute the run that it requests."""
    with dg.DagsterInstance.get() as instance:
        for number in range(2):  # the first tick stores the topic; the definitions are then loaded again
            defs: dg.Definitions = runpy.run_module("pipelines.definitions")["defs"]
            with dg.build_sensor_context(instance=instance, definitions=defs) as context:
                tick = defs.resolve_sensor_def("new_topics__main").evaluate_tick(context)
            assert len(tick.run_requests or []) == number
        (request,) = tick.run_requests or []
        assert request.asset_selection == [dg.AssetKey(["lake", "main", "orders"])]
        job = defs.resolve_job_def("load__main__topics").get_subset(asset_selection=set(request.asset_selection))
        result = job.execute_in_process(instance=instance, run_config=request.run_config, tags=dict(request.tags))
        assert result.success


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_dagster_loads_the_topic_of_the_tutorial(terminal: Terminal) -> None:
    """Dagster's own programs start as the page says, find the topic, and load it."""
    for step in steps(PAGE):
        for command, _ in step.commands():
            if command.startswith("penstock history orders --limit"):
                until(lambda: DeltaTable("lake/main/orders").version() == 4, "Dagster loads the topic")
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
