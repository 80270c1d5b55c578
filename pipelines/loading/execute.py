"""Run a plan: the only DataFrame of a load. One task per group of slices; only facts come back.

A plan of one task is run here, in the process that planned it: there is nothing to spread, and a JVM and its workers
take longer to start than one slice to fetch.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_io.client.source import warm
from pipelines.loading.fetch import FACTS_SCHEMA, WORK_SCHEMA, fetch_slices
from pipelines.loading.work import Facts, Work
from resources.spark import Progress, collect


def execute(spark: Callable[[], SparkSession], works: Sequence[Work], on_progress: Progress) -> list[Facts]:
    """The facts of each slice, in order of partition and offset. Slices that failed say so in their facts."""
    tasks = 1 + max((work.task for work in works), default=-1)
    for generation in {work.source.generation for work in works}:
        warm(generation)  # once a machine: local workers then load the compiled kernels from the cache
    facts = fetch_here(works, on_progress) if tasks <= 1 else _spread(spark(), works, tasks, on_progress)
    return sorted(facts, key=lambda one: (one.id, one.start))


def fetch_here(works: Sequence[Work], on_progress: Progress) -> list[Facts]:
    """The facts of each slice, fetched one after the other in this process."""
    batches = (pa.RecordBatch.from_pydict({"work": [work.to_json()]}) for work in works)
    found: list[Facts] = []
    for done in fetch_slices(batches):
        found += (Facts.from_json(text) for text in done.column("facts").to_pylist())
        on_progress(len(found), len(works))
    return found


def _spread(session: SparkSession, works: Sequence[Work], tasks: int, on_progress: Progress) -> list[Facts]:
    frame = session.createDataFrame([(work.task, work.to_json()) for work in works], WORK_SCHEMA)
    # By id, not by hash or range: exactly one task per group, and no job to sample keys (FINDINGS, 1).
    facts = frame.repartitionById(tasks, "task").mapInArrow(fetch_slices, FACTS_SCHEMA)
    rows = collect(session, facts, on_progress)
    return [Facts.from_json(row["facts"]) for row in rows]
