"""Measures commands over very many topics: `python -m tests.bench.many_topics` prints wall and CPU seconds.

Each topic has one partition and a few records. The broker is an embedded one in a process of its own. Each command is a
process, as users start it, so its start counts too. The lake is a folder, and then an object store that answers each
request 40 ms late. CPU seconds of a folder are bounded by those of deltalake alone, which opens as many tables and
appends one file to each: a machine can be three times as slow as the day before. Requests are bounded too. Wall seconds
are not: they depend on what else the machine does.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from kafka_io.producer.opening import open_producer
from kafka_io.producer.publishing import publish_values
from tests.fakes.object_store import ObjectStore, object_store

TOPICS, QUICK_TOPICS = 1000, 100
DELAY_S = 0.04
RECORDS = 3
PEER_ROWS = pa.table({"offset": range(RECORDS), "value": [b"x" * 100] * RECORDS})
NEW, NOTHING_NEW, NEWS, VERIFY, STATUS = "first load", "load, nothing new", "load with news", "verify --all", "status"
FOLDER, STORE = "folder", "store, 40 ms"
PEER = "deltalake alone, one file each"
MAX_RATIOS: Mapping[tuple[str, str], float] = {
    (FOLDER, NOTHING_NEW): 1.6,
    (FOLDER, NEWS): 6,
    (FOLDER, VERIFY): 6.5,
    (FOLDER, STATUS): 2,
}
"""The bounds for CPU seconds, as ratios to those of PEER in the same run. For fewer topics the ratios are lower."""
MAX_REQUESTS: Mapping[tuple[str, str], int] = {
    (STORE, NEW): 15,
    (STORE, NOTHING_NEW): 6,
    (STORE, NEWS): 12,
    (STORE, VERIFY): 15,
    (STORE, STATUS): 8,
}
"""The bounds for the requests to the store, for each topic."""
_START_REQUESTS = 100
"""A command may send so many more: the first load probes the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCost:
    """What a command needed: `requests` are those to the store; None for a folder."""

    wall_s: float
    cpu_s: float
    requests: int | None = None


def process_cost(command: Sequence[str]) -> CommandCost:
    """The cost of a process, which must succeed."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return CommandCost(wall_s=time.monotonic() - began, cpu_s=usage.ru_utime + usage.ru_stime)


@contextmanager
def embedded_broker(folder: Path) -> Iterator[str]:
    """The address of an embedded broker in a process of its own."""
    command = [sys.executable, "-m", "pipelines", "broker", "--broker-id", "0", "--port", "0", "--data-dir"]
    command += [str(folder), "--generation", "modern"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield next(word for word in line.split() if word.startswith("127.0.0.1:")).rstrip(".,;")
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsBench:
    """A broker with topics, and the settings file of a lake."""

    folder: Path
    bootstrap: str
    count: int
    store: ObjectStore | None = None

    @property
    def _settings(self) -> Path:
        return self.folder / f"{'store' if self.store else 'folder'}.toml"

    def configure(self) -> None:
        """Write the settings file."""
        lake = self.store.root if self.store else str(self.folder / "lake")
        options = self.store.options if self.store else {}
        lines = [f'lake = "{lake}"', "[lake_options]", *(f'{name} = "{value}"' for name, value in options.items())]
        lines += ["[clusters.main]", f'bootstrap = "{self.bootstrap}"']
        self._settings.write_text("\n".join(lines))

    def publish(self) -> None:
        """Publish records to each topic."""
        with open_producer(bootstrap=self.bootstrap) as producer:
            for number in range(self.count):
                publish_values((producer,), f"topic-{number:04}", [b"x" * 100] * RECORDS)

    def run(self, *arguments: str) -> CommandCost:
        """Run a command, which must succeed."""
        before = len(self.store.requests) if self.store else 0
        command = [sys.executable, "-m", "pipelines", "--settings", str(self._settings), *arguments, "--json"]
        cost = process_cost(command)
        return replace(cost, requests=len(self.store.requests) - before) if self.store else cost

    def costs(self) -> dict[str, CommandCost]:
        """The cost of each command; the topics get records before the first and the second load that finds some."""
        self.configure()
        self.publish()
        costs = {NEW: self.run("load", "--all"), NOTHING_NEW: self.run("load", "--all")}
        self.publish()
        costs[NEWS] = self.run("load", "--all")
        costs |= {VERIFY: self.run("verify", "--all"), STATUS: self.run("status")}
        return costs if self.store else {**costs, PEER: self._peer_cost()}

    def _peer_cost(self) -> CommandCost:
        """The cost of a process in which deltalake appends a file to a table of each topic."""
        root = self.folder / "peer"
        for number in range(self.count):
            write_deltalake(str(root / str(number)), PEER_ROWS)
        return process_cost([sys.executable, "-m", "tests.bench.many_topics", PEER, str(root)])


def append_alone(root: Path) -> None:
    """Append a file to each table of the folder with deltalake."""
    for folder in sorted(root.iterdir()):
        write_deltalake(DeltaTable(str(folder)), PEER_ROWS, mode="append")


def measure(count: int, places: Sequence[str] = (FOLDER, STORE)) -> dict[tuple[str, str], CommandCost]:
    """The cost of each command for this number of topics, by place of the lake and command."""
    costs: dict[tuple[str, str], CommandCost] = {}
    for place in places:
        with ExitStack() as running:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="penstock-topics-")))
            store = running.enter_context(object_store()) if place == STORE else None
            if store:
                store.slow_down(DELAY_S)
            bootstrap = running.enter_context(embedded_broker(folder / "broker"))
            bench = TopicsBench(folder=folder, bootstrap=bootstrap, count=count, store=store)
            costs |= {(place, command): cost for command, cost in bench.costs().items()}
    return costs


def report(count: int, costs: Mapping[tuple[str, str], CommandCost]) -> str:
    """A table of the costs."""
    lines = [f"| {count:,} topics | lake | wall s | CPU s | store requests |", "|---|---|---:|---:|---:|"]
    for (place, command), cost in costs.items():
        requests = "" if cost.requests is None else f"{cost.requests:,}"
        lines.append(f"| {command} | {place} | {cost.wall_s:.1f} | {cost.cpu_s:.1f} | {requests} |")
    return "\n".join(lines)


def missed(count: int, costs: Mapping[tuple[str, str], CommandCost]) -> Iterator[str]:
    """A sentence for each bound that does not hold. `count` is the number of topics."""
    for case, bound in MAX_RATIOS.items():
        ratio = costs[case].cpu_s / costs[FOLDER, PEER].cpu_s if case in costs else 0
        if ratio > bound:
            yield f"{case[1]} ({case[0]}): {ratio:.2f} times the CPU seconds of {PEER}; allowed are {bound}"
    for case, of_topic in MAX_REQUESTS.items():
        requests, most = costs[case].requests if case in costs else 0, of_topic * count + _START_REQUESTS
        if requests and requests > most:
            yield f"{case[1]} ({case[0]}): {requests:,} requests, allowed are {most:,}"


def main() -> None:
    """Measure, print, and end with an error if a bound does not hold."""
    if PEER in sys.argv[1:]:
        append_alone(Path(sys.argv[-1]))
        return
    count = QUICK_TOPICS if "--quick" in sys.argv[1:] else TOPICS
    costs = measure(count)
    sys.stdout.write(f"{report(count, costs)}\n")
    if problems := list(missed(count, costs)):
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
