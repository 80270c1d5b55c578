"""Rounds: each loader in turn, so that a machine that slows down or speeds up does it to all of them."""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from resources.processes import dying_with_parent
from tests.bench.cases import PARTITIONS, Case, Job
from tests.bench.data import produce
from tests.bench.files import Content, WrongRows, check
from tests.bench.loaders import LOADERS, Loader
from tests.bench.measure import Usage
from tests.brokers.real import RealBroker

BROKER = "3.9.1"
_ROOT = Path(__file__).parent.parent.parent
_LONGEST_S = 1800
_LAST_WORDS = 2000
_TOPIC = {"compression.type": "producer", "retention.ms": "-1"}
Usages = Mapping[str, Sequence[Usage]]


class LoaderFailed(RuntimeError):
    """A loader ended with an error."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """A broker with topics, and a folder that each loader finds empty.

    `failures` are the errors of loaders, which do not keep the others from going on.
    """

    broker: RealBroker
    folder: Path
    jars: str
    say: Callable[[str], None]
    failures: list[str] = field(default_factory=list)
    _values_bytes: dict[str, int] = field(default_factory=dict)

    def run(self, case: Case, rounds: int) -> Usages:
        """What each loader of the case used in each round."""
        for needed in (case.like or case, case.warm_up):
            if needed and needed.topic not in self._values_bytes:
                self._fill(needed)
        usages: dict[str, list[Usage]] = defaultdict(list)
        for number in range(1, rounds + 1):
            for name in case.loaders:
                try:
                    usage = self._run(case, LOADERS[name])
                except (LoaderFailed, WrongRows) as error:
                    self.failures.append(f"{case.title}, {name}: {error}")
                    self.say(self.failures[-1])
                    continue
                self.say(
                    f"  {number}/{rounds}  {name:<38}{usage.wall_s:8.2f} s wall {usage.cpu_s:8.2f} s CPU"
                    f"{usage.peak_mb:8.0f} MB"
                )
                usages[name].append(usage)
        return usages

    def _fill(self, case: Case) -> None:
        self.say(f"{case.title}: producing {case.records:,} records")
        self.broker.create_topic(case.topic, PARTITIONS, _TOPIC)
        self._values_bytes[case.topic] = produce(case, self.broker.bootstrap, case.topic)

    def _run(self, case: Case, loader: Loader) -> Usage:
        with self._emptied() as home:
            job = Job(
                bootstrap=self.broker.bootstrap,
                topic=case.topic,
                records=case.records,
                folder=home / "loaded",
                warm_up=(case.warm_up or case).topic,
                jars=self.jars,
            )
            job.folder.mkdir()
            usage = _measured(loader, job, home)
            if loader.writes:
                check(job.folder, Content.expected(case.records, self._values_bytes[case.topic]))
            return usage

    @contextmanager
    def _emptied(self) -> Iterator[Path]:
        home = self.folder / "run"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        yield home
        shutil.rmtree(home)


def _measured(loader: Loader, job: Job, home: Path) -> Usage:
    child = [sys.executable, "-m", "tests.bench.child", loader.module, json.dumps(job.as_dict())]
    command = [sys.executable, "-m", "tests.bench.whole", *child] if loader.whole else child
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    if loader.new_cache:
        environment["NUMBA_CACHE_DIR"] = str(home / "kernels")
    log = home / "log"
    try:
        with log.open("wb") as errors:
            done = subprocess.run(
                command,
                cwd=_ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=_LONGEST_S,
                check=True,
                preexec_fn=dying_with_parent(),
            )
    except subprocess.SubprocessError as error:
        raise LoaderFailed(f"{log.read_text(errors='replace')[-_LAST_WORDS:]}\n{error}") from error
    return Usage.told(done.stdout)
