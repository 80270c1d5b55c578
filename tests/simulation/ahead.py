"""Simulated Spark: a run's steps are jobs, and those of the next steps begin before the step in front is committed."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import Mock, patch

from pipelines.fetch import fetch_runner as execute
from pipelines.fetch.fetch_runner import FetchRunner
from pipelines.fetch.fetch_task import FetchTask, to_json
from pipelines.fetch.slice_fetcher import microseconds
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load import planned
from resources.progress import Progress
from tests.simulation.workers import SimWorkers

_STEP_SLICES = 2


@dataclass(slots=True, kw_only=True)
class SimJob:
    """A job that fetches when it begins, or not until somebody waits for it."""

    workers: SimWorkers
    tasks: Sequence[FetchTask]
    on_progress: Progress = lambda _done, _total: None
    facts: list[SliceFacts] | None = None

    def run(self) -> None:
        """Fetch the slices."""
        self.facts = self.workers.fetch(self.tasks, self.on_progress)

    def wait(self, on_progress: Progress) -> list[dict[str, str]]:
        """See SparkJob."""
        if self.facts is None:
            self.on_progress = on_progress
            self.run()
        return [{"facts": to_json(facts)} for facts in self.facts or ()]

    def cancel(self) -> None:
        """Do nothing: what was fetched stays, and no commit names it."""


@dataclass(slots=True, kw_only=True)
class SimSpark:
    """Runs the steps of loads as jobs, through the FetchRunner of the product."""

    workers: SimWorkers
    rng: random.Random
    begun_ahead: int = 0

    @staticmethod
    def runner() -> FetchRunner:
        """The runner of one run; it gets no session, because `begin` needs none."""
        return FetchRunner(Mock())

    def begin(self, _session: object, tasks: Sequence[FetchTask], after: Any, _at_once: int) -> SimJob:
        """Begin a job. A job behind another one may find free cores at once, or later.

        The oracle tells the reads of commits apart by their loading times, so each job gets its own.
        """
        if after is not None:
            loaded_at_us = microseconds(self.workers.scheduler.now())
            tasks = [replace(task, loaded_at_us=loaded_at_us) for task in tasks]
        job = SimJob(workers=self.workers, tasks=tasks)
        if after is not None and self.rng.random() < 0.7:
            self.begun_ahead += 1
            job.run()
        return job

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the loads of this block have steps of two slices, which are jobs."""
        with ExitStack() as patches:
            for owner, name, value in (
                (planned, "_STEP_SLICES", _STEP_SLICES),
                (execute, "_spark_job", self.begin),
                (execute, "_needs_spark", bool),
                (execute, "cores_of", lambda _: None),
                (execute, "warm", lambda _: None),
            ):
                patches.enter_context(patch.object(owner, name, value))
            yield
