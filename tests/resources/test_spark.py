"""Spark jobs: executors receive our code, errors name their cause, and an interrupt cancels the job."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from resources.errors import SparkFailed
from resources.spark import collect

pytestmark = pytest.mark.spark

Handler = Callable[..., Any]


def ignore_progress(_done: int, _total: int) -> None:
    """Ignore the progress."""


REPORT_CODE_PATH = """
import sys
import pyarrow as pa
from resources.spark import collect, open_session

def report(batches):
    import kafka_io.records.v07_decoder
    kafka_io.records.v07_decoder.warm()
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"place": [kafka_io.records.v07_decoder.__file__]})

session = open_session({"master": "local[1]", "spark.ui.enabled": "false"})
(row,) = collect(session, session.range(1).mapInArrow(report, "place string"), lambda *_: None)
print(row["place"])
"""


def test_executors_receive_the_code_with_the_job(tmp_path: Path) -> None:
    """The script runs in another folder, because local workers would import our code from the checkout."""
    completed = subprocess.run(
        [sys.executable, "-c", REPORT_CODE_PATH],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ".zip/kafka_io/records/v07_decoder.py" in completed.stdout, completed.stderr


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            raise ValueError(f"no {batch.num_rows} rows")
        yield batch


def test_an_error_names_its_cause(spark: SparkSession) -> None:
    with pytest.raises(SparkFailed, match="ValueError: no 1 rows"):
        collect(spark, spark.range(1).mapInArrow(failing, "place string"), ignore_progress)


def test_progress_is_reported(spark: SparkSession) -> None:
    reports: list[tuple[int, int]] = []

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time  # noqa: PLC0415 - in the worker

        for _ in batches:
            time.sleep(1.2)
            yield pa.RecordBatch.from_pydict({"place": ["x"]})

    collect(
        spark,
        spark.range(0, 4, 1, 4).mapInArrow(slow, "place string"),
        lambda done, total: reports.append((done, total)),
    )
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
            collect(spark, spark.range(1).mapInArrow(endless, "id long"), ignore_progress)
    finally:
        signal.signal(signal.SIGINT, before)
        interrupting.join()
    assert not tracker.getActiveJobsIds()
