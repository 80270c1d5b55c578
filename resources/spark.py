"""Spark sessions, classic and Connect, and running one DataFrame so that it can be watched and cancelled."""

import os
import re
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from resources.errors import SparkFailed
from resources.java import find_java

Progress = Callable[[int, int], None]
"""Told how many tasks are done, and of how many."""

DEFAULT_MASTER = "local[*,4]"
_SHIPPED = ("kafka_io", "resources", "pipelines")
_POLL_S = 0.5
_STARVED_S = 600.0  # machines that are started for a job are there by then
_DEFAULTS = {
    "spark.app.name": "penstock",
    "spark.python.unix.domain.socket.enabled": "true",  # halves the cost of a task (FINDINGS, 1)
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.adaptive.enabled": "false",  # a slice group is a task: nothing to coalesce
}
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}


def open_session(settings: Mapping[str, str]) -> SparkSession:
    """A session as `[spark]` in the settings says: `remote` for Spark Connect, else `master`; the rest is Spark's own.

    A session that is open in this process is reused. Our own code travels with it, so executors need only Python and
    the locked packages.

    Raises:
        SparkFailed: it does not start.
    """
    _prepare_environment(settings)
    builder = SparkSession.builder
    builder = builder.remote(settings["remote"]) if "remote" in settings else builder.master(_place(settings))
    for key, value in _options(settings).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"Spark does not start: {_cause(error)}") from error
    session.addArtifacts(str(_shipped_code()), pyfile=True)
    return session


def ui_of(session: SparkSession) -> str | None:
    """Where Spark's own pages are while the session lasts; None where they are off, or a server has them (Connect)."""
    return None if _is_remote(session) else session.sparkContext.uiWebUrl


def close_session() -> None:
    """End this process's session, if it has one, and its JVM's work."""
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def _place(settings: Mapping[str, str]) -> str:
    """Where Spark is, or is to run."""
    return settings.get("remote") or settings.get("master", DEFAULT_MASTER)


def _options(settings: Mapping[str, str]) -> dict[str, str]:
    """What a session is told: our defaults, as far as they can be told where it runs, and what the settings say."""
    place = _place(settings)
    defaults = {**_DEFAULTS, **(_LOCAL if place.startswith("local") else {})}
    if place.startswith("sc://"):
        # That server runs already, and refuses, with a warning each, what is not of a session.
        defaults = {key: value for key, value in defaults.items() if key.startswith("spark.sql.")}
    return {**defaults, **{key: value for key, value in settings.items() if key not in ("master", "remote")}}


def _prepare_environment(settings: Mapping[str, str]) -> None:
    """What the JVM and the local workers inherit. What the user has set stays."""
    os.environ["JAVA_HOME"] = str(find_java())
    # Spark heeds this setting of its own in what spark-submit starts; in a driver like ours it reads the variable only.
    python = settings.get("spark.pyspark.python")
    if python:
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))
    if _place(settings).startswith("local"):  # executors elsewhere must reach the driver
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@cache
def _code_folder() -> tempfile.TemporaryDirectory[str]:
    """Spark hands the zip out from where it lies, to executors that start later too: it stays as long as we do."""
    return tempfile.TemporaryDirectory(prefix="penstock-")


def _shipped_code() -> Path:
    """A zip of our packages for the executors. Its name tells the state of the code, and so does what is in it."""
    root = Path(__file__).parent.parent
    files = sorted(file for package in _SHIPPED for file in (root / package).rglob("*.py"))
    stamp = uuid.uuid5(uuid.NAMESPACE_OID, "".join(f"{file}{file.stat().st_mtime_ns}" for file in files)).hex
    target = Path(_code_folder().name) / f"penstock-{stamp}.zip"
    if not target.exists():
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(root))
    return target


def collect(session: SparkSession, frame: DataFrame, on_progress: Progress) -> list[Row]:
    """The rows of `frame`, run exactly once. If the caller is interrupted, Spark's work is cancelled first.

    A DataFrame is run anew by every action, so callers keep the rows and never ask twice.

    Raises:
        SparkFailed: a task failed too often, Spark is gone, or for ten minutes it had no executor for any task.
    """
    tag = f"penstock-{uuid.uuid4().hex}"
    # In a thread of its own: an interrupted thread's link to the JVM still waits for the rows, so that all it asks
    # next, cancelling too, would wait behind them.
    with ThreadPoolExecutor(1) as beside, _watched(session, tag, on_progress) as pace:
        running = beside.submit(_tagged, session, frame, tag)
        try:
            while not wait([running], _POLL_S).done:
                pace.check()
            return running.result()
        except (PySparkException, Py4JError) as error:
            raise SparkFailed(f"Spark gave up: {_cause(error)}") from error
        except BaseException:
            # KeyboardInterrupt, or Dagster's own: PySpark's handler alone leaves the job running (FINDINGS, 4).
            _cancel(session, tag, running)
            raise


def _tagged(session: SparkSession, frame: DataFrame, tag: str) -> list[Row]:
    """Tags and job groups are those of the thread that runs the job."""
    if _is_remote(session):
        session.addTag(tag)
    else:
        session.sparkContext.setJobGroup(tag, "fetching slices")
    return frame.collect()


def _cancel(session: SparkSession, tag: str, running: Future[list[Row]]) -> None:
    """Again until it has ended: a job that has not begun yet is not found."""
    # Spark 4.2's classic sessions know tags too, but do not find their jobs by them.
    interrupt = session.interruptTag if _is_remote(session) else session.sparkContext.cancelJobGroup
    while not running.done():
        interrupt(tag)
        wait([running], _POLL_S)


def _cause(error: Exception) -> str:
    """The line that says what happened, of texts that hold a Java trace, a Python trace, or both."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    # A Python trace ends with its error, at the left margin; Spark's own words begin with its exception's name.
    python = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line)]
    spark = [line for line in lines if "SparkException: " in line]
    return (python or spark or lines or [type(error).__name__])[0].strip()


def _is_remote(session: SparkSession) -> bool:
    return hasattr(session, "registerProgressHandler") and not hasattr(session, "_jsparkSession")


@dataclass(slots=True)
class _Pace:
    """How a job gets on. The thread that watches it tells, and the one that waits for it asks."""

    on_progress: Progress
    _idle_since: float | None = None

    def tell(self, running: int, done: int, total: int) -> None:
        """So many tasks run, and of the stage that fetches so many are done."""
        self._idle_since = None if running else self._idle_since or time.monotonic()
        self.on_progress(done, total)

    def check(self) -> None:
        """Spark itself waits for executors without end, and says so in a log that nobody reads.

        Raises:
            SparkFailed: no task has run for too long.
        """
        since = self._idle_since
        if since is not None and time.monotonic() - since > _STARVED_S:
            raise SparkFailed(
                f"no executor has run a task for {_STARVED_S:.0f} s: Spark has no worker for this application, "
                "or none with the cores and the memory that it asks for"
            )


@contextmanager
def _watched(session: SparkSession, group: str, on_progress: Progress) -> Iterator[_Pace]:
    pace = _Pace(on_progress)
    if _is_remote(session):
        with _watched_remote(session, pace):
            yield pace
        return
    done = threading.Event()
    watcher = threading.Thread(target=_poll, args=(session, group, pace, done), daemon=True)
    watcher.start()
    try:
        yield pace
    finally:
        done.set()
        watcher.join()


@contextmanager
def _watched_remote(session: SparkSession, pace: _Pace) -> Iterator[None]:
    """Servers tell what is new; one that tells nothing at all is not taken for one without executors."""

    def handler(stages: Any, inflight_tasks: int, **_rest: Any) -> None:
        if stages:
            last = max(stages, key=lambda stage: stage.stage_id)  # the one that fetches
            pace.tell(inflight_tasks, last.num_completed_tasks, last.num_tasks)

    session.registerProgressHandler(handler)  # type: ignore[arg-type] # any callable will do
    try:
        yield
    finally:
        session.removeProgressHandler(handler)  # type: ignore[arg-type] # same


def _poll(session: SparkSession, group: str, pace: _Pace, done: threading.Event) -> None:
    """The last stage of the group's job is the one that fetches."""
    tracker = session.sparkContext.statusTracker()
    while not done.wait(_POLL_S):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        ids = sorted(stage for job in jobs if job for stage in job.stageIds)
        stages = [stage for stage in map(tracker.getStageInfo, ids) if stage]
        if stages:
            running = sum(stage.numActiveTasks for stage in stages)
            pace.tell(running, stages[-1].numCompletedTasks, stages[-1].numTasks)
