"""Many topics in one run: a few requests serve all, several load at a time, and a failure concerns its own topic."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock, patch

import pytest

from kafka_io import stopping
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.cluster import Cluster
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.list_offsets import ListOffsetsRequest
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.net.stream import Stream
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.load import sharing
from pipelines.load.load import Loader
from pipelines.load.load_topics import FETCHES_AT_ONCE, TopicLoads
from pipelines.load.sharing import SharedCluster, Turns, once
from pipelines.reports.outcome import TopicLoad
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from resources.stores.lake import tables_at_once
from tests.fakes.loaders import ReportName, changed
from tests.publishing import publish

pytestmark = pytest.mark.slow  # twenty topics in each test

TOPICS = [f"topic-{number:02}" for number in range(20)]
_AT_ONCE = tables_at_once("/lake")


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


@dataclass
class ManyTopics:
    """A broker with the topics, and a lake."""

    settings: Settings
    bootstrap: str

    def publish(self, topics: list[str]) -> None:
        """Publish two records to each of the topics."""
        for topic in topics:
            publish(topic, [b"a", b"b"], bootstrap=self.bootstrap)

    def load(self, topics: list[str], **changes: Any) -> dict[str, TopicLoad]:
        """Load topics in one run; returns the results by topic, in the order in which they ended."""
        loads: list[TopicLoad] = []
        with open_cluster(self.settings, "main") as cluster:
            topic_loads = TopicLoads(cluster)
            loader = changed(Loader.of(self.settings, topic_loads.cluster, no_spark), **changes)
            topic_loads.load(loader, topics, on_end=loads.append)
        return {load.topic: load for load in loads}


@contextmanager
def many_topics(folder: Path) -> Iterator[ManyTopics]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=folder / "broker")) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        settings = Settings(
            lake=str(folder / "lake"),
            clusters={"main": ClusterSettings(bootstrap=bootstrap)},
            caps=Caps(attempts=1, request_timeout_s=5),
        )
        many = ManyTopics(settings, bootstrap)
        many.publish(TOPICS)
        yield many


@contextmanager
def counted_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[type]]:
    """Counts the requests that wait for their answer, by type."""
    counts: Counter[type] = Counter()
    send = ModernBrokerConnection.request

    def request(self: ModernBrokerConnection, request: Any, **options: Any) -> Any:
        counts[type(request)] += 1
        return send(self, request, **options)

    with monkeypatch.context() as patched:
        patched.setattr(ModernBrokerConnection, "request", request)
        yield counts


def test_a_run_asks_its_brokers_once_about_all_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault O10
    """A topic with news is asked about again only after its fetch."""
    with many_topics(tmp_path) as many:
        first = many.load(TOPICS)
        assert {topic: (load.error, load.rows) for topic, load in first.items()} == dict.fromkeys(TOPICS, (None, 2))
        for count in (2, len(TOPICS)):
            with counted_requests(monkeypatch) as counts:
                ended = many.load(TOPICS[:count])
            assert {topic: (load.error, load.rows) for topic, load in ended.items()} == dict.fromkeys(
                TOPICS[:count], (None, 0)
            )
            assert counts == {MetadataRequest: 1, ListOffsetsRequest: 3}
        many.publish(TOPICS[:1])
        with counted_requests(monkeypatch) as counts:
            assert sum(load.rows for load in many.load(TOPICS).values()) == 2
        assert counts[ListOffsetsRequest] == 3
        # About all topics, by the fetch, and after it; for the last messages of the topic with news, and its records.
        assert (counts[MetadataRequest], counts[FetchRequest]) == (3, 2)


def test_the_fetches_of_a_run_share_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many topics a run has, it opens no more connections than it uses at the same time."""
    opened: list[Stream] = []
    connect = Stream.connect

    def noted(*arguments: Any) -> Stream:
        opened.append(connect(*arguments))
        return opened[-1]

    with many_topics(tmp_path) as many:
        monkeypatch.setattr(Stream, "connect", noted)
        for topics in (TOPICS, TOPICS[:1]):
            ended = many.load(topics)
            assert {load.error for load in ended.values()} == {None}
            # Each reader, and the cluster of the run, uses the bootstrap address first, and then the leader's.
            assert 0 < len(opened) <= 2 * (1 + FETCHES_AT_ONCE)
            assert [stream for stream in opened if stream._socket.fileno() != -1] == []  # all are closed after the run
            many.publish(topics)
            opened.clear()


def test_a_failure_concerns_its_own_topic(tmp_path: Path) -> None:  # fault O10
    with many_topics(tmp_path) as many:
        log = tmp_path / "lake" / "main" / TOPICS[3] / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text("{")
        ended = many.load([*TOPICS, "unknown"])
        errors = {topic: load.error.partition(":")[0] for topic, load in ended.items() if load.error}
        assert errors == {TOPICS[3]: "LogTorn", "unknown": "TopicUnknown"}
        assert sum(load.rows for load in ended.values()) == 2 * (len(TOPICS) - 1)


def test_brokers_that_do_not_answer_are_asked_once_for_all_topics(tmp_path: Path) -> None:
    """Each topic would wait for as long as an election of leaders takes."""
    with many_topics(tmp_path) as many:
        many.load(TOPICS[:2])
    asked, ended = list[Sequence[str]](), list[TopicLoad]()
    with open_cluster(many.settings, "main") as cluster:
        topic_loads = TopicLoads(cluster)
        loader = Loader.of(many.settings, topic_loads.cluster, no_spark)

        def described(names: Sequence[str]) -> object:
            asked.append(names)
            return cluster.described(names)

        again = Mock(side_effect=AssertionError("a topic is asked for again"))
        with patch.multiple(topic_loads.cluster, described=described, topic=again):
            topic_loads.load(loader, TOPICS, on_end=ended.append)
    assert [sorted(names) for names in asked] == [TOPICS]
    assert len(ended) == len(TOPICS)
    assert {str(load.error).partition(":")[0] for load in ended} == {"ConnectFailed"}


class Watched:
    """Counts how many threads are in a block, and keeps the most and the order in which they came."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = self.most = 0
        self.order: list[str] = []

    @contextmanager
    def block(self, name: str) -> Iterator[None]:
        """Count this block."""
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.order.append(name)
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1


def test_few_topics_load_at_a_time_in_their_order_and_fewer_fetch(tmp_path: Path) -> None:  # fault O10
    loading, fetching = Watched(), Watched()

    with many_topics(tmp_path) as many, open_cluster(many.settings, "main") as cluster:
        topic_loads = TopicLoads(cluster)
        loader = Loader.of(many.settings, topic_loads.cluster, no_spark)
        fetch = loader.run.fetcher.runner.fetch

        def slow_fetch(tasks: Any, on_progress: Any, ahead: Any) -> Any:
            with fetching.block(tasks[0].planned.topic):
                time.sleep(0.01)
                return fetch(tasks, on_progress, ahead)

        ended: list[TopicLoad] = []
        begun: list[str] = []
        reports: dict[ReportName, Callable[..., Any]] = {"progress": _noted(loading, loader.reports.progress)}
        loader = changed(loader, fetch=slow_fetch, reports=reports)
        topic_loads.load(loader, TOPICS, on_begin=begun.append, on_end=ended.append)
    assert fetching.most == FETCHES_AT_ONCE
    assert sorted(fetching.order) == sorted(load.topic for load in ended) == TOPICS
    assert begun[:_AT_ONCE] != begun
    assert sorted(begun[:_AT_ONCE]) == TOPICS[:_AT_ONCE]


def _noted(watched: Watched, on_progress: Callable[[str], Any]) -> Callable[[str], Any]:
    def noted(topic: str) -> Any:
        with watched.block(topic):
            return on_progress(topic)

    return noted


def test_turns_are_taken_in_the_order_of_coming() -> None:
    turns, order = Turns(1), list[int]()

    def take(number: int) -> None:
        with turns.turn():
            order.append(number)

    threads = []
    with turns.turn():
        for number in range(10):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            while len(turns._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(10))


def test_a_thread_that_stops_gives_its_turn_to_the_next() -> None:
    turns, stop, order = Turns(1), threading.Event(), list[str]()

    def take(name: str, event: threading.Event) -> None:
        with stopping.stops_with(event):
            try:
                with turns.turn():
                    order.append(name)
            except stopping.Stopped:
                order.append(f"{name} stopped")

    first = threading.Thread(target=take, args=("first", stop))
    second = threading.Thread(target=take, args=("second", threading.Event()))
    with turns.turn():
        for number, thread in enumerate((first, second)):
            thread.start()
            while len(turns._waiting) <= number:
                time.sleep(0.001)
        stop.set()
        first.join()
    second.join()
    assert order == ["first stopped", "second"]
    with turns.turn():
        pass


def test_a_turn_that_came_when_its_thread_stopped_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(1)

    def stopped_meanwhile() -> NoReturn:
        turns._give()
        raise stopping.Stopped

    turns._take()
    monkeypatch.setattr(sharing, "check_stop", stopped_meanwhile)
    with pytest.raises(stopping.Stopped):
        turns._take()
    assert turns._free == 1


def threads_of_topics() -> list[str]:
    """The names of the threads that load topics."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("topics-")]


def test_an_interruption_ends_all_threads_and_completes_commits(tmp_path: Path) -> None:  # fault O10
    """A part of the topics is loaded when Ctrl-C comes. The next run loads the others."""
    with many_topics(tmp_path) as many:
        ended: list[str] = []

        def interrupt(load: TopicLoad) -> None:
            ended.append(load.topic)
            if len(ended) == 3:
                raise KeyboardInterrupt

        with open_cluster(many.settings, "main") as cluster:
            topic_loads = TopicLoads(cluster)
            loader = Loader.of(many.settings, topic_loads.cluster, no_spark)
            with pytest.raises(KeyboardInterrupt):
                topic_loads.load(loader, TOPICS, on_end=interrupt)
            assert threads_of_topics() == []
        assert len(ended) == 3
        after = many.load(TOPICS)
        assert {load.error for load in after.values()} == {None}
        rows = {topic: load.rows for topic, load in after.items()}
        assert all(rows[topic] == 0 for topic in ended)
        assert sum(rows.values()) > 0


@pytest.mark.timeout(30)
@pytest.mark.parametrize("receiver", ["the thread that waits for messages", "another thread"])
def test_ctrl_c_ends_threads_that_wait(receiver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait between two attempts, or for the cluster, which another thread uses.

    The system may deliver the signal to any thread. It then does not end the wait for a message.
    """
    with many_topics(tmp_path) as many, open_cluster(many.settings, "main") as cluster:
        topic_loads = TopicLoads(cluster)
        loader = Loader.of(many.settings, topic_loads.cluster, no_spark)
        waiting, owner = threading.Event(), threading.get_ident()

        def wait(_names: Any) -> NoReturn:
            waiting.set()
            stopping.sleep(3600)
            pytest.fail("nothing ended the wait")

        monkeypatch.setattr(cluster, "described", wait)

        def interrupt() -> None:
            waiting.wait()
            signal.pthread_kill(threading.get_ident() if receiver == "another thread" else owner, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            topic_loads.load(loader, TOPICS, on_end=lambda load: pytest.fail(f"{load} ended"))
        assert threads_of_topics() == []


def test_calls_for_the_owner_run_in_its_thread(tmp_path: Path) -> None:
    """Spark's session, Dagster's instance and consumer groups belong to one thread."""
    callers: list[int] = []

    def mirror(_topic: str, _cursors: object) -> list[str]:
        callers.append(threading.get_ident())
        return ["a warning"]

    def report(load: TopicLoad) -> list[str]:
        callers.append(threading.get_ident())
        raise ValueError(load.topic)

    def on_progress(_topic: str) -> Callable[[int, int], None]:
        return lambda _done, _total: callers.append(threading.get_ident())

    with many_topics(tmp_path) as many:
        ended = many.load(TOPICS, reports={"committed": mirror, "progress": on_progress})
        assert len(callers) == 2 * len(TOPICS)
        assert {load.warnings[-1] for load in ended.values()} == {"a warning"}
        assert set(callers) == {threading.get_ident()}
        errors = {topic: load.error for topic, load in many.load(TOPICS, reports={"ended": report}).items()}
        assert all(str(error).startswith("ValueError") for error in errors.values()), errors
        assert errors.keys() == set(TOPICS)
        assert threads_of_topics() == []


def test_a_shared_cluster_passes_every_question_on() -> None:
    questions = {name for name, value in vars(Cluster).items() if callable(value) and not name.startswith("_")}
    assert questions - vars(SharedCluster).keys() == set()
    assert "bounds_of" in questions


def test_a_shared_value_is_made_once() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        time.sleep(0.01)
        made.append(name)
        return name

    shared = once(make)
    threads = [threading.Thread(target=shared, args=(name,)) for name in "aabb"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == ["a", "b"]
