"""Measures processes for which little is new: `python -m tests.bench.cold_start` prints wall and CPU seconds.

A load by the command line is shown beside deltalake alone, which opens the same table, and a run of Dagster beside an
empty one. Each is a process of its own, so its imports count. CPU seconds are bounded: wall seconds depend on what else
the machine does. The fastest rounds are compared, and the processes of a round take turns.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_io.producer.opening import open_producer
from kafka_io.producer.publishing import publish_values
from resources.settings.settings import PATH_VARIABLE
from tests.bench.many_topics import CommandCost, embedded_broker, process_cost

ROUNDS = 5
RECORDS = 1_000
LOAD, DELTALAKE = "penstock load, nothing new", "deltalake alone, opens the table"
EMPTY_RUN, RUN, RUN_WITH_NEWS = "Dagster run, empty", "Dagster run, nothing new", "Dagster run, 1,000 new records"
MAX_OF_EMPTY: Mapping[str, float] = {LOAD: 0.85, RUN: 2.0, RUN_WITH_NEWS: 2.5}
"""The bounds: the CPU time by that of an empty run of Dagster, which imports Python modules too (fault F16)."""
_OPEN = "import sys; from deltalake import DeltaTable; DeltaTable(sys.argv[1]).version()"
_QUIET = '{"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}'
_EMPTY = f"""\
import dagster as dg

@dg.op
def nothing():
    pass

@dg.job
def empty():
    nothing()

with dg.DagsterInstance.get() as instance:
    assert empty.execute_in_process(instance=instance, run_config={_QUIET}).success
"""
_RUN = f"""\
import dagster as dg
from pipelines.definitions import defs

job = defs.resolve_job_def("load__main__topics")
with dg.DagsterInstance.get() as instance:
    assert job.execute_in_process(instance=instance, run_config={_QUIET}).success
"""
_ADD_TOPIC = """\
import dagster as dg
from pipelines.defs.catalog.known_topics import TopicStorage

with dg.DagsterInstance.get() as instance:
    TopicStorage(instance=instance, prefix="penstock", cluster="main").add(["clicks"])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """A lake with one table, and an instance of Dagster, in `folder`."""

    folder: Path
    bootstrap: str

    def commands(self) -> Mapping[str, Sequence[str]]:
        """The command of each process."""
        python, table = sys.executable, str(self.folder / "lake" / "main" / "clicks")
        return {
            LOAD: [python, "-m", "pipelines", "load", "clicks"],
            DELTALAKE: [python, "-c", _OPEN, table],
            EMPTY_RUN: [python, "-c", _EMPTY],
            RUN: [python, "-c", _RUN],
            RUN_WITH_NEWS: [python, "-c", _RUN],
        }

    def configure(self) -> None:
        """Write the settings files, and make the topic known to Dagster."""
        home, settings = self.folder / "dagster", self.folder / "penstock.toml"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        settings.write_text(f'lake = "{self.folder}/lake"\n[clusters.main]\nbootstrap = "{self.bootstrap}"\n')
        os.environ |= {"DAGSTER_HOME": str(home), PATH_VARIABLE: str(settings)}
        self.publish()
        process_cost([sys.executable, "-c", _ADD_TOPIC])

    def publish(self) -> None:
        """Publish records, which the next load finds."""
        with open_producer(bootstrap=self.bootstrap) as producer:
            publish_values((producer,), "clicks", [b"x" * 100] * RECORDS)

    def costs(self, rounds: int = ROUNDS) -> dict[str, CommandCost]:
        """The cost of each process in its fastest round, after one that is not counted: it loads the records."""
        measured: dict[str, list[CommandCost]] = {name: [] for name in self.commands()}
        for number in range(-1, rounds):
            for name, command in self.commands().items():
                if name == RUN_WITH_NEWS:
                    self.publish()
                cost = process_cost(command)
                measured[name] += [cost] if number >= 0 else []
        return {name: min(costs, key=lambda cost: cost.cpu_s) for name, costs in measured.items()}


def measure(rounds: int = ROUNDS) -> dict[str, CommandCost]:
    """The cost of each process."""
    with tempfile.TemporaryDirectory(prefix="penstock-cold-") as home, embedded_broker(Path(home) / "broker") as broker:
        start = ColdStart(folder=Path(home), bootstrap=broker)
        start.configure()
        return start.costs(rounds)


def report(costs: Mapping[str, CommandCost]) -> str:
    """A table of the costs."""
    rows = [f"| {name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} |" for name, cost in costs.items()]
    return "\n".join(["| process | wall s | CPU s |", "|---|---:|---:|", *rows])


def missed(costs: Mapping[str, CommandCost]) -> Iterator[str]:
    """A sentence for each bound that does not hold."""
    for name, allowed in MAX_OF_EMPTY.items():
        ratio = costs[name].cpu_s / costs[EMPTY_RUN].cpu_s
        if ratio > allowed:
            yield f"{name}: {ratio:.2f} of the CPU time of an empty run, allowed are {allowed}"


def main() -> None:
    """Measure, print, and end with an error if a bound does not hold."""
    costs = measure()
    sys.stdout.write(f"{report(costs)}\n")
    if problems := list(missed(costs)):
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
