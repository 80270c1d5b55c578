"""Spark jobs: each computes one DataFrame once, with progress and cancellation. Several of them can share the cores."""

import re
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_io.stopping import check_stop
from resources.errors import SparkFailed
from resources.progress import Progress
from resources.quantities import duration

if TYPE_CHECKING:  # see resources/machines/spark.py
    from pyspark.sql import DataFrame, Row, SparkSession

_POLL_S = 0.5
_STARVED_S = 600.0  # long enough for a cluster that starts machines on demand
_UNKNOWN_REASON = "a task failed too often; `penstock --debug` with the same command shows Spark's reason"
_PHRASES = (
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
"""Sentences for the messages of failed jobs, by a part of their text."""


def spark_errors() -> tuple[type[Exception], ...]:
    """The errors that a session raises."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - see TYPE_CHECKING
    from pyspark.errors import PySparkException  # noqa: PLC0415 - same

    return (PySparkException, Py4JError)


def is_remote(session: "SparkSession") -> bool:
    """Whether the session is one of Spark Connect."""
    return hasattr(session, "registerProgressHandler") and not hasattr(session, "_jsparkSession")


def cores_of(session: "SparkSession") -> int | None:
    """The number of tasks that the executors of now can run at the same time; None if a Connect server knows it."""
    return None if is_remote(session) else session.sparkContext.defaultParallelism


class SparkJob:
    """A DataFrame that Spark computes in the background, in a thread of its own.

    Every action computes a DataFrame again, so callers must keep the rows and must not run a second action.

    The connection of an interrupted thread to the JVM still waits for the rows, so every later request on it, including
    the cancellation, would wait for them too. For this reason even a job for which the caller waits has a thread.

    Args:
        session: the session.
        frame: what is computed, exactly once.
        after: a job that began before this one. Spark gives free cores to the job that began first, so this job begins
            as soon as the other one has tasks, and gets the cores that the other one leaves free.
    """

    def __init__(self, session: "SparkSession", frame: "DataFrame", *, after: "SparkJob | None" = None) -> None:
        self._session = session
        self._tag = f"penstock-{uuid.uuid4().hex}"
        self._monitor = _JobMonitor()
        self._cancelled = threading.Event()
        executor = ThreadPoolExecutor(1, thread_name_prefix=self._tag)
        self._running: Future[list[Row]] = executor.submit(self._collect, frame, after)
        executor.shutdown(wait=False)

    def wait(self, on_progress: Progress) -> "list[Row]":
        """The rows, as soon as all of them are computed. If the caller is interrupted, the job is cancelled first.

        Raises:
            SparkFailed: a task failed too often, the connection was lost, or no executor ran a task for ten minutes.
        """
        self._monitor.begin_waiting()
        try:
            while not wait([self._running], _POLL_S).done:
                check_stop()
                self._monitor.check()
                self._monitor.report(on_progress)
            rows = self._running.result()
        except spark_errors() as error:
            raise SparkFailed(f"Spark gave up: {_phrase(error)}") from error
        except BaseException:
            # KeyboardInterrupt, an interrupt of Dagster, or Stopped. PySpark's handler leaves the job running
            # (decision D11).
            self.cancel()
            raise
        self._monitor.report(on_progress)
        return rows

    def cancel(self) -> None:
        """Cancel the job and wait for its end. Spark ignores the request before a job begins, so it is repeated."""
        # Classic sessions of Spark 4.2 have tags too, but do not find their jobs by tag.
        is_connect = is_remote(self._session)
        interrupt = self._session.interruptTag if is_connect else self._session.sparkContext.cancelJobGroup
        self._cancelled.set()
        while not self._running.done():
            interrupt(self._tag)
            wait([self._running], _POLL_S)

    def _collect(self, frame: "DataFrame", after: "SparkJob | None") -> "list[Row]":
        """Collect the rows under a tag. Tags and job groups belong to a thread, so the thread of the job sets them."""
        while after is not None and not after.has_tasks and not self._cancelled.wait(_POLL_S):
            pass
        if self._cancelled.is_set():
            return []
        session = self._session
        if is_remote(session):
            session.addTag(self._tag)
        else:
            session.sparkContext.setJobGroup(self._tag, "fetching slices")
        watched = _watched_remote if is_remote(session) else _watched_classic
        with watched(session, self._tag, self._monitor):
            return frame.collect()

    @property
    def has_tasks(self) -> bool:
        """Whether Spark has begun the job, or the job has ended."""
        return self._monitor.total > 0 or self._running.done()


def _phrase(error: Exception) -> str:
    """The reason why a job failed, in our words: Spark's message is a Java stack trace, a Python traceback, or both."""
    text = str(error)
    return next((phrase for pattern, phrase in _PHRASES if re.search(pattern, text)), _UNKNOWN_REASON)


@dataclass(slots=True)
class _JobMonitor:
    """The progress of a job. The thread that watches the job calls `update`; the thread that waits calls the others."""

    done: int = 0
    total: int = 0
    _idle_since: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self, running: int, done: int, total: int) -> None:
        """Record the number of running tasks, and the progress of the stage that fetches."""
        with self._lock:
            self._idle_since = None if running else self._idle_since or time.monotonic()
            self.done, self.total = done, total

    def begin_waiting(self) -> None:
        """Forget that the job was idle: nobody waited for it, and other jobs had the cores."""
        with self._lock:
            self._idle_since = None

    def report(self, on_progress: Progress) -> None:
        """Report the progress, if it is known."""
        with self._lock:
            done, total = self.done, self.total
        if total:
            on_progress(done, total)

    def check(self) -> None:
        """Check that tasks run. Spark itself waits for executors without end and reports it only in its log.

        Raises:
            SparkFailed: no task ran for ten minutes.
        """
        since = self._idle_since
        if since is not None and time.monotonic() - since > _STARVED_S:
            raise SparkFailed(
                f"no executor ran a task for {duration(_STARVED_S)}: Spark has no worker for this application, or none "
                "with the requested cores and memory"
            )


@contextmanager
def _watched_classic(session: "SparkSession", group: str, monitor: _JobMonitor) -> Iterator[None]:
    done = threading.Event()
    watcher = threading.Thread(target=_poll, args=(session, group, monitor, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def _watched_remote(session: "SparkSession", _tag: str, monitor: _JobMonitor) -> Iterator[None]:
    """Watch a job of a Connect server, which reports progress itself. No report proves nothing.

    A session calls its handlers for all its jobs, each in the thread of the job.
    """
    thread = threading.get_ident()

    def handler(stages: Any, inflight_tasks: int, **_unused: Any) -> None:
        if stages and threading.get_ident() == thread:
            last = max(stages, key=lambda stage: stage.stage_id)  # the stage that fetches
            monitor.update(inflight_tasks, last.num_completed_tasks, last.num_tasks)

    session.registerProgressHandler(handler)  # type: ignore[arg-type] # any callable will do
    try:
        yield
    finally:
        session.removeProgressHandler(handler)  # type: ignore[arg-type] # same


def _poll(session: "SparkSession", group: str, monitor: _JobMonitor, done: threading.Event) -> None:
    """Watch a classic job by polling. The last stage of the job is the one that fetches."""
    tracker = session.sparkContext.statusTracker()
    while not done.wait(_POLL_S):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        ids = sorted(stage for job in jobs if job for stage in job.stageIds)
        stages = [stage for stage in map(tracker.getStageInfo, ids) if stage]
        if stages:
            running = sum(stage.numActiveTasks for stage in stages)
            monitor.update(running, stages[-1].numCompletedTasks, stages[-1].numTasks)
