"""Run a plan on Spark: the only DataFrame of a load. One task per group of slices; only facts come back."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from kafka_io.client.source import warm
from pipelines.loading.fetch import FACTS_SCHEMA, WORK_SCHEMA, fetch_slices
from pipelines.loading.work import Facts, Work
from resources.spark import Progress, collect


def execute(session: SparkSession, works: Sequence[Work], on_progress: Progress) -> list[Facts]:
    """The facts of each slice, in order of partition and offset. Slices that failed say so in their facts."""
    if not works:
        return []
    for generation in {work.source.generation for work in works}:
        warm(generation)  # once a machine: local workers then load the compiled kernels from the cache
    tasks = 1 + max(work.task for work in works)
    frame = session.createDataFrame([(work.task, work.to_json()) for work in works], WORK_SCHEMA)
    # By id, not by hash or range: exactly one task per group, and no job to sample keys (FINDINGS, 1).
    facts = frame.repartitionById(tasks, "task").mapInArrow(fetch_slices, FACTS_SCHEMA)
    rows = collect(session, facts, on_progress)
    return sorted((Facts.from_json(row["facts"]) for row in rows), key=lambda one: (one.id, one.start))
