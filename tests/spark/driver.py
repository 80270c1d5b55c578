"""A process with a session that loads what it is told: one process has either a classic or a Connect session."""

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
    """How a load ended, its error or INTERRUPTED, and what was told of its progress: offsets done, and in all."""

    error: str | None
    rows: int
    told: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a task ran: its folder, its PYTHONPATH, and the file from which it had our code."""

    folder: Path
    path: str
    code: str


class Driver:
    """Loads on one session, set up by `settings`; a context manager."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._mine, self._theirs = forking().Pipe()
        self._process = forking().Process(target=_serve, args=(self._theirs, dict(settings)))
        self._told: list[tuple[int, int]] = []
        self.ui = ""

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()  # so that its end is heard
        self.ui = self._heard()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # its JVM ends with it
        self._process.join()

    def begin(self, settings: Path, *, starved_s: float = spark._STARVED_S) -> None:
        """Begin a load, by that settings file; with no executor for so long, it gives up."""
        self._told = []
        self._mine.send((_load, settings, starved_s))

    def progress(self) -> tuple[int, int]:
        """The progress that is told next."""
        told = self._heard()
        assert isinstance(told, tuple), told
        self._told.append(told)
        return told

    def end(self) -> Ended:
        """How the load ended."""
        while isinstance(heard := self._heard(), tuple):
            self._told.append(heard)
        return Ended(**heard, told=tuple(self._told))

    def interrupt(self, number: signal.Signals) -> None:
        """Send it that signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def places(self) -> list[Place]:
        """Where tasks run."""
        self._mine.send((_places,))
        return [Place(folder=Path(folder), path=path, code=code) for folder, path, code in self._heard()]

    def _heard(self) -> Any:
        if not self._mine.poll(_LONGEST_S):
            raise TimeoutError(f"nothing was told for {_LONGEST_S} s")
        return self._mine.recv()


def _serve(test: Connection, settings: Mapping[str, str]) -> None:
    os.environ.update(ENVIRONMENT)
    session = spark.open_session(settings)
    signal.signal(signal.SIGTERM, _interrupt)
    test.send("" if settings.get("remote") else session.sparkContext.uiWebUrl)
    while True:
        work: Callable[..., Any]
        work, *told = test.recv()
        test.send(work(test, session, *told))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """As Dagster's: it raises, and does no more."""
    raise KeyboardInterrupt


def _load(test: Connection, session: SparkSession, file: Path, starved_s: float) -> dict[str, Any]:
    settings = Settings.load(file)
    with patch.object(spark, "_STARVED_S", starved_s), open_cluster(settings, "main") as cluster:
        loader = Loader.of(
            settings,
            cluster,
            lambda: session,
            sample=lambda _source, _span: None,  # it would be held as the workers' fetches are
            on_progress=lambda _topic: lambda done, total: test.send((done, total)),
        )
        try:
            load = loader.load(TOPIC)
        except KeyboardInterrupt:
            return {"error": INTERRUPTED, "rows": 0}
    return {"error": load.error, "rows": load.rows}


def _places(_test: Connection, session: SparkSession) -> list[tuple[str, str, str]]:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Travels by value: nobody has this module where it runs."""
        import os  # noqa: PLC0415 - in the worker
        from pathlib import Path  # noqa: PLC0415 - same

        import kafka_io  # noqa: PLC0415 - same

        for _ in batches:
            found = {"folder": str(Path.cwd()), "path": os.environ.get("PYTHONPATH", ""), "code": kafka_io.__file__}
            yield pa.RecordBatch.from_pydict({name: [text] for name, text in found.items()})

    frame = session.range(0, 4, 1, 4).mapInArrow(tell, "folder string, path string, code string")
    rows = spark.collect(session, frame, lambda _done, _total: None)
    return [(row["folder"], row["path"], row["code"]) for row in rows]
