"""Measures what very many slices need in the driver: `python -m tests.bench.many_slices` prints memory and CPU time.

Only the driver's work is done: plan, send the tasks to Spark as JSON, and commit the facts of workers. The workers are
replaced by a function that reports offsets without records, so nothing is fetched and no file is written. The figure is
how far the peak of the process grows above that of a load with few slices, which has imported everything.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch
from uuid import UUID

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from pipelines.fetch import slice_fetcher
from pipelines.fetch.fetch_task import FetchTask, to_json
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import SliceFacts
from resources.kafka import open_cluster
from resources.progress import Progress
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.bench.printed import PrintedResult
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.fakes.loaders import loader_of

SLICES, PARTITIONS, CORES = 100_000, 100, 1_000
MAX_MB = 150
_SLICE_RECORDS, _WARM_UP_SLICES = 10, 40
_OFFERED = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCost(PrintedResult):
    """How far the peak of the driver grows, and its CPU seconds, for this number of slices and steps."""

    slices: int
    steps: int
    grown_mb: float
    cpu_s: float


@dataclass(slots=True)
class SentTasks:
    """Stands in for Spark: holds the JSON of the tasks of a step and of the steps behind it, as a driver does."""

    slices: int = 0
    steps: int = 0
    sent: dict[int, list[str]] = field(default_factory=dict)

    def fetch(
        self, tasks: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]] = ()
    ) -> list[SliceFacts]:
        """The facts of slices whose offsets have no records."""
        self.slices += len(tasks)
        self.steps += 1
        self.sent = {number: list(map(to_json, step)) for number, step in enumerate((tasks, *ahead))}
        on_progress(len(tasks), len(tasks))
        return [
            SliceFacts(range=CommittedRange(offsets=task.offsets, loaded_at_us=task.loaded_at_us, gaps=gaps))
            for task in tasks
            for gaps in [{"control": task.offsets.size}]
        ]


@contextmanager
def _topic(folder: Path, slices: int, partitions: int) -> Iterator[Settings]:
    """The settings of a cluster whose topic has so many slices."""
    end = slices // partitions * _SLICE_RECORDS
    with FakeCluster(
        logs={number: Log(entries=[], end=end) for number in range(partitions)}, offered=_OFFERED, topic_id=UUID(int=7)
    ) as fake:
        bootstrap = ",".join(broker.address for broker in fake.bootstrap)
        yield Settings(
            lake=str(folder),
            clusters={"main": ClusterSettings(bootstrap=bootstrap)},
            caps=Caps(slice_records=_SLICE_RECORDS, driver_slices=1),
        )


def _load(settings: Settings) -> SentTasks:
    spark = SentTasks()
    with open_cluster(settings, "main") as cluster, patch.object(slice_fetcher, "read_sample", lambda *_: None):
        load = loader_of(settings, cluster, _no_spark, fetch=spark.fetch, cores=CORES).load("clicks")
    assert load.error is None, load.error
    return spark


def _no_spark() -> NoReturn:
    raise AssertionError("the tasks are counted only")


def measure(folder: Path, *, slices: int = SLICES, partitions: int = PARTITIONS) -> DriverCost:
    """Load a topic with few slices, then one with so many."""
    with _topic(folder / "few", _WARM_UP_SLICES, _WARM_UP_SLICES) as settings:
        _load(settings)
    with _topic(folder / "many", slices, partitions) as settings:
        before_mb, began = _peak_mb(), time.process_time()
        spark = _load(settings)
        spent = time.process_time() - began
    assert spark.slices == slices
    return DriverCost(slices=slices, steps=spark.steps, grown_mb=_peak_mb() - before_mb, cpu_s=spent)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(cost: DriverCost) -> str:
    """Markdown: one row."""
    return "\n".join(
        [
            "| slices | partitions | steps | the driver's peak grows by | CPU s |",
            "|---:|---:|---:|---:|---:|",
            f"| {cost.slices:,} | {PARTITIONS:,} | {cost.steps:,} | {cost.grown_mb:,.0f} MB | {cost.cpu_s:.1f} |",
        ]
    )


def main() -> None:
    """Measure in a process of its own, print, and end with an error if the bound does not hold."""
    if "--measure" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="penstock-slices-") as home:
            measure(Path(home)).write()
        return
    command = [sys.executable, "-m", "tests.bench.many_slices", "--measure"]
    cost = DriverCost.parse(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    sys.stdout.write(f"{report(cost)}\n")
    if cost.grown_mb > MAX_MB:
        sys.exit(f"the driver needs {cost.grown_mb:.0f} MB for {cost.slices:,} slices, allowed are {MAX_MB}")


if __name__ == "__main__":
    main()
