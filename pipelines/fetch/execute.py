"""Fetch slices: how large they are, which of them share a Spark task, and where the tasks run. Only facts come back.

The tasks are the only DataFrame of a load. If all slices fit into one Spark task, they are fetched in the process that
planned them: there is nothing to distribute, and to start a JVM and its workers takes longer than to fetch them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import OffsetRange, TopicEntry
from kafka_io.reader.kept_readers import KeptReaders
from kafka_io.reader.reader import PlannedRange
from kafka_io.reader.source import warm
from kafka_io.values.json.inference import MAX_BYTES, MAX_VALUES
from pipelines.fetch.decode_plan import DecodePlan
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.fetch import FACTS_SCHEMA, TASK_SCHEMA, fetch_slices, fetch_through
from pipelines.fetch.fetch_task import FetchTask, decode_facts, to_json, with_shared_rate
from pipelines.identity.holes import with_causes
from pipelines.identity.truncation import check_incarnation
from pipelines.layout.layout import LOADED, RAW
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_times import EventTimeColumn
from pipelines.ledger.work import SliceFacts
from pipelines.plan.bytes_per_offset import committed_bytes_per_offset, read_sample, sizes_by_bytes
from pipelines.plan.plan import PlannedStep
from pipelines.plan.slices import SliceSizes, group_slices
from resources.machines.spark_job import SparkJob, cores_of
from resources.progress import Progress, no_progress
from resources.settings.settings import Caps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAX_SAMPLES = 8
FetchSlices = Callable[[Sequence[FetchTask], Progress, Sequence[Sequence[FetchTask]]], list[SliceFacts]]
"""Fetches the slices of a step; returns the facts of each, in order of partition and offset.

The last argument has the tasks of the steps that probably come next. They can be begun as far as cores are free.
"""


Slices = tuple[OffsetRange, ...]


@dataclass(frozen=True, kw_only=True)
class SliceFetcher:
    """Fetches slices of the topics of one cluster.

    Args:
        cluster: where the topics are.
        fetch: fetches slices; it is called only if there is something to fetch. See FetchSlices.
        caps: the limits for slices and runs.
        options: what the lake's store needs.
        parquet_codec: the compression of new files.
    """

    cluster: Cluster
    fetch: FetchSlices
    caps: Caps
    options: Mapping[str, str] = field(default_factory=dict)
    parquet_codec: str = "zstd"

    def slice_sizes(self, topic: TopicEntry, wanted: Sequence[OffsetRange], entry: LedgerEntry | None) -> SliceSizes:
        """The sizes of slices for the wanted ranges; `entry` is the newest of the table.

        In 0.7 offsets are bytes, so all slices have the same size. From 0.8 on the sizes of records are estimated.
        """
        if all(offsets.partition.broker is not None for offsets in wanted):
            return SliceSizes(slice=self.caps.slice_bytes, driver=self.caps.driver_slices)

        def sample(offsets: OffsetRange) -> float | None:
            return read_sample(self.cluster.source(offsets.partition), planned_range(topic, offsets))

        return sizes_by_bytes(self.caps, wanted, committed_bytes_per_offset(entry), sample)

    def fetch_slices(
        self,
        topic: TopicEntry,
        table_uri: str,
        slices: Sequence[OffsetRange],
        began: datetime,
        on_progress: Progress,
        *,
        sizes: SliceSizes,
        below: str = "",
        skip: tuple[str, ...] = (),
        to_message: Collection[OffsetRange] = (),
        decode: DecodePlan | None = None,
        partition_by: str = LOADED,
        times: EventTimeColumn | None = None,
        ahead: Sequence[PlannedStep] = (),
    ) -> list[SliceFacts]:
        """The facts of `slices`, fetched into the table's folders, or into folders below the path `below` in it.

        Empty slices need no fetch. `skip` are the choices by which records that cannot be read are skipped. Slices in
        `to_message` end after a message (see Plan). `decode` is the plan for values of a typed table, and
        `partition_by` says what its folders are. `times` says where event times are. `ahead` are the steps that
        probably come next.

        Raises:
            TopicRecreated: the topic may have been recreated meanwhile.
            KafkaIOError: there are holes, and the topic's cleanup.policy cannot be read now.
        """
        loaded_at_us = microseconds(began)
        facts = [SliceFacts(offsets=offsets, loaded_at_us=loaded_at_us) for offsets in slices if not offsets.size]
        layout = decode.layout if decode else RAW.partitioned_by(partition_by)
        has_day_files = layout.is_by_day and not below  # staged rows get their days in the commit
        task = partial(
            FetchTask,
            table_uri=table_uri,
            folder="" if has_day_files else f"{below}{layout.folder(began.date())}",
            options=self.options,
            parquet_codec=self.parquet_codec,
            loaded_at_us=loaded_at_us,
            skip=skip,
            decode=decode,
            partition_by=partition_by,
            times=times,
        )
        if tasks := list(self._tasks(task, topic, slices, sizes, to_message)):
            next_tasks = [
                list(self._tasks(task, topic, step.plan.slices, step.sizes, step.plan.to_message)) for step in ahead
            ]
            facts += self.fetch(tasks, on_progress, next_tasks)
        if facts:
            read = {slice_facts.offsets.partition for slice_facts in facts if not slice_facts.failure}
            check_incarnation(self.cluster, topic, read)
        return with_causes(self.cluster, topic.name, facts)

    def _tasks(
        self,
        task: Callable[..., FetchTask],
        topic: TopicEntry,
        slices: Sequence[OffsetRange],
        sizes: SliceSizes,
        to_message: Collection[OffsetRange],
    ) -> Iterator[FetchTask]:
        """The fetch tasks of the slices; `task` completes each of them."""
        groups = group_slices([offsets for offsets in slices if offsets.size], sizes)
        for number, group in enumerate(groups):
            for offsets in group:
                planned = replace(planned_range(topic, offsets), to_message=offsets in to_message)
                yield task(spark_task=number, source=self.cluster.source(offsets.partition), planned=planned)

    def fetch_decoded(
        self, topic: TopicEntry, table_uri: str, slices: Sequence[OffsetRange], decoding: Decoding, **options: Any
    ) -> list[SliceFacts]:
        """The facts of `slices`, decoded as planned; see `fetch_slices` for the options.

        A slice with unknown schemas is fetched again after the registry was asked for them. A slice with fields without
        columns is fetched again after the plan got columns for them.
        """
        options |= {"partition_by": decoding.partition_by, "times": decoding.event_times}
        if decoding.needs_sample and (sample := sample_of(slices)):
            unseen = {**options, "on_progress": no_progress, "to_message": sample, "ahead": ()}
            facts = self.fetch_slices(topic, table_uri, sample, decode=decoding.plan, **unseen)
            decoding.learn_from(facts)
        facts = self.fetch_slices(topic, table_uri, slices, decode=decoding.plan, **options)
        decoding.keep_columns(facts)
        while undecoded := [slice_facts for slice_facts in facts if slice_facts.is_undecoded]:
            decoding.learn_from(undecoded)
            facts = [slice_facts for slice_facts in facts if not slice_facts.is_undecoded]
            ranges = [slice_facts.offsets for slice_facts in undecoded]
            facts += self.fetch_slices(topic, table_uri, ranges, decode=decoding.plan, **{**options, "ahead": ()})
            decoding.keep_columns(facts)
        return sorted(facts, key=lambda slice_facts: slice_facts.offsets)


def sample_of(slices: Sequence[OffsetRange]) -> Sequence[OffsetRange]:
    """The beginnings of some slices, if slices are so large that reading them twice would cost more than a sample."""
    large = [offsets for offsets in slices if offsets.size > _sample_size(offsets)]
    chosen = large[:: max(1, -(-len(large) // _MAX_SAMPLES))]
    return [replace(offsets, stop=offsets.start + _sample_size(offsets)) for offsets in chosen]


def _sample_size(offsets: OffsetRange) -> int:
    """The offsets of a sample: bytes in 0.7."""
    return MAX_VALUES if offsets.partition.broker is None else MAX_BYTES


def planned_range(topic: TopicEntry, offsets: OffsetRange) -> PlannedRange:
    """The offsets of the topic in its present incarnation."""
    return PlannedRange(topic=topic.name, offsets=offsets, incarnation=topic.incarnation)


def microseconds(time: datetime) -> int:
    """The time in microseconds since 1970, as the tables store it."""
    return int(time.timestamp() * 1_000_000)


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
        """The facts of each slice, in order of partition and offset. The facts of a failed slice contain its failure.

        Raises:
            SparkFailed: the job failed.
        """
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
