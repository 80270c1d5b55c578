"""A program that follows the tutorial in its working directory, and finds only the packages that the page installs.

The tests start it in an empty folder. What the page leaves running in other terminals ends with the program.
"""

import os
import re
import runpy
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT, SIGKILL

from resources.machines.processes import dying_with_parent
from tests.brokers.ports import free_ports
from tests.core_program import hide_other_packages
from tests.docs.pages import ROOT
from tests.docs.stories import penstock, run, steps

PAGE = "docs/tutorial.md"
PORTS = ("9092", "9464", "3000")
"""The ports that the page names."""

_EXPORTED = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Runs the commands of the page.

    Args:
        running: the programs that run until they are interrupted.
        ports: a free port for each port that the page names.
        exported: the variables that the page exports are added to it.
    """

    running: ExitStack
    ports: dict[str, int]
    exported: MutableMapping[str, str]

    def execute(self, command: str) -> str:
        """Run a command, and return what it prints."""
        for on_page, port in self.ports.items():
            command = re.sub(rf"\b{on_page}\b", str(port), command)
        match command.split()[:2]:
            case ["mkdir", name]:
                Path(name).mkdir()
            case ["export", *_]:
                self.exported.update(_EXPORTED.findall(command.replace("$PWD", str(Path.cwd()))))
            case ["penstock", "broker"]:
                return self.begin(command.replace("penstock", "pipelines", 1))
            case ["penstock", "metrics"] if "--serve" in command:
                return self.begin(command.replace("penstock", "pipelines", 1))
            case ["penstock", _]:
                return penstock(command)
            case ["dagster", "dev"]:
                self.begin(f"{command} -p {self.ports['3000']}", waits_for_output=False)
            case _:
                raise ValueError(f"the page has a command that no test runs: {command}")
        return ""

    def begin(self, command: str, *, waits_for_output: bool = True) -> str:
        """Start a program that runs until it is interrupted. Its first line says that it is ready."""
        process = self.running.enter_context(_program(command, self.exported))
        if not waits_for_output:
            return ""
        assert process.stdout is not None
        return process.stdout.readline()


@contextmanager
def _program(command: str, exported: MutableMapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    with (
        Path("errors.log").open("ab") as log,
        subprocess.Popen(
            [sys.executable, "-m", *command.split()],
            env={**os.environ, **exported},
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


@contextmanager
def terminal(exported: MutableMapping[str, str]) -> Iterator[Terminal]:
    """A terminal in the working directory."""
    with ExitStack() as running:
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        yield Terminal(running=running, ports=ports, exported=exported)


def installed_extras() -> frozenset[str]:
    """The extras that the page installs."""
    (names,) = re.findall(r"pip install 'penstock-etl\[(.*)\]'", (ROOT / PAGE).read_text(encoding="utf-8"))
    return frozenset(names.split(","))


def tick_and_run() -> None:
    """Let the sensor that the page names look for topics, as the daemon does, and execute the run that it requests."""
    import dagster as dg  # noqa: PLC0415 - after other packages are hidden

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


def follow(shell: Terminal) -> None:
    """Follow the page from top to bottom. What Dagster's daemon does happens in this process."""
    for step in steps(PAGE):
        if "dagster dev" in step.block.text:
            tick_and_run()
        else:
            run(step, shell.execute)
    targets = re.search(r'targets: \["(.*)"\]', Path("prometheus.yml").read_text(encoding="utf-8"))
    assert targets is not None
    address = f"http://{targets[1]}/metrics".replace("9464", str(shell.ports["9464"]))
    with urllib.request.urlopen(address) as answer:
        assert b'penstock_topic_up{cluster="main",topic="orders"} 1.0' in answer.read()


if __name__ == "__main__":
    hide_other_packages(installed_extras())
    with terminal(os.environ) as opened:
        follow(opened)
