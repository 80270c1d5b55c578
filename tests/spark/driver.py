"""A process with a Spark session that runs loads. A process can have a classic or a Connect session, but not both."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Self
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.fetch import slice_fetcher
from pipelines.load import planned
from resources.kafka import open_cluster
from resources.machines import spark, spark_job
from resources.settings.settings import Settings
from tests.crash.forking import forking
from tests.crash.worlds import TOPIC
from tests.fakes.loaders import loader_of
from tests.spark.daemons import ENVIRONMENT

INTERRUPTED = "interrupted"
_TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """The result of a load: its error or INTERRUPTED, and the progress that it reported as (done, total) offsets."""

    error: str | None
    rows: int
    progress: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnvironment:
    """The environment of a task: its folder, its PYTHONPATH, and the file of our code."""

    folder: Path
    path: str
    code: str


class Driver:
    """Runs loads in one session with these settings; a context manager. `variables` are added to its environment."""

    def __init__(self, settings: Mapping[str, str], variables: Mapping[str, str] = MappingProxyType({})) -> None:
        self._connection, self._child_connection = forking().Pipe()
        arguments = (self._child_connection, dict(settings), {**ENVIRONMENT, **variables})
        self._process = forking().Process(target=_serve, args=arguments)
        self._progress: list[tuple[int, int]] = []
        self.ui = ""

    def __enter__(self) -> Self:
        self._process.start()
        self._child_connection.close()  # now only the process has it, so the pipe closes when the process ends
        self.ui = self._receive()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # its JVM ends with it
        self._process.join()

    def begin(
        self,
        settings: Path,
        *,
        starved_s: float = spark_job._STARVED_S,
        step_slices: int = planned._STEP_SLICES,
        for_workers: Mapping[str, str] | None = None,
    ) -> None:
        """Begin a load with a settings file. The load fails if no executor runs a task for `starved_s` seconds.

        A step of the load has `step_slices` full slices, although there may be more cores. `for_workers` are variables
        for the environment of Spark's Python workers; only a classic session accepts them.
        """
        self._progress = []
        self._connection.send((_load, settings, starved_s, step_slices, for_workers or {}))

    def progress(self) -> tuple[int, int]:
        """The next reported progress."""
        message = self._receive()
        assert isinstance(message, tuple), message
        self._progress.append(message)
        return message

    def end(self) -> LoadResult:
        """Wait for the result of the load."""
        while isinstance(message := self._receive(), tuple):
            self._progress.append(message)
        return LoadResult(**message, progress=tuple(self._progress))

    def interrupt(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def task_environments(self) -> list[TaskEnvironment]:
        """The environment of each task of a job."""
        self._connection.send((_task_environments,))
        return [TaskEnvironment(folder=Path(folder), path=path, code=code) for folder, path, code in self._receive()]

    def _receive(self) -> Any:
        if not self._connection.poll(_TIMEOUT_S):
            raise TimeoutError(f"the driver reported nothing for {_TIMEOUT_S} s")
        return self._connection.recv()


def _serve(test: Connection, settings: Mapping[str, str], variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    session = spark.open_session(settings)
    signal.signal(signal.SIGTERM, _interrupt)
    test.send("" if settings.get("remote") else session.sparkContext.uiWebUrl)
    while True:
        work: Callable[..., Any]
        work, *arguments = test.recv()
        test.send(work(test, session, *arguments))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Dagster's handler does."""
    raise KeyboardInterrupt


def _load(
    test: Connection,
    session: SparkSession,
    file: Path,
    starved_s: float,
    step_slices: int,
    for_workers: Mapping[str, str],
) -> dict[str, Any]:
    settings = Settings.load(file)
    workers = patch.dict(session.sparkContext.environment, for_workers) if for_workers else nullcontext()
    with (
        workers,
        patch.object(spark_job, "_STARVED_S", starved_s),
        patch.object(planned, "_STEP_SLICES", step_slices),
        patch.object(
            slice_fetcher, "read_sample", lambda _source, _planned: None
        ),  # the gate would delay this fetch too
        open_cluster(settings, "main") as cluster,
    ):
        loader = loader_of(
            settings,
            cluster,
            lambda: session,
            cores=0,
            on_progress=lambda _topic: lambda done, total: test.send((done, total)),
        )
        try:
            result = loader.load(TOPIC)
        except KeyboardInterrupt:
            return {"error": INTERRUPTED, "rows": 0}
    return {"error": result.error, "rows": result.rows}


def _task_environments(_test: Connection, session: SparkSession) -> list[tuple[str, str, str]]:
    def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Report a task's environment. Spark pickles this function by value, because workers lack this module."""
        import os  # noqa: PLC0415 - in the worker
        from pathlib import Path  # noqa: PLC0415 - same

        import kafka_io  # noqa: PLC0415 - same

        for _ in batches:
            environment = {
                "folder": str(Path.cwd()),
                "path": os.environ.get("PYTHONPATH", ""),
                "code": kafka_io.__file__,
            }
            yield pa.RecordBatch.from_pydict({name: [text] for name, text in environment.items()})

    frame = session.range(0, 4, 1, 4).mapInArrow(report, "folder string, path string, code string")
    rows = spark_job.SparkJob(session, frame).wait(lambda _done, _total: None)
    return [(row["folder"], row["path"], row["code"]) for row in rows]
