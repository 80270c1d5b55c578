"""Slices that fit into one Spark task are fetched in this process, and all others by Spark, in as many tasks."""

from typing import Any

import pyarrow as pa
import pytest

from kafka_io.model import Broker, BrokerPartition, Generation, OffsetRange
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.values.json.inference import MAX_VALUES
from pipelines.loading import execute as executing
from pipelines.loading.execute import execute
from pipelines.loading.fetch_task import FetchTask, decode_task, to_json
from pipelines.loading.work import SliceFacts


def task(spark_task: int, partition: int) -> FetchTask:
    """The first ten offsets of a partition."""
    offsets = OffsetRange(BrokerPartition(None, partition), 0, 10)
    brokers = (Broker(id=1, host="127.0.0.1", port=1),)
    return FetchTask(
        spark_task=spark_task,
        source=Source(cluster="main", generation=Generation.MODERN, brokers=brokers, read_settings=ReadSettings()),
        planned=PlannedRange(topic="clicks", offsets=offsets, incarnation="7"),
        table_uri="lake/main/clicks",
        folder="loaded_date=2026-01-01",
        options={},
        parquet_codec="zstd",
        loaded_at_us=0,
    )


class FakeSpark:
    """A session that is also its only DataFrame; `steps` gets into how many tasks it is divided."""

    def __init__(self, steps: list[object]) -> None:
        self.steps = steps
        self.rows = pa.table({})

    def createDataFrame(self, rows: pa.Table) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """Keep the rows."""
        self.rows = rows
        return self

    def repartitionById(self, count: int, column: str) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """Note the number of tasks, and which of them each row goes to."""
        self.steps.append((count, self.rows[column].to_pylist()))
        return self

    def mapInArrow(self, *_: object) -> "FakeSpark":  # noqa: N802 - the name of Spark
        """Do nothing."""
        return self


def facts_of(tasks: list[FetchTask]) -> list[SliceFacts]:
    return [SliceFacts(offsets=fetched.offsets) for fetched in tasks]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The generations whose kernels are compiled, and where slices are fetched, in the order in which it happens."""
    steps: list[object] = []

    def fetch_here(tasks: list[FetchTask], *_: object) -> list[SliceFacts]:
        steps.append("here")
        return facts_of(tasks)

    def collect(_: object, frame: FakeSpark, *__: object) -> list[dict[str, str]]:
        tasks = map(decode_task, frame.rows["fetch_task"].to_pylist())
        return [{"facts": to_json(facts)} for facts in facts_of(list(tasks))]

    monkeypatch.setattr(executing, "warm", steps.append)
    monkeypatch.setattr(executing, "fetch_here", fetch_here)
    monkeypatch.setattr(executing, "collect", collect)
    return steps


@pytest.mark.parametrize(
    ("spark_tasks", "where"), [([0, 0], "here"), ([0, 1], (2, [0, 1])), ([2, 0, 1, 1], (3, [2, 0, 1, 1]))]
)
def test_the_kernels_are_compiled_once_before_tasks_need_them(
    spark_tasks: list[int], where: object, steps: list[object]
) -> None:
    tasks = [task(spark_task, 9 - number) for number, spark_task in enumerate(spark_tasks)]
    spark: Any = FakeSpark(steps)
    facts = execute(lambda: spark, tasks, lambda _done, _total: None)
    assert steps == [Generation.MODERN, where]
    assert facts == sorted(facts_of(tasks), key=lambda slice_facts: slice_facts.offsets)


def test_only_slices_that_are_larger_than_a_sample_are_sampled() -> None:
    slices = [OffsetRange(BrokerPartition(None, number), 0, MAX_VALUES + number) for number in range(2)]
    assert executing.sample_of(slices) == [OffsetRange(BrokerPartition(None, 1), 0, MAX_VALUES)]
