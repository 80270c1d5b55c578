"""Spark jobs: executors receive our code, errors name their cause, and an interrupt cancels the job."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from resources.errors import SparkFailed
from resources.machines.spark_job import SparkJob

pytestmark = pytest.mark.spark

Handler = Callable[..., Any]


def ignore_progress(_done: int, _total: int) -> None:
    """Ignore the progress."""


def test_a_local_worker_has_the_modules_of_a_fetch_before_its_first_task(spark: SparkSession) -> None:
    """Workers share the imports of the process that forked them."""

    def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys  # noqa: PLC0415 - in the worker

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"imported": ["kafka_io.reader.reader" in sys.modules]})

    frame = spark.range(0, 4, 1, 4).mapInArrow(report, "imported boolean")
    assert [row["imported"] for row in SparkJob(spark, frame).wait(ignore_progress)] == [True] * 4


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            raise ValueError(f"no {batch.num_rows} rows")
        yield batch


def test_the_text_of_spark_is_only_in_the_cause_of_an_error(spark: SparkSession) -> None:  # fault U11
    with pytest.raises(SparkFailed, match=r"^Spark gave up: a task failed too often; `penstock --debug`") as raised:
        SparkJob(spark, spark.range(1).mapInArrow(failing, "place string")).wait(ignore_progress)
    assert "ValueError: no 1 rows" in str(raised.value.__cause__)


def test_progress_is_reported(spark: SparkSession) -> None:
    reports: list[tuple[int, int]] = []

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time  # noqa: PLC0415 - in the worker

        for _ in batches:
            time.sleep(1.2)
            yield pa.RecordBatch.from_pydict({"place": ["x"]})

    frame = spark.range(0, 4, 1, 4).mapInArrow(slow, "place string")
    SparkJob(spark, frame).wait(lambda done, total: reports.append((done, total)))
    assert reports
    assert {total for _, total in reports} == {4}
    assert sorted(reports) == reports


def endless(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import time  # noqa: PLC0415 - in the worker

    for batch in batches:
        time.sleep(600)
        yield batch


@pytest.mark.parametrize("handler", [None, signal.default_int_handler])
def test_an_interrupted_caller_leaves_no_running_job(spark: SparkSession, handler: Handler | None) -> None:
    """The handler of SIGINT is PySpark's, or one that only raises an exception, as Dagster's does."""
    caller = threading.get_ident()
    tracker = spark.sparkContext.statusTracker()

    def interrupt() -> None:
        while not tracker.getActiveStageIds():
            time.sleep(0.05)
        signal.pthread_kill(caller, signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    interrupting = threading.Thread(target=interrupt)
    try:
        signal.signal(signal.SIGINT, handler or before)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            SparkJob(spark, spark.range(1).mapInArrow(endless, "id long")).wait(ignore_progress)
    finally:
        signal.signal(signal.SIGINT, before)
        interrupting.join()
    assert not tracker.getActiveJobsIds()
