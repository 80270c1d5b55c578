"""Slices that fit into one Spark task are fetched in this process, and all others by Spark, in as many tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from kafka_io.model import Broker, BrokerPartition, Generation, OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.values.json.inference import MAX_VALUES
from pipelines.fetch import fetch_runner as executing
from pipelines.fetch.fetch_runner import FetchRunner, fetch_here
from pipelines.fetch.fetch_task import FetchTask, decode_task, to_json
from pipelines.fetch.slice_fetcher import SliceFetcher, _sample_of
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import SliceFacts
from resources.progress import no_progress
from resources.settings.settings import Caps


def task(spark_task: int, partition: int, *, start: int = 0, loaded_at_us: int = 0) -> FetchTask:
    """Ten offsets of a partition."""
    offsets = OffsetRange(BrokerPartition(None, partition), start, start + 10)
    brokers = (Broker(id=1, host="127.0.0.1", port=1),)
    return FetchTask(
        spark_task=spark_task,
        source=Source(cluster="main", generation=Generation.MODERN, brokers=brokers, read_settings=ReadSettings()),
        planned=PlannedRange(topic="clicks", offsets=offsets, incarnation="7"),
        table_uri="lake/main/clicks",
        folder=f"loaded_date=2026-01-0{1 + loaded_at_us}",
        options={},
        parquet_codec="zstd",
        loaded_at_us=loaded_at_us,
    )


def step(start: int, *, loaded_at_us: int = 0) -> list[FetchTask]:
    """The two tasks of a step, in two Spark tasks."""
    return [task(number, number, start=start, loaded_at_us=loaded_at_us) for number in range(2)]


@dataclass
class FakeSpark:
    """A session that is also its only DataFrame, and the class of its jobs; `events` gets what happens."""

    events: list[object]
    rows: pa.Table = field(default_factory=lambda: pa.table({}))

    @property
    def sparkContext(self) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """The context, which knows the number of cores."""
        return self

    defaultParallelism = 6  # noqa: N815 - the name of Spark

    def createDataFrame(self, rows: pa.Table) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """Keep the rows."""
        return replace(self, rows=rows)

    def repartitionById(self, count: int, column: str) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """Note the number of tasks, and which of them each row goes to."""
        self.events.append((count, self.rows[column].to_pylist()))
        return self

    def mapInArrow(self, *_: object) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """Do nothing."""
        return self


@dataclass
class FakeJob:
    """A job whose tasks succeed."""

    session: FakeSpark
    frame: FakeSpark
    after: "FakeJob | None" = None

    @property
    def tasks(self) -> list[FetchTask]:
        """The tasks of the job."""
        return list(map(decode_task, self.frame.rows["fetch_task"].to_pylist()))

    def wait(self, *_: object) -> list[dict[str, str]]:
        """The rows with the facts of the tasks."""
        self.session.events.append(("waited for", self.tasks[0].offsets.start))
        return [{"facts": to_json(facts)} for facts in facts_of(self.tasks)]

    def cancel(self) -> None:
        """Note it."""
        self.session.events.append(("cancelled", self.tasks[0].offsets.start))


def facts_of(tasks: Sequence[FetchTask]) -> list[SliceFacts]:
    ranges = [CommittedRange(offsets=fetched.offsets, loaded_at_us=fetched.loaded_at_us) for fetched in tasks]
    return [SliceFacts(range=fetched_range) for fetched_range in ranges]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The generations whose kernels are compiled, and where slices are fetched, in the order in which it happens."""
    events: list[object] = []

    def fetch_here(tasks: list[FetchTask], *_: object, **_options: object) -> list[SliceFacts]:
        events.append("here")
        return facts_of(tasks)

    monkeypatch.setattr(executing, "warm", events.append)
    monkeypatch.setattr(executing, "fetch_here", fetch_here)
    monkeypatch.setattr(executing, "SparkJob", FakeJob)
    return events


@pytest.fixture
def runner(events: list[object]) -> FetchRunner:
    session: Any = FakeSpark(events)
    return FetchRunner(lambda: session)


@pytest.mark.parametrize(
    ("spark_tasks", "where"),
    [
        ([0, 0], ["here"]),
        ([0, 1], [(2, [0, 1]), ("waited for", 0)]),
        ([2, 0, 1, 1], [(3, [2, 0, 1, 1]), ("waited for", 0)]),
    ],
)
def test_the_kernels_are_compiled_once_before_tasks_need_them(
    spark_tasks: list[int], where: list[object], events: list[object], runner: FetchRunner
) -> None:
    tasks = [task(spark_task, 9 - number) for number, spark_task in enumerate(spark_tasks)]
    facts = runner.fetch(tasks, no_progress)
    assert events == [Generation.MODERN, *where]
    assert facts == sorted(facts_of(tasks), key=lambda slice_facts: slice_facts.offsets)


def test_the_jobs_of_the_next_steps_begin_before_the_first_one_is_complete(
    events: list[object], runner: FetchRunner
) -> None:
    assert runner.cores == 0
    facts = [runner.fetch(step(0), no_progress, [step(10), step(20), [task(0, 0, start=30)]])]
    facts.append(runner.fetch(step(10, loaded_at_us=1), no_progress, [step(20, loaded_at_us=1)]))
    facts.append(runner.fetch(step(20, loaded_at_us=2), no_progress))
    begun, compiled = (2, [0, 1]), Generation.MODERN
    assert events == [
        *(compiled, begun, begun, begun, ("waited for", 0)),
        *(compiled, ("waited for", 10)),
        *(compiled, ("waited for", 20)),
    ]
    assert [[part.offsets.start for part in step_facts] for step_facts in facts] == [[0, 0], [10, 10], [20, 20]]
    assert {part.range.loaded_at_us for step_facts in facts for part in step_facts} == {0}  # when the job was begun
    assert runner.cores == 6


def test_a_job_that_reads_in_another_way_is_cancelled_and_begun_again(
    events: list[object], runner: FetchRunner
) -> None:
    runner.fetch(step(0), no_progress, [step(10)])
    moved = [replace(old, source=replace(old.source, generation=Generation.V07)) for old in step(10)]
    runner.fetch(moved, no_progress)
    assert events[-3:] == [("cancelled", 10), (2, [0, 1]), ("waited for", 10)]


def test_a_fetch_of_other_slices_leaves_the_begun_jobs_alone(events: list[object], runner: FetchRunner) -> None:
    """For example, slices are fetched again when their schemas are known."""
    runner.fetch(step(0), no_progress, [step(10)])
    runner.fetch(step(5), no_progress)
    runner.fetch(step(10), no_progress)
    assert ("cancelled", 10) not in events
    assert events.count((2, [0, 1])) == 3


def test_a_fetch_in_this_process_says_how_many_slices_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks = [decode_task(text) for batch in batches for text in batch.column("fetch_task").to_pylist()]
        for facts in facts_of(tasks):
            yield pa.RecordBatch.from_pydict({"facts": [to_json(facts)]})

    done: list[tuple[int, int]] = []
    monkeypatch.setattr(executing, "fetch_slices", fetched)
    assert fetch_here(step(0), lambda *numbers: done.append(numbers)) == facts_of(step(0))
    assert done == [(1, 2), (2, 2)]


def test_an_abandoned_topic_has_no_jobs(events: list[object], runner: FetchRunner) -> None:
    runner.fetch(step(0), no_progress, [step(10), step(20)])
    runner.abandon("views")
    assert ("cancelled", 10) not in events
    runner.abandon("clicks")
    runner.abandon("clicks")
    assert events[-2:] == [("cancelled", 10), ("cancelled", 20)]


@pytest.mark.parametrize("broker", [None, 0], ids=["0.8 and later", "0.7"])
def test_the_settings_say_how_much_work_needs_no_spark(broker: int | None) -> None:
    cluster: Any = None  # it is not asked, because the range fits into one slice
    fetcher = SliceFetcher(cluster=cluster, runner=FetchRunner(None), caps=Caps(driver_slices=7))
    topic = TopicEntry(name="clicks", incarnation="7", partitions=(BrokerPartition(broker, 0),))
    sizes = fetcher.slice_sizes(topic, [OffsetRange(BrokerPartition(broker, 0), 0, 10)], None)
    assert sizes.driver == 7


def test_only_slices_that_are_larger_than_a_sample_are_sampled() -> None:
    slices = [OffsetRange(BrokerPartition(None, number), 0, MAX_VALUES + number) for number in range(2)]
    assert _sample_of(slices) == [OffsetRange(BrokerPartition(None, 1), 0, MAX_VALUES)]
