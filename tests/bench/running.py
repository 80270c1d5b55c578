"""Runs rounds of all loaders, one after the other, so that a slow minute of the machine affects all of them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from resources.machines.processes import dying_with_parent
from tests.bench import limit
from tests.bench.cases import Case, Job
from tests.bench.comparison import Comparison
from tests.bench.data import produce
from tests.bench.event_times import EventTimeCost
from tests.bench.files import Content, WrongRows, check, check_typed
from tests.bench.last_messages import LastMessageCost
from tests.bench.loaders import LOADERS, Loader
from tests.bench.measure import Usage
from tests.bench.orders import FIELDS, schema_of
from tests.bench.printed import PrintedResult
from tests.bench.results import Round
from tests.brokers.real import RealBroker

BROKER = "3.9.1"
_ROOT = Path(__file__).parent.parent.parent
_TIMEOUT_S = 1800
_LOG_TAIL_CHARACTERS = 2000
PartT = TypeVar("PartT", bound=PrintedResult)
_TOPIC = {"compression.type": "producer", "retention.ms": "-1"}


class LoaderFailed(RuntimeError):
    """The process of a loader ended with an error, or did not end in time."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """A broker with the topics of the cases, and a registry with the schema of Avro values.

    Each loader starts with an empty folder in `folder`.

    `failures` collects the errors of loaders; the other loaders still run.
    """

    broker: RealBroker
    registry: EmbeddedSchemaRegistry
    folder: Path
    jars: str
    say: Callable[[str], None]
    failures: list[str] = field(default_factory=list)
    _values_bytes: dict[str, int] = field(default_factory=dict)

    def run(self, case: Case, rounds: int) -> list[Round]:
        """Run all loaders of the case `rounds` times."""
        for topic_owner in (case.like or case, case.warm_up):
            if topic_owner and topic_owner.topic not in self._values_bytes:
                self._fill(topic_owner)
        return [self._run_round(case, f"{number}/{rounds}") for number in range(1, rounds + 1)]

    def _run_round(self, case: Case, label: str) -> Round:
        usages: dict[str, Usage] = {}
        for name in case.loaders:
            with self._failures_of(case, name):
                usage = usages[name] = self._load(case, LOADERS[name])
                worker = f" (a worker: {usage.worker_mb:.0f} MB)" if usage.worker_mb else ""
                figures = f"{usage.wall_s:8.2f} s wall {usage.cpu_s:8.2f} s CPU{usage.peak_mb:8.0f} MB"
                self.say(f"  {label}  {name:<38}{figures}{worker}")
        comparison = None
        if case.compares_limit:
            with self._failures_of(case, limit.LIMIT):
                comparison = self._compare_with_limit(case)
                self.say(
                    f"  {label}  {'ours / limit':<38}{comparison.ratio:8.2f}"
                    f"        (timers inside ours: {comparison.inside_ratio:.2f})"
                )
        cost = times = None
        if case.compares_limit:
            with self._failures_of(case, "last messages"):
                cost = self._measure_part(case, "last_messages", LastMessageCost)
                self.say(f"  {label}  {'last messages / ours':<38}{cost.share:8.3f}")
            with self._failures_of(case, "event time"):
                times = self._measure_part(case, "event_times", EventTimeCost)
                self.say(f"  {label}  {'event time / ours':<38}{times.share:8.3f}")
        return Round(usages=usages, comparison=comparison, last_messages=cost, event_times=times)

    @contextmanager
    def _failures_of(self, case: Case, name: str) -> Iterator[None]:
        try:
            yield
        except (LoaderFailed, WrongRows) as error:
            self.failures.append(f"{case.title}, {name}: {error}")
            self.say(self.failures[-1])

    def _fill(self, case: Case) -> None:
        self.say(f"{case.title}: producing {case.records:,} records")
        if case.format == "avro":
            self.registry.register(f"{case.topic}-value", json.dumps(schema_of(FIELDS)))
        self.broker.create_topic(case.topic, case.partitions, _TOPIC)
        self._values_bytes[case.topic] = produce(case, self.broker.bootstrap, case.topic)

    def _load(self, case: Case, loader: Loader) -> Usage:
        with self._empty_home() as home:
            job = self._job(case, home)
            child = [sys.executable, "-m", "tests.bench.child", loader.module, json.dumps(job.as_dict())]
            command = [sys.executable, "-m", "tests.bench.whole_process", *child] if loader.whole_process else child
            usage = Usage.parse(_printed(command, home, new_cache=loader.new_cache))
            if loader.typed:
                check_typed(job.folder, case.records)
            elif loader.writes:
                self._check(case, job.folder)
            return usage

    def _compare_with_limit(self, case: Case) -> Comparison:
        with self._empty_home() as home:
            job = self._job(case, home)
            command = [sys.executable, "-m", "tests.bench.limit", json.dumps(job.as_dict())]
            comparison = Comparison.parse(_printed(command, home))
            for written_by in (limit.OURS, limit.LIMIT):
                self._check(case, job.folder / written_by)
            return comparison

    def _measure_part(self, case: Case, module: str, kind: type[PartT]) -> PartT:
        """The cost of a part of a load, as a module of this package measures it."""
        with self._empty_home() as home:
            job = self._job(case, home)
            command = [sys.executable, "-m", f"tests.bench.{module}", json.dumps(job.as_dict())]
            cost = kind.parse(_printed(command, home))
            self._check(case, job.folder)
            return cost

    def _job(self, case: Case, home: Path) -> Job:
        folder = home / "loaded"
        folder.mkdir()
        return Job(
            bootstrap=self.broker.bootstrap,
            topic=case.topic,
            records=case.records,
            folder=folder,
            warm_up=(case.warm_up or case).topic,
            jars=self.jars,
            registry=self.registry.url if case.format == "avro" else None,
        )

    def _check(self, case: Case, folder: Path) -> None:
        check(folder, Content.expected(case.records, self._values_bytes[case.topic], case.partitions))

    @contextmanager
    def _empty_home(self) -> Iterator[Path]:
        home = self.folder / "run"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        yield home
        shutil.rmtree(home)


def _printed(command: Sequence[str], home: Path, *, new_cache: bool = False) -> bytes:
    """The output of a command. With `new_cache` the command finds no compiled kernels.

    Raises:
        LoaderFailed: the command failed. The message has the end of its stderr.
    """
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    if new_cache:
        environment["NUMBA_CACHE_DIR"] = str(home / "kernels")
    log = home / "log"
    try:
        with log.open("wb") as errors:
            completed = subprocess.run(
                command,
                cwd=_ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=_TIMEOUT_S,
                check=True,
                preexec_fn=dying_with_parent(),
            )
    except subprocess.SubprocessError as error:
        raise LoaderFailed(f"{log.read_text(errors='replace')[-_LOG_TAIL_CHARACTERS:]}\n{error}") from error
    return completed.stdout
