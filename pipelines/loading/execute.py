"""Run the fetch tasks of a plan in Spark, the only DataFrame of a load; only facts come back.

If all tasks fit into one Spark task, they run in the process that planned them: there is nothing to distribute, and to
start a JVM and its workers takes longer than to fetch one slice.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_io.reader.source import warm
from pipelines.loading.fetch import FACTS_SCHEMA, TASK_SCHEMA, fetch_slices
from pipelines.loading.work import FetchTask, SliceFacts, decode_facts, to_json
from resources.spark import Progress, collect


def execute(spark: Callable[[], SparkSession], tasks: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
    """The facts of each slice, in order of partition and offset. The facts of a failed slice contain its failure."""
    for generation in {task.source.generation for task in tasks}:
        warm(generation)  # once per machine: local workers then load the compiled kernels from the cache
    if len({task.spark_task for task in tasks}) <= 1:
        facts = fetch_here(tasks, on_progress)
    else:
        facts = _fetch_in_spark(spark(), tasks, on_progress)
    return sorted(facts, key=lambda slice_facts: slice_facts.offsets)


def fetch_here(tasks: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
    """The facts of each slice, fetched one after the other in this process."""
    batches = (pa.RecordBatch.from_pydict({"fetch_task": [to_json(task)]}) for task in tasks)
    facts: list[SliceFacts] = []
    for batch in fetch_slices(batches):
        facts += map(decode_facts, batch.column("facts").to_pylist())
        on_progress(len(facts), len(tasks))
    return facts


def _fetch_in_spark(session: SparkSession, tasks: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
    count = 1 + max(task.spark_task for task in tasks)
    frame = session.createDataFrame([(task.spark_task, to_json(task)) for task in tasks], TASK_SCHEMA)
    # Repartition by id, not by hash or range: exactly one Spark task per group, and no job to sample keys
    # (decision D04).
    facts = frame.repartitionById(count, "spark_task").mapInArrow(fetch_slices, FACTS_SCHEMA)
    return [decode_facts(row["facts"]) for row in collect(session, facts, on_progress)]
