"""Spark sessions, classic and Connect, and the execution of one DataFrame with progress and cancellation."""

import logging
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

from kafka_io.errors import printable
from resources.errors import SparkFailed
from resources.java import find_java

Progress = Callable[[int, int], None]
"""A function that is called with the number of completed tasks and the number of all tasks."""

DEFAULT_MASTER = "local[*,4]"
_SHIPPED = ("kafka_io", "resources", "pipelines")
_NOT_SHIPPED = "kafka_io/testing"  # executors never start an embedded broker
_POLL_S = 0.5
_STARVED_S = 600.0  # long enough for a cluster that starts machines on demand
_UNKNOWN_REASON = "a task failed too often; `penstock --debug` with the same command shows Spark's reason"
_PHRASES = tuple(
    (re.compile(pattern), phrase)
    for pattern, phrase in (
        (
            r"MemoryError|OutOfMemory|out of memory|exit code 137",
            "a worker has too little memory; lower `slice_records`",
        ),
        (
            r"Python worker exited unexpectedly|\(crashed\)",
            "the Python process of a worker ended, often without memory",
        ),
        (r"No module named|ModuleNotFoundError", "the Python of a worker lacks the locked packages"),
        (
            r"Connection refused|UNAVAILABLE|connection.*(lost|closed)|Answer from Java side is empty",
            "it does not answer",
        ),
        (r"cancelled", "somebody cancelled the job"),
    )
)
"""Sentences for the messages of failed jobs, by a part of their text."""
_DEFAULTS = {
    "spark.app.name": "penstock",
    "spark.python.unix.domain.socket.enabled": "true",  # halves the cost of a task (decision D03)
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.adaptive.enabled": "false",  # a slice group is a task: nothing to coalesce
}
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.python.daemon.module": "resources.spark_daemon",
}


def open_session(settings: Mapping[str, str]) -> SparkSession:
    """A session with the settings of `[spark]`: `remote` for Spark Connect, otherwise `master`, and Spark's own keys.

    A session that is open in this process is reused. The executors receive the code of Penstock; they need only Python
    and the locked packages.

    Raises:
        SparkFailed: the session does not start.
    """
    _prepare_environment(settings)
    _silence_py4j()
    builder = SparkSession.builder
    builder = builder.remote(settings["remote"]) if "remote" in settings else builder.master(_address(settings))
    for key, value in _options(settings).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(
            f"Spark does not start with the address {printable(_address(settings))}; check [spark] in the settings, or "
            "see Spark's reason with `penstock --debug`"
        ) from error
    session.addArtifacts(str(_shipped_code()), pyfile=True)
    return session


def _silence_py4j() -> None:
    """Let py4j log no stack traces: its errors are raised too, and Ctrl-C is reported in one line (fault U11)."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_interrupt)  # py4j logs an interrupt with the root logger itself


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def ui_of(session: SparkSession) -> str | None:
    """The URL of Spark's own UI while the session lasts; None if the UI is off or belongs to a Connect server."""
    return None if _is_remote(session) else session.sparkContext.uiWebUrl


def close_session() -> None:
    """End the session of this process, if there is one, and the work of its JVM."""
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def _address(settings: Mapping[str, str]) -> str:
    """The address of Spark: a Connect server or a master."""
    return settings.get("remote") or settings.get("master", DEFAULT_MASTER)


def _options(settings: Mapping[str, str]) -> dict[str, str]:
    """The options of a session: our defaults, if they are allowed there, and those of the settings."""
    address = _address(settings)
    defaults = {**_DEFAULTS, **(_LOCAL if address.startswith("local") else {})}
    if address.startswith("sc://"):
        # A Connect server runs already. It refuses options that are not for a session, with a warning for each.
        defaults = {key: value for key, value in defaults.items() if key.startswith("spark.sql.")}
    return {**defaults, **{key: value for key, value in settings.items() if key not in ("master", "remote")}}


def _prepare_environment(settings: Mapping[str, str]) -> None:
    """Set the environment of the JVM and the local workers. Variables that the user has set stay unchanged."""
    os.environ["JAVA_HOME"] = str(find_java())
    # spark-submit evaluates the setting spark.pyspark.python. A driver without spark-submit reads only the variable.
    python = settings.get("spark.pyspark.python")
    if python:
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))
    if _address(settings).startswith("local"):  # executors on other machines must be able to reach the driver
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _put_on_python_path(str(Path(__file__).parents[1]))  # where the workers' daemon finds its module


def _put_on_python_path(folder: str) -> None:
    """Let the Python processes that this process starts find the modules in a folder."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, folders)])


@cache
def _code_folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of the zip. It exists as long as this process, because executors that start later get the zip too."""
    return tempfile.TemporaryDirectory(prefix="penstock-")


def _shipped_code() -> Path:
    """A zip archive of our packages for the executors. Its name changes whenever a file in it changes."""
    root = Path(__file__).parent.parent
    all_files = (file for package in _SHIPPED for file in (root / package).rglob("*.py"))
    files = sorted(file for file in all_files if not file.is_relative_to(root / _NOT_SHIPPED))
    stamp = uuid.uuid5(uuid.NAMESPACE_OID, "".join(f"{file}{file.stat().st_mtime_ns}" for file in files)).hex
    target = Path(_code_folder().name) / f"penstock-{stamp}.zip"
    if not target.exists():
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(root))
    return target


def collect(session: SparkSession, frame: DataFrame, on_progress: Progress) -> list[Row]:
    """The rows of `frame`, computed exactly once. If the caller is interrupted, the Spark job is cancelled first.

    Every action computes a DataFrame again, so callers must keep the rows and must not run a second action.

    Raises:
        SparkFailed: a task failed too often, the connection was lost, or no executor ran a task for ten minutes.
    """
    tag = f"penstock-{uuid.uuid4().hex}"
    # The job runs in a thread of its own. The connection of an interrupted thread to the JVM still waits for the rows,
    # so every later request on it, including the cancellation, would wait for them too.
    monitor = _JobMonitor(on_progress)
    watched = _watched_remote(session, monitor) if _is_remote(session) else _watched_classic(session, tag, monitor)
    with ThreadPoolExecutor(1) as executor, watched:
        running = executor.submit(_collect_tagged, session, frame, tag)
        try:
            while not wait([running], _POLL_S).done:
                monitor.check()
            return running.result()
        except (PySparkException, Py4JError) as error:
            raise SparkFailed(f"Spark gave up: {_phrase(error)}") from error
        except BaseException:
            # KeyboardInterrupt, or an interrupt of Dagster. PySpark's handler leaves the job running (decision D11).
            _cancel(session, tag, running)
            raise


def _collect_tagged(session: SparkSession, frame: DataFrame, tag: str) -> list[Row]:
    """Collect the rows under a tag. Tags and job groups belong to a thread, so the thread of the job sets them."""
    if _is_remote(session):
        session.addTag(tag)
    else:
        session.sparkContext.setJobGroup(tag, "fetching slices")
    return frame.collect()


def _cancel(session: SparkSession, tag: str, running: Future[list[Row]]) -> None:
    """Cancel the job. Repeat the request until the job has ended, because Spark ignores it before the job begins."""
    # Classic sessions of Spark 4.2 have tags too, but do not find their jobs by tag.
    interrupt = session.interruptTag if _is_remote(session) else session.sparkContext.cancelJobGroup
    while not running.done():
        interrupt(tag)
        wait([running], _POLL_S)


def _phrase(error: Exception) -> str:
    """The reason why a job failed, in our words: Spark's message is a Java stack trace, a Python traceback, or both."""
    text = str(error)
    return next((phrase for pattern, phrase in _PHRASES if pattern.search(text)), _UNKNOWN_REASON)


def _is_remote(session: SparkSession) -> bool:
    return hasattr(session, "registerProgressHandler") and not hasattr(session, "_jsparkSession")


@dataclass(slots=True)
class _JobMonitor:
    """The progress of a job. The thread that watches the job calls `update`; the thread that waits calls `check`."""

    on_progress: Progress
    _idle_since: float | None = None

    def update(self, running: int, done: int, total: int) -> None:
        """Record the number of running tasks, and the progress of the stage that fetches."""
        self._idle_since = None if running else self._idle_since or time.monotonic()
        self.on_progress(done, total)

    def check(self) -> None:
        """Check that tasks run. Spark itself waits for executors without end and reports it only in its log.

        Raises:
            SparkFailed: no task ran for ten minutes.
        """
        since = self._idle_since
        if since is not None and time.monotonic() - since > _STARVED_S:
            raise SparkFailed(
                f"no executor ran a task for {_STARVED_S:.0f} s: Spark has no worker for this application, or none "
                "with the requested cores and memory"
            )


@contextmanager
def _watched_classic(session: SparkSession, group: str, monitor: _JobMonitor) -> Iterator[None]:
    done = threading.Event()
    watcher = threading.Thread(target=_poll, args=(session, group, monitor, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def _watched_remote(session: SparkSession, monitor: _JobMonitor) -> Iterator[None]:
    """Watch a job of a Connect server, which reports progress itself. No report proves nothing."""

    def handler(stages: Any, inflight_tasks: int, **_unused: Any) -> None:
        if stages:
            last = max(stages, key=lambda stage: stage.stage_id)  # the stage that fetches
            monitor.update(inflight_tasks, last.num_completed_tasks, last.num_tasks)

    session.registerProgressHandler(handler)  # type: ignore[arg-type] # any callable will do
    try:
        yield
    finally:
        session.removeProgressHandler(handler)  # type: ignore[arg-type] # same


def _poll(session: SparkSession, group: str, monitor: _JobMonitor, done: threading.Event) -> None:
    """Watch a classic job by polling. The last stage of the job is the one that fetches."""
    tracker = session.sparkContext.statusTracker()
    while not done.wait(_POLL_S):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        ids = sorted(stage for job in jobs if job for stage in job.stageIds)
        stages = [stage for stage in map(tracker.getStageInfo, ids) if stage]
        if stages:
            running = sum(stage.numActiveTasks for stage in stages)
            monitor.update(running, stages[-1].numCompletedTasks, stages[-1].numTasks)
