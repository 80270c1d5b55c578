"""A process with a Spark session that runs loads. One process can have a classic or a Connect session, not both."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Self
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.loading import execute
from pipelines.loading.load import Loader
from resources import spark
from resources.kafka import open_cluster
from resources.settings import Settings
from tests.crash.forking import forking
from tests.crash.worlds import TOPIC
from tests.spark.daemons import ENVIRONMENT

INTERRUPTED = "interrupted"
_LONGEST_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The result of a load: its error or INTERRUPTED, and the progress that it reported as (done, total) offsets."""

    error: str | None
    rows: int
    progress: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The environment of a task: its folder, its PYTHONPATH, and the file of our code."""

    folder: Path
    path: str
    code: str


class Driver:
    """Runs loads in one session with these settings; a context manager."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._connection, self._child_connection = forking().Pipe()
        self._process = forking().Process(target=_serve, args=(self._child_connection, dict(settings)))
        self._progress: list[tuple[int, int]] = []
        self.ui = ""

    def __enter__(self) -> Self:
        self._process.start()
        self._child_connection.close()  # so that the end of the process closes the pipe
        self.ui = self._receive()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # its JVM ends with it
        self._process.join()

    def begin(self, settings: Path, *, starved_s: float = spark._STARVED_S) -> None:
        """Begin a load with a settings file. It fails if no executor runs a task for `starved_s`."""
        self._progress = []
        self._connection.send((_load, settings, starved_s))

    def progress(self) -> tuple[int, int]:
        """The next reported progress."""
        message = self._receive()
        assert isinstance(message, tuple), message
        self._progress.append(message)
        return message

    def end(self) -> Ended:
        """Wait for the result of the load."""
        while isinstance(received := self._receive(), tuple):
            self._progress.append(received)
        return Ended(**received, progress=tuple(self._progress))

    def interrupt(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def places(self) -> list[Place]:
        """The environments of tasks."""
        self._connection.send((_places,))
        return [Place(folder=Path(folder), path=path, code=code) for folder, path, code in self._receive()]

    def _receive(self) -> Any:
        if not self._connection.poll(_LONGEST_S):
            raise TimeoutError(f"the driver reported nothing for {_LONGEST_S} s")
        return self._connection.recv()


def _serve(test: Connection, settings: Mapping[str, str]) -> None:
    os.environ.update(ENVIRONMENT)
    session = spark.open_session(settings)
    signal.signal(signal.SIGTERM, _interrupt)
    test.send("" if settings.get("remote") else session.sparkContext.uiWebUrl)
    while True:
        work: Callable[..., Any]
        work, *message = test.recv()
        test.send(work(test, session, *message))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Dagster's handler does."""
    raise KeyboardInterrupt


def _load(test: Connection, session: SparkSession, file: Path, starved_s: float) -> dict[str, Any]:
    settings = Settings.load(file)
    with (
        patch.object(spark, "_STARVED_S", starved_s),
        patch.object(execute, "read_sample", lambda _source, _planned: None),  # the broker would hold it like a fetch
        open_cluster(settings, "main") as cluster,
    ):
        loader = Loader.of(
            settings,
            cluster,
            lambda: session,
            on_progress=lambda _topic: lambda done, total: test.send((done, total)),
        )
        try:
            load = loader.load(TOPIC)
        except KeyboardInterrupt:
            return {"error": INTERRUPTED, "rows": 0}
    return {"error": load.error, "rows": load.rows}


def _places(_test: Connection, session: SparkSession) -> list[tuple[str, str, str]]:
    def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Report the environment. It is pickled by value, because workers do not have this module."""
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
    rows = spark.collect(session, frame, lambda _done, _total: None)
    return [(row["folder"], row["path"], row["code"]) for row in rows]
