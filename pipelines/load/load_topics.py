"""Loads many topics in one run, several at a time.

The topics begin in the given order. A topic's thread plans it, fetches it and commits it, so a topic that waits for its
brokers or its store, or that fails, holds up no other. What needs much CPU time and memory, the fetch, is done for few
topics at a time, and in the order in which they ask for it.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial, wraps
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.stopping import Stopped, check_stop, stops_with
from pipelines.fetch.fetch_runner import Runner
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.first_answers import FirstAnswers
from pipelines.load.load import Loader
from pipelines.load.sharing import SharedCluster, Turns
from pipelines.reports.group_mirror import MirroredCursors
from pipelines.reports.last_error import LastError
from pipelines.reports.outcome import RunRecord, TopicLoad
from pipelines.reports.run_reports import Reports
from resources.progress import Progress
from resources.stores.lake import tables_at_once

P = ParamSpec("P")
T = TypeVar("T")

FETCHES_AT_ONCE = 2
"""Each may need as much memory as a load of one topic."""
_POLL_S = 0.2


class TopicLoads:
    """Loads topics of one cluster in one run, and calls back in the thread that made this object.

    If that thread is interrupted, running topics end at their next safe place: a commit is completed, a question to a
    broker and a slice are not followed by another one. The interruption is raised again when no topic runs.

    Args:
        cluster: the open cluster. While topics load, only they may use it.

    Attributes:
        cluster: the cluster that loaders of `load` must use.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = SharedCluster(cluster)
        self._owner = threading.get_ident()
        self._stop = threading.Event()
        self._inbox: SimpleQueue[Callable[[], None] | BaseException | None] = SimpleQueue()

    def called_here(self, function: Callable[P, T]) -> Callable[P, T]:
        """The same function, which the thread that made this object runs, whichever thread calls it."""

        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            if threading.get_ident() == self._owner:
                return function(*arguments, **options)
            result: Future[T] = Future()
            self._inbox.put(lambda: _run(result, lambda: function(*arguments, **options)))
            while not result.done():
                check_stop()
                _wait(result)
            return result.result()

        return call

    def sent_here(self, update: Progress) -> Progress:
        """The same function, which the thread that made this object runs later."""
        return lambda done, total: self._inbox.put(partial(update, done, total))

    def load(
        self,
        loader: Loader,
        topics: Sequence[str],
        *,
        on_end: Callable[[TopicLoad], None],
        on_begin: Callable[[str], None] = lambda _topic: None,
    ) -> None:
        """Load topics in this order; see `Loader.load`. Results are passed to `on_end` as topics end.

        Args:
            loader: loads one topic; its cluster is the one of this object.
            topics: the names of the topics; each is loaded once.
            on_end: takes the result of a topic.
            on_begin: takes the name of a topic whose load begins.
        """
        run = loader.run
        # With a limit, a second fetch at the same time would exceed it, and makes nothing faster.
        runner = _RunnerInTurns(run.fetcher.runner, Turns(1 if run.fetcher.caps.limits_rate else FETCHES_AT_ONCE))
        shared = replace(
            loader,
            run=replace(run, fetcher=replace(run.fetcher, runner=runner)),
            first_answers=FirstAnswers(self.cluster, topics, run.now),
            evidence=tuple(map(self.called_here, loader.evidence)),
            reports=_ReportsHere(loader.reports, self),
        )
        waiting = deque(dict.fromkeys(topics))

        def work() -> None:
            for topic in iter(partial(_next, waiting), None):
                self._inbox.put(partial(on_begin, topic))
                self._inbox.put(partial(on_end, _loaded(shared, topic)))

        with run.fetcher.runner.keeping_readers():
            if len(topics) > 1:
                self._run_threads(work, min(tables_at_once(run.tables.of(topics[0]).uri), len(topics)))
                return
            for topic in waiting:
                on_begin(topic)
                on_end(_loaded(loader, topic))

    def _run_threads(self, work: Callable[[], None], count: int) -> None:
        """Run threads, and the calls that they send here, until all threads have ended."""
        names = [f"topics-{number}" for number in range(count)]
        threads = [threading.Thread(target=self._run_thread, args=(work,), name=name, daemon=True) for name in names]
        running = count
        try:
            for thread in threads:
                thread.start()
            while running:
                try:
                    message = self._inbox.get(timeout=_POLL_S)
                except Empty:  # Python sees a signal that came just before the wait, or to another thread, only now
                    continue
                if callable(message):
                    message()
                else:
                    running -= 1
                    if message is not None:
                        raise message
        finally:
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:  # it was started
                    thread.join()
            self._stop.clear()
            self._inbox = SimpleQueue()  # after an interruption, calls are left

    def _run_thread(self, work: Callable[[], None]) -> None:
        """Work in a thread, and send its ending: None, or what it raised and the owner raises again."""
        ending: BaseException | None = None
        try:
            with stops_with(self._stop):
                work()
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 - the owner raises it
            ending = error
        self._inbox.put(ending)


def _loaded(loader: Loader, topic: str) -> TopicLoad:
    """The result of a load. An error of what follows the load, such as a report, is in it too."""
    try:
        return loader.load(topic)
    except Exception as error:  # noqa: BLE001 - whatever fails belongs to this topic, and others are loaded
        record = RunRecord(topic=topic, table=loader.run.tables.of(topic).uri)
        record.failures += [SliceFailure.of(error, Where(cluster=loader.run.cluster.name, topic=topic))]
        return record.outcome(seconds=0.0)


def _next(waiting: deque[str]) -> str | None:
    """Take the first of the waiting topics; None if there is none. Several threads may do so."""
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _run(result: Future[T], function: Callable[[], T]) -> None:
    """Set the result of a call; an interruption of this thread is raised here, and not in the thread that waits."""
    try:
        result.set_result(function())
    except Exception as error:  # noqa: BLE001 - it belongs to the thread that waits
        result.set_exception(error)


def _wait(result: Future[T]) -> None:
    try:
        result.exception(timeout=_POLL_S)
    except TimeoutError:
        return


@dataclass(frozen=True, slots=True)
class _RunnerInTurns(Runner):
    """A runner for several threads: few fetch at a time, and a thread that has to stop fetches no more; see Runner."""

    runner: Runner
    turns: Turns

    @property
    def cores(self) -> int:
        return self.runner.cores

    def fetch(
        self, tasks: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]] = ()
    ) -> list[SliceFacts]:

        def report(done: int, total: int) -> None:
            check_stop()
            on_progress(done, total)

        with self.turns.turn():
            return self.runner.fetch(tasks, report, ahead)

    def abandon(self, topic: str) -> None:
        self.runner.abandon(topic)

    def keeping_readers(self) -> AbstractContextManager[None]:
        return self.runner.keeping_readers()


@dataclass(frozen=True, slots=True)
class _ReportsHere(Reports):
    """Reports for several threads: the thread that made the TopicLoads object reports for all of them; see Reports."""

    reports: Reports
    loads: TopicLoads

    def started(self, topic: str, run_id: str) -> Sequence[str]:
        return self.loads.called_here(self.reports.started)(topic, run_id)

    def progress(self, topic: str) -> Progress:
        return self.loads.sent_here(self.reports.progress(topic))

    def committed(self, topic: str, cursors: MirroredCursors) -> Sequence[str]:
        return self.loads.called_here(self.reports.committed)(topic, cursors)

    def held_back(self, topic: str, bounds: Mapping[BrokerPartition, Bounds], now_ms: int) -> Sequence[str]:
        """The cluster is shared: any thread can ask it."""
        return self.reports.held_back(topic, bounds, now_ms)

    def failed(self, topic: str, error: LastError | None) -> Sequence[str]:
        """A store can be asked by any thread."""
        return self.reports.failed(topic, error)

    def ended(self, load: TopicLoad) -> Sequence[str]:
        return self.loads.called_here(self.reports.ended)(load)
