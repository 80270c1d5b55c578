"""Where fetch tasks run: in this process, or in Spark. Only facts come back.

The tasks are the only DataFrame of a load. If all slices fit into one Spark task, they are fetched in the process that
planned them: there is nothing to distribute, and to start a JVM and its workers takes longer than to fetch them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kafka_io.model import OffsetRange
from kafka_io.reader.kept_readers import KeptReaders
from kafka_io.reader.source import warm
from pipelines.fetch.fetch import FACTS_SCHEMA, TASK_SCHEMA, fetch_slices, fetch_through
from pipelines.fetch.fetch_task import FetchTask, decode_facts, to_json, with_shared_rate
from pipelines.ledger.slice_facts import SliceFacts
from resources.machines.spark_job import SparkJob, cores_of
from resources.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Slices = tuple[OffsetRange, ...]


class Runner(Protocol):
    """Runs the fetch tasks of a run. Several topics can use it at once."""

    @property
    def cores(self) -> int:
        """The number of tasks that run at once; 0 if that is not known."""

    def fetch(
        self, tasks: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]] = ()
    ) -> list[SliceFacts]:
        """The facts of each slice of a step, in order of partition and offset; `tasks` is not empty.

        `ahead` has the tasks of the steps that probably come next. They can be begun as far as cores are free.

        Raises:
            SparkFailed: the tasks could not be run.
        """

    def abandon(self, topic: str) -> None:
        """End what was begun for steps of the topic that will not come. Its files belong to no commit."""

    def keeping_readers(self) -> AbstractContextManager[None]:
        """While the `with` block runs, fetches in this process use each other's connections."""


@dataclass(slots=True)
class FetchRunner:
    """Runs fetch tasks where they cost least: in this process, or in Spark. Several topics can use it at once.

    In Spark each step of a load is a job. The jobs of the next steps begin before the step is complete, so that all
    cores work while its last slices are fetched. Spark gives free cores to the job that began first.

    Args:
        spark: gives the session; called only for work that needs Spark. None if all work is done in this process.

    Attributes:
        cores: the number of tasks that Spark can run at once; 0 if that is not known, or Spark has not started.
    """

    spark: Callable[[], "SparkSession"] | None
    _jobs: dict[str, dict[Slices, "_StepJob"]] = field(default_factory=dict)
    cores: int = field(default=0, init=False)
    _readers: KeptReaders | None = field(default=None, init=False)

    @contextmanager
    def keeping_readers(self) -> Iterator[None]:
        """While the `with` block runs, the fetches in this process use each other's connections."""
        with KeptReaders() as readers:
            self._readers = readers
            try:
                yield
            finally:
                self._readers = None

    def fetch(
        self, tasks: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]] = ()
    ) -> list[SliceFacts]:
        """Run the tasks. The facts of a failed slice contain its failure."""
        for generation in {task.source.generation for task in tasks}:
            warm(generation)  # once per machine: local workers then load the compiled kernels from the cache
        if self.spark and _needs_spark(tasks):
            facts = self._in_spark(self.spark(), tasks, on_progress, ahead)
        else:
            facts = fetch_here(tasks, on_progress, readers=self._readers)
        return sorted(facts, key=lambda slice_facts: slice_facts.offsets)

    def abandon(self, topic: str) -> None:
        """Cancel the jobs of steps that will not come. The files of their slices belong to no commit."""
        for begun in self._jobs.pop(topic, {}).values():
            begun.job.cancel()

    def _in_spark(
        self,
        session: "SparkSession",
        tasks: Sequence[FetchTask],
        on_progress: Progress,
        ahead: Sequence[Sequence[FetchTask]],
    ) -> list[SliceFacts]:
        jobs = self._jobs.setdefault(tasks[0].planned.topic, {})
        self.cores = cores_of(session) or 0
        later = list(filter(_needs_spark, ahead))
        job = newest = _begun(session, jobs, tasks, at_once=1 + len(later))
        for next_tasks in later:
            newest = _begun(session, jobs, next_tasks, after=newest, at_once=1 + len(later))
        del jobs[_slices(tasks)]
        return [decode_facts(row["facts"]) for row in job.wait(on_progress)]


@dataclass(frozen=True, slots=True)
class _StepJob:
    """A Spark job, and what distinguishes its tasks from others for the same slices."""

    tasks: Sequence[FetchTask]
    job: SparkJob


def _begun(
    session: "SparkSession",
    jobs: dict[Slices, _StepJob],
    tasks: Sequence[FetchTask],
    *,
    after: SparkJob | None = None,
    at_once: int,
) -> SparkJob:
    """The job of these tasks, which is begun unless it has begun already. `at_once` such jobs run at the same time.

    A job for the same slices is cancelled if it reads or decodes them in another way: from other brokers, for example,
    or with the columns of before.
    """
    slices, compared = _slices(tasks), [replace(task, spark_task=0, folder="", loaded_at_us=0) for task in tasks]
    begun = jobs.get(slices)
    if begun and begun.tasks == compared:
        return begun.job
    if begun:
        begun.job.cancel()
    job = _spark_job(session, tasks, after, at_once)
    jobs[slices] = _StepJob(compared, job)
    return job


def _slices(tasks: Sequence[FetchTask]) -> Slices:
    return tuple(task.offsets for task in tasks)


def _needs_spark(tasks: Sequence[FetchTask]) -> bool:
    """Whether the tasks are distributed: slices that share one task have nothing to distribute."""
    return len({task.spark_task for task in tasks}) > 1


def fetch_here(
    tasks: Sequence[FetchTask], on_progress: Progress, _ahead: object = (), *, readers: KeptReaders | None = None
) -> list[SliceFacts]:
    """The facts of each slice, fetched one after the other in this process; `readers` are shared with other fetches."""
    batches = (pa.RecordBatch.from_pydict({"fetch_task": [to_json(task)]}) for task in tasks)
    facts: list[SliceFacts] = []
    for batch in fetch_through(readers, batches) if readers else fetch_slices(batches):
        facts += map(decode_facts, batch.column("facts").to_pylist())
        on_progress(len(facts), len(tasks))
    return facts


def _spark_job(session: "SparkSession", tasks: Sequence[FetchTask], after: SparkJob | None, at_once: int) -> SparkJob:
    count = 1 + max(task.spark_task for task in tasks)
    tasks = with_shared_rate(tasks, lambda: min(count * at_once, cores_of(session) or count * at_once))
    rows = {"spark_task": [task.spark_task for task in tasks], "fetch_task": [to_json(task) for task in tasks]}
    # Spark would send a list of rows through Python workers of its own; an Arrow table needs none.
    frame = session.createDataFrame(pa.table(rows, schema=TASK_SCHEMA))
    # Repartition by id, not by hash or range: exactly one Spark task per group, and no job to sample keys
    # (decision D04).
    facts = frame.repartitionById(count, "spark_task").mapInArrow(fetch_slices, FACTS_SCHEMA)
    return SparkJob(session, facts, after=after)
