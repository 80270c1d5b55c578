"""Brokers beside tables: what is read of both, and that one topic's trouble is its own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from kafka_io.client.modern.cluster import ModernCluster
from kafka_io.client.reading import Reading
from kafka_io.client.retention import FOREVER, Retention
from kafka_io.errors import AuthorizationFailed, ConnectFailed, KafkaIOError, RegistryUnavailable
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.ledger import Entry, Kind, Range, Topic
from pipelines.loading.table_log import Snapshot
from pipelines.watching.beside import statuses, watched
from pipelines.watching.status import By, Kept, State, TopicStatus
from resources.choices import Choices
from resources.errors import LakeUnavailable
from resources.settings import TopicRules
from tests.small_table import SmallTable

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)


@dataclass(kw_only=True)
class Brokers(ModernCluster):
    """A cluster that tells what the test says; it counts what it is asked."""

    held: dict[str, dict[BrokerPartition, Bounds | KafkaIOError]] = field(default_factory=dict)
    times: dict[tuple[str, int, int], int | KafkaIOError | None] = field(default_factory=dict)
    kept: dict[str, Retention | KafkaIOError] = field(default_factory=dict)
    id: str | None = "the-cluster"
    failing: dict[str, KafkaIOError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("main", reading=Reading())

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if what in self.failing:
            raise self.failing[what]

    def cluster_id(self) -> str | None:
        """See Cluster."""
        self._ask("id")
        return self.id

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """See Cluster."""
        self._ask("bounds")
        return {topic: {id_: self.held[topic][id_] for id_ in partitions} for topic, partitions in topics.items()}

    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """See Cluster."""
        self._ask("times")
        return {
            topic: {id_: self.times.get((topic, id_.partition, offset)) for id_, offset in offsets.items()}
            for topic, offsets in at.items()
        }

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """See Cluster."""
        self._ask("retention")
        return {topic: self.kept.get(topic, Retention()) for topic in topics}


@dataclass(kw_only=True)
class Table:
    """A table with these commits, newest first; None is none."""

    commits: list[Entry] | None = None
    trouble: Exception | None = None
    uri: str = "/lake/main/clicks"
    read: int = 0

    def existing(self) -> Snapshot | None:
        """See LakeTable."""
        if self.trouble:
            raise self.trouble
        if self.commits is None:
            return None
        return Snapshot(version=len(self.commits), entry=next(iter(self.commits), None))

    def entries(self, upto: Snapshot) -> Iterator[tuple[int, Entry]]:
        """See LakeTable."""
        self.read += 1
        yield from zip(range(upto.version, 0, -1), self.commits or (), strict=True)


def commit(
    cursors: Mapping[BrokerPartition, int], *, kind: Kind = Kind.LOAD, at_ms: int = NOW_MS, **more: Any
) -> Entry:
    """A commit after which the table covers its partitions from 0 on."""
    ranges = tuple(
        Range(broker=None, partition=0, start=0, stop=1, rows=1, bytes=1, loaded_at_us=at_ms * 1000) for _ in cursors
    )
    topic = Topic(cluster="main", cluster_id="the-cluster", name="clicks", incarnation="7")
    fields: dict[str, Any] = {"topic": topic, "ranges": ranges, **more}
    covered = {id_: (0, cursor) for id_, cursor in cursors.items()}
    return Entry(commit="c", run="r", code="1", kind=kind, sequence=1, covered=covered, **fields)


def entry(*partitions: BrokerPartition, name: str = "clicks", incarnation: str = "7") -> TopicEntry:
    return TopicEntry(name=name, incarnation=incarnation, partitions=partitions or (P0,))


def look(cluster: Brokers, table: Table, found: TopicEntry | None = None, **more: Any) -> TopicStatus:
    """How the topic `clicks` stands."""
    [status] = statuses(cluster, lambda _: table, {"clicks": found or entry()}, now_ms=NOW_MS, **more)
    return status


def behind(**more: Any) -> Brokers:
    """A log `[0, 10)` whose record 4 is two hours old; records are kept for a day."""
    told: dict[str, Any] = {
        "held": {"clicks": {P0: Bounds(earliest=0, latest=10)}},
        "times": {("clicks", 0, 4): NOW_MS - 2 * HOUR_MS},
        "kept": {"clicks": Retention(ms=24 * HOUR_MS, bytes=FOREVER)},
    }
    return Brokers(**{**told, **more})


def at_four() -> Table:
    return Table(commits=[commit({P0: 4}, at_ms=NOW_MS - 60_000)])


def test_a_topic_stands_between_its_brokers_and_its_table() -> None:
    one = look(behind(), at_four())
    assert (one.cluster, one.topic, one.incarnation, one.table, one.version) == (
        "main",
        "clicks",
        "7",
        "/lake/main/clicks",
        1,
    )
    assert (one.lag, one.loaded_at_ms, one.error, one.warnings) == (6, NOW_MS - 60_000, None, ())
    assert one.retention == Retention(ms=24 * HOUR_MS, bytes=FOREVER)
    assert one.kept == Kept(ms=24 * HOUR_MS, by=By.BROKERS)
    assert (one.late_s(NOW_MS), one.left_s(NOW_MS)) == (2 * 3600, 22 * 3600)


def test_what_is_all_loaded_is_asked_no_times() -> None:
    cluster = behind()
    one = look(cluster, Table(commits=[commit({P0: 10})]))
    assert (one.state(NOW_MS), one.late_s(NOW_MS)) == (State.LOADED, 0.0)
    assert "times" not in cluster.asked


def test_all_topics_are_asked_about_together() -> None:
    names = [f"topic-{number}" for number in range(50)]
    cluster = Brokers(held={name: {P0: Bounds(earliest=0, latest=10)} for name in names})
    found = statuses(cluster, lambda _: Table(), {name: entry(name=name) for name in names}, now_ms=NOW_MS)
    assert [one.topic for one in found] == names
    assert cluster.asked == ["id", "bounds", "retention", "times"]


def test_a_topic_without_a_table_is_new_and_lags_from_the_earliest() -> None:
    cluster = behind(times={("clicks", 0, 0): NOW_MS - HOUR_MS})
    one = look(cluster, Table())
    assert (one.version, one.loaded_at_ms, one.lag, one.state(NOW_MS)) == (None, None, 10, State.NEW)
    assert one.late_s(NOW_MS) == 3600


def test_a_table_that_was_only_made_is_new_too() -> None:
    one = look(behind(), Table(commits=[]))
    assert (one.version, one.state(NOW_MS)) == (0, State.NEW)


def test_a_topic_that_is_gone_keeps_its_cursor() -> None:
    cluster = Brokers()
    [one] = statuses(cluster, lambda _: at_four(), {"clicks": None}, now_ms=NOW_MS)
    assert (one.state(NOW_MS), one.incarnation, one.lag, one.error) == (State.GONE, None, None, None)
    assert [part.cursor for part in one.partitions] == [4]
    assert "retention" not in cluster.asked


def test_what_is_nowhere_is_an_error() -> None:
    [one] = statuses(Brokers(), lambda _: Table(), {"clicks": None}, now_ms=NOW_MS)
    assert (one.state(NOW_MS), one.partitions) == (State.ERROR, ())


@pytest.mark.parametrize("trouble", [LakeUnavailable("no answer"), KeyError("covered")])
def test_a_table_that_cannot_be_read_is_its_own_trouble(trouble: Exception) -> None:
    tables = {"clicks": Table(trouble=trouble), "views": Table()}
    held: Any = {name: {P0: Bounds(earliest=0, latest=10)} for name in tables}
    topics = {name: entry(name=name) for name in tables}
    clicks, views = statuses(Brokers(held=held), tables.__getitem__, topics, now_ms=NOW_MS)
    assert (clicks.error, clicks.lag) == (f"{type(trouble).__name__}: {trouble}", None)
    assert (views.error, views.lag) == (None, 10)


def test_a_broker_that_is_silent_is_the_trouble_of_its_partitions() -> None:
    held: Any = {"clicks": {P0: Bounds(earliest=0, latest=10), P1: ConnectFailed("nobody there")}}
    one = look(behind(held=held), Table(commits=[commit({P0: 4, P1: 6})]), entry(P0, P1))
    assert (one.error, one.lag) == ("ConnectFailed: nobody there", None)
    assert [(part.latest, part.cursor) for part in one.partitions] == [(10, 4), (None, 6)]
    assert one.left_s(NOW_MS) == 22 * 3600


def test_brokers_that_cannot_be_asked_at_all_are_an_error_of_each_topic() -> None:
    gone = RegistryUnavailable("no answer")
    one = look(behind(failing={"id": gone, "bounds": gone}), at_four())
    assert (one.error, one.lag, one.partitions[0].cursor) == ("RegistryUnavailable: no answer", None, 4)


def test_times_that_are_not_told_are_not_known() -> None:
    one = look(behind(failing={"times": ConnectFailed("no")}), at_four())
    assert (one.error, one.late_s(NOW_MS), one.left_s(NOW_MS), one.lag) == (None, None, None, 6)


# B05, B06
def test_a_recreated_topic_is_an_error_unless_loads_restart_it() -> None:
    found = entry(incarnation="8")
    stopped = look(behind(), at_four(), found)
    assert str(stopped.error).startswith("TopicRecreated: the table holds incarnation 7")
    restarted = look(behind(), at_four(), found, choices=Choices(on_recreated="restart"))
    assert (restarted.error, restarted.lag, restarted.partitions[0].cursor) == (None, 10, None)


def test_another_name_of_the_same_life_is_no_other() -> None:
    assert look(behind(), at_four(), replace(entry(incarnation="8"), also=("7",))).error is None


# B14
def test_a_log_that_ends_before_the_cursor_is_an_error() -> None:
    one = look(behind(), Table(commits=[commit({P0: 12})]))
    assert one.error == "the log of partition 0 ends at 10, the table holds it up to 12"
    assert one.lag == 0


# B07
def test_what_retention_took_before_it_was_loaded_is_lost() -> None:
    held: Any = {"clicks": {P0: Bounds(earliest=7, latest=10)}}
    one = look(behind(held=held), at_four())
    assert (one.lag, one.lost, one.state(NOW_MS)) == (3, 3, State.LOSING)


def test_a_partition_that_vanished_is_an_error_unless_loads_wait_for_it() -> None:
    table = Table(commits=[commit({P0: 4, P1: 6})])
    assert str(look(behind(), table).error).startswith("PartitionsVanished: ")
    waiting = look(behind(), table, choices=Choices(on_vanished="wait"))
    assert waiting.error is None
    assert len(waiting.warnings) == 1


def test_the_settings_say_how_long_records_are_kept_where_brokers_do_not() -> None:
    one = look(behind(kept={}), at_four(), fallback=timedelta(hours=3))
    assert (one.kept, one.left_s(NOW_MS)) == (Kept(ms=3 * HOUR_MS, by=By.SETTINGS), 3600)


@pytest.mark.parametrize("ms", [FOREVER, 0, HOUR_MS])
def test_what_brokers_say_is_above_the_settings(ms: int) -> None:
    one = look(behind(kept={"clicks": Retention(ms=ms)}), at_four(), fallback=timedelta(hours=3))
    assert one.kept == Kept(ms=ms, by=By.BROKERS)


def test_what_does_not_expire_has_no_end() -> None:
    one = look(behind(kept={"clicks": Retention(ms=FOREVER)}), at_four())
    assert (one.late_s(NOW_MS), one.left_s(NOW_MS), one.state(NOW_MS)) == (2 * 3600, None, State.BEHIND)


def test_a_refusal_to_tell_is_a_warning() -> None:
    one = look(behind(kept={"clicks": AuthorizationFailed("you may not")}), at_four())
    assert (one.error, one.kept.by) == (None, By.NOBODY)
    [warning] = one.warnings
    assert "AuthorizationFailed: you may not" in warning


def test_brokers_that_fail_to_tell_how_long_are_a_warning_too() -> None:
    one = look(behind(failing={"retention": ConnectFailed("no")}), at_four())
    assert (one.error, len(one.warnings)) == (None, 1)


def test_a_trimmed_log_shows_how_long_records_are_kept() -> None:
    held: Any = {"clicks": {P0: Bounds(earliest=2, latest=10)}}
    times = {("clicks", 0, 2): NOW_MS - 30 * HOUR_MS, ("clicks", 0, 4): NOW_MS - 29 * HOUR_MS}
    one = look(behind(held=held, times=times, kept={}), at_four())
    assert (one.kept, one.left_s(NOW_MS)) == (Kept(ms=30 * HOUR_MS, by=By.ESTIMATE), 3600)


@pytest.mark.parametrize(
    ("earliest", "oldest_ms"), [(0, NOW_MS - 30 * HOUR_MS), (2, None), (2, NOW_MS), (2, NOW_MS + HOUR_MS)]
)
def test_what_shows_nothing_is_no_estimate(earliest: int, oldest_ms: int | None) -> None:
    held: Any = {"clicks": {P0: Bounds(earliest=earliest, latest=10)}}
    times: Any = {("clicks", 0, earliest): oldest_ms, ("clicks", 0, 4): NOW_MS - HOUR_MS}
    one = look(behind(held=held, times=times, kept={}), at_four())
    assert (one.kept.by, one.left_s(NOW_MS), one.late_s(NOW_MS)) == (By.NOBODY, None, 3600)


def test_the_newest_load_is_the_last_commit_that_brought_something() -> None:
    table = Table(
        commits=[
            commit({P0: 4}, kind=Kind.REWIND, target=1),
            commit({P0: 6}, kind=Kind.REPLAY, at_ms=NOW_MS - 1),
            commit({P0: 6}, ranges=()),
            commit({P0: 6}, at_ms=NOW_MS - 5000),
            commit({P0: 1}, at_ms=NOW_MS - 9000),
        ]
    )
    assert look(behind(), table).loaded_at_ms == NOW_MS - 5000


def test_a_table_whose_last_commit_is_a_load_is_read_once() -> None:
    table = at_four()
    look(behind(), table)
    assert table.read == 0


def test_a_real_table_tells_the_same(small: SmallTable) -> None:
    id_ = BrokerPartition(0, 0)
    small.commit(small.write(0, 50))
    cluster = Brokers(id=None, held={"clicks": {id_: Bounds(earliest=0, latest=80)}})
    [one] = statuses(cluster, lambda _: small.table, {"clicks": entry(id_)}, now_ms=NOW_MS)
    assert (one.version, one.lag, one.loaded_at_ms, one.error) == (1, 30, 0, None)


def test_topics_are_those_of_the_cluster_and_those_that_have_a_table() -> None:
    found = [entry(name="b"), entry(name="a"), entry(name="x1")]
    known = watched(found, ["b", "c", "x2"], TopicRules(deny=("x.",)))
    assert list(known) == ["a", "b", "c"]
    assert [one and one.name for one in known.values()] == ["a", "b", None]
