"""Spark sessions: our code reaches the workers, errors say what happened, interrupted work is cancelled."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from resources.errors import SparkFailed
from resources.spark import collect, open_session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return open_session({"master": "local[2,2]", "spark.ui.enabled": "false"})


def nothing(_done: int, _total: int) -> None:
    """Progress that nobody looks at."""


WHERE_OUR_CODE_IS = """
import sys
import pyarrow as pa
from resources.spark import collect, open_session

def where(batches):
    import kafka_io.records.columns
    kafka_io.records.columns.warm()
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"place": [kafka_io.records.columns.__file__]})

session = open_session({"master": "local[1]", "spark.ui.enabled": "false"})
(row,) = collect(session, session.range(1).mapInArrow(where, "place string"), lambda *_: None)
print(row["place"])
"""


def test_our_code_travels_with_the_job(tmp_path: Path) -> None:
    """From another folder than ours: local workers would find the checkout in their working directory."""
    done = subprocess.run(
        [sys.executable, "-c", WHERE_OUR_CODE_IS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ".zip/kafka_io/records/columns.py" in done.stdout, done.stderr


def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            raise ValueError(f"no {batch.num_rows} rows")
        yield batch


def test_an_error_says_what_happened(spark: SparkSession) -> None:
    with pytest.raises(SparkFailed, match="ValueError: no 1 rows"):
        collect(spark, spark.range(1).mapInArrow(broken, "place string"), nothing)


def test_progress_is_told(spark: SparkSession) -> None:
    told: list[tuple[int, int]] = []

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time  # noqa: PLC0415 - in the worker

        for _ in batches:
            time.sleep(1.2)
            yield pa.RecordBatch.from_pydict({"place": ["x"]})

    collect(
        spark, spark.range(0, 4, 1, 4).mapInArrow(slow, "place string"), lambda done, total: told.append((done, total))
    )
    assert told
    assert {total for _, total in told} == {4}
    assert sorted(told) == told


def test_an_interrupted_caller_leaves_no_job_behind(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Dagster terminates a run: the interrupt is raised in the thread that waits for Spark."""
    interrupted: list[str] = []
    cancel = spark.interruptTag
    monkeypatch.setattr(spark, "interruptTag", lambda tag: interrupted.extend([tag, *cancel(tag)]))
    frame = spark.range(1)
    monkeypatch.setattr(type(frame), "collect", interrupt)
    with pytest.raises(KeyboardInterrupt):
        collect(spark, frame, nothing)
    assert interrupted[0].startswith("penstock-")
    assert threading.active_count() < 20


def interrupt(_frame: object) -> None:
    raise KeyboardInterrupt
