"""The status of topics from brokers and tables. An error of one topic does not affect the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from kafka_io.cluster.modern_cluster import ModernCluster
from kafka_io.cluster.open_transactions import OpenTransaction
from kafka_io.cluster.retention import FOREVER, Retention
from kafka_io.errors import AuthorizationFailed, ConnectFailed, KafkaIOError, RegistryUnavailable
from kafka_io.model import Bounds, BrokerPartition, Generation, OffsetRange, TopicEntry
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.event_time import EventTime, PartitionTime
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.ledger.table_routes import TableRoutes
from pipelines.status.collect import statuses, statuses_of, watched
from pipelines.status.status import RetentionPeriod, RetentionSource, TopicState, TopicStatus
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from resources.errors import LakeUnavailable
from resources.settings.choices import Choices
from resources.settings.settings import Settings
from resources.settings.topic_sections import TopicRules
from tests.fakes.open_table import FakeOpenTable
from tests.small_table import SmallTable

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)


@dataclass(kw_only=True)
class Brokers(ModernCluster):
    """A cluster with the answers that the test gives. It counts its calls."""

    bounds_by_topic: dict[str, dict[BrokerPartition, Bounds | KafkaIOError]] = field(default_factory=dict)
    times: dict[tuple[str, int, int], int | KafkaIOError | None] = field(default_factory=dict)
    kept: dict[str, Retention | KafkaIOError] = field(default_factory=dict)
    id: str | None = "the-cluster"
    failing: dict[str, KafkaIOError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(Source(cluster="main", generation=Generation.MODERN, brokers=(), read_settings=ReadSettings()))

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
        return {
            topic: {id_: self.bounds_by_topic[topic][id_] for id_ in partitions} for topic, partitions in topics.items()
        }

    def times_at(
        self, offsets: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """See Cluster."""
        self._ask("times")
        return {
            topic: {id_: self.times.get((topic, id_.partition, offset)) for id_, offset in partitions.items()}
            for topic, partitions in offsets.items()
        }

    def open_transactions(
        self, offsets: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, OpenTransaction]]:
        """See Cluster."""
        self._ask("transactions")
        return {
            topic: {
                id_: OpenTransaction(first_offset=offset, began_ms=NOW_MS - HOUR_MS, producer_id=4711)
                for id_, offset in partitions.items()
            }
            for topic, partitions in offsets.items()
        }

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """See Cluster."""
        self._ask("retention")
        return {topic: self.kept.get(topic, Retention()) for topic in topics}


FILES = {f"{number}.parquet": pa.table({"offset": range(number)}) for number in range(1, 4)}
"""The rows of the data files of each table."""


@dataclass(kw_only=True)
class Table:
    """A table with these commits, newest first. None means that there is no table."""

    entries: list[LedgerEntry] | None = None
    trouble: Exception | None = None
    uri: str = "/lake/main/clicks"
    read: int = 0
    opened: int = 0

    def existing(self) -> TableSnapshot | None:
        """See DeltaLakeTable."""
        self.opened += 1
        if self.trouble:
            raise self.trouble
        if self.entries is None:
            return None
        entry = next(iter(self.entries), None)
        return TableSnapshot(version=len(self.entries), entry=entry, open_table=FakeOpenTable(read=lambda: FILES))

    def commits(self, newest: int) -> Iterator[TableCommit]:
        """See DeltaLakeTable."""
        self.read += 1
        for version, entry_ in zip(range(newest, 0, -1), self.entries or (), strict=True):
            time = datetime.fromtimestamp(NOW_MS / 1000, UTC)
            yield TableCommit(version=version, time=time, operation="WRITE", entry=entry_)


def always(table: Table) -> Callable[[str], DeltaLakeTable]:
    """The table of every topic."""
    return lambda _: cast("DeltaLakeTable", table)


def commit(
    cursors: Mapping[BrokerPartition, int],
    *,
    kind: CommitKind = CommitKind.LOAD,
    at_ms: int = NOW_MS,
    event_time: EventTime | None = None,
    **more: Any,
) -> LedgerEntry:
    """A commit after which the table covers its partitions from 0 on."""
    ranges = tuple(
        CommittedRange(offsets=OffsetRange(BrokerPartition(None, 0), 0, 1), rows=1, bytes=1, loaded_at_us=at_ms * 1000)
        for _ in cursors
    )
    topic = TopicIdentity(cluster="main", cluster_id="the-cluster", name="clicks", incarnation="7")
    fields: dict[str, Any] = {"ranges": ranges, **more}
    covered = {id_: (0, cursor) for id_, cursor in cursors.items()}
    state = replace(TableState.new(topic), covered=covered, event_time=event_time)
    return LedgerEntry(commit="c", run="r", code="1", kind=kind, sequence=1, state=state, **fields)


def entry(*partitions: BrokerPartition, name: str = "clicks", incarnation: str = "7") -> TopicEntry:
    return TopicEntry(name=name, incarnation=incarnation, partitions=partitions or (P0,))


def status_of(cluster: Brokers, table: Table, topic_entry: TopicEntry | None = None, **more: Any) -> TopicStatus:
    """The status of the topic `clicks`."""
    [status] = statuses(cluster, always(table), {"clicks": topic_entry or entry()}, now_ms=NOW_MS, **more)
    return status


def behind(**more: Any) -> Brokers:
    """A log `[0, 10)` whose record 4 is two hours old; records are kept for a day."""
    defaults: dict[str, Any] = {
        "bounds_by_topic": {"clicks": {P0: Bounds(earliest=0, latest=10)}},
        "times": {("clicks", 0, 4): NOW_MS - 2 * HOUR_MS},
        "kept": {"clicks": Retention(ms=24 * HOUR_MS, bytes=FOREVER)},
    }
    return Brokers(**{**defaults, **more})


def at_four() -> Table:
    return Table(entries=[commit({P0: 4}, at_ms=NOW_MS - 60_000)])


def test_a_status_combines_brokers_and_table() -> None:
    status = status_of(behind(), at_four())
    assert (status.cluster, status.topic, status.incarnation, status.table, status.version) == (
        "main",
        "clicks",
        "7",
        "/lake/main/clicks",
        1,
    )
    assert (status.lag, status.loaded_at_ms, status.error, status.warnings) == (6, NOW_MS - 60_000, None, ())
    assert status.retention == Retention(ms=24 * HOUR_MS, bytes=FOREVER)
    assert status.kept == RetentionPeriod(ms=24 * HOUR_MS, by=RetentionSource.BROKERS)
    assert (status.late_s(NOW_MS), status.left_s(NOW_MS)) == (2 * 3600, 22 * 3600)


def test_a_commit_that_only_says_that_nothing_is_new_is_the_last_load() -> None:
    asked_ms, valid_ms = NOW_MS - 5000, NOW_MS - 65_000
    partitions = {P0: PartitionTime(asked_ms=asked_ms, at_end=True, proven_ms=asked_ms)}
    times = EventTime(column="timestamp", lateness_ms=60_000, valid_through_ms=valid_ms, partitions=partitions)
    idle = commit({P0: 10}, ranges=(), event_time=times)
    status = status_of(behind(), Table(entries=[idle, commit({P0: 10}, at_ms=NOW_MS - 60_000)]))
    assert (status.loaded_at_ms, status.valid_through_ms) == (asked_ms, valid_ms)
    assert status_of(behind(), at_four()).valid_through_ms is None


def test_a_loaded_topic_needs_no_request_for_times() -> None:
    cluster = behind()
    status = status_of(cluster, Table(entries=[commit({P0: 10})]))
    assert (status.state(NOW_MS), status.late_s(NOW_MS)) == (TopicState.LOADED, 0.0)
    assert "times" not in cluster.asked


def test_all_topics_share_their_requests() -> None:
    names = [f"topic-{number}" for number in range(50)]
    cluster = Brokers(bounds_by_topic={name: {P0: Bounds(earliest=0, latest=10)} for name in names})
    all_statuses = statuses(cluster, always(Table()), {name: entry(name=name) for name in names}, now_ms=NOW_MS)
    assert [status.topic for status in all_statuses] == names
    assert cluster.asked == ["id", "bounds", "retention", "times"]


def test_a_topic_without_a_table_is_new_and_lags_from_the_earliest() -> None:
    cluster = behind(times={("clicks", 0, 0): NOW_MS - HOUR_MS})
    status = status_of(cluster, Table())
    assert (status.version, status.loaded_at_ms, status.lag, status.state(NOW_MS)) == (None, None, 10, TopicState.NEW)
    assert status.late_s(NOW_MS) == 3600


def test_a_table_without_loads_is_new_too() -> None:
    status = status_of(behind(), Table(entries=[]))
    assert (status.version, status.state(NOW_MS)) == (0, TopicState.NEW)


def test_a_topic_that_is_gone_keeps_its_cursor() -> None:
    cluster = Brokers()
    [status] = statuses(cluster, always(at_four()), {"clicks": None}, now_ms=NOW_MS)
    assert (status.state(NOW_MS), status.incarnation, status.lag, status.error) == (TopicState.GONE, None, None, None)
    assert [part.cursor for part in status.partitions] == [4]
    assert "retention" not in cluster.asked


def test_a_topic_without_cluster_and_table_is_an_error() -> None:
    [status] = statuses(Brokers(), always(Table()), {"clicks": None}, now_ms=NOW_MS)
    assert (status.state(NOW_MS), status.partitions) == (TopicState.ERROR, ())


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (LakeUnavailable("no answer"), "no answer"),
        (KeyError("covered"), "an unexpected error; `penstock --debug`"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error_of_its_topic(trouble: Exception, sentence: str) -> None:
    tables = {"clicks": Table(trouble=trouble), "views": Table()}
    bounds_by_topic: Any = {name: {P0: Bounds(earliest=0, latest=10)} for name in tables}
    topics = {name: entry(name=name) for name in tables}
    clicks, views = statuses(
        Brokers(bounds_by_topic=bounds_by_topic), lambda topic: always(tables[topic])(topic), topics, now_ms=NOW_MS
    )
    assert (clicks.error or "").startswith(f"{type(trouble).__name__}: {sentence}")
    assert clicks.lag is None
    assert (views.error, views.lag) == (None, 10)


def test_a_silent_broker_is_an_error_of_its_partitions() -> None:
    bounds_by_topic: Any = {"clicks": {P0: Bounds(earliest=0, latest=10), P1: ConnectFailed("nobody there")}}
    status = status_of(behind(bounds_by_topic=bounds_by_topic), Table(entries=[commit({P0: 4, P1: 6})]), entry(P0, P1))
    assert (status.error, status.lag) == ("ConnectFailed: nobody there (PS-201)", None)
    assert [(part.latest, part.cursor) for part in status.partitions] == [(10, 4), (None, 6)]
    assert status.left_s(NOW_MS) == 22 * 3600


def test_an_error_of_all_brokers_is_an_error_of_each_topic() -> None:
    gone = RegistryUnavailable("no answer")
    status = status_of(behind(failing={"id": gone, "bounds": gone}), at_four())
    assert (status.error, status.lag, status.partitions[0].cursor) == (
        "RegistryUnavailable: no answer (PS-216)",
        None,
        4,
    )


def test_times_that_brokers_do_not_report_are_unknown() -> None:
    status = status_of(behind(failing={"times": ConnectFailed("no")}), at_four())
    assert (status.error, status.late_s(NOW_MS), status.left_s(NOW_MS), status.lag) == (None, None, None, 6)


# faults B05, B06
def test_a_recreated_topic_is_an_error_unless_loads_restart_it() -> None:
    topic_entry = entry(incarnation="8")
    stopped = status_of(behind(), at_four(), topic_entry)
    assert str(stopped.error).startswith(
        "TopicRecreated: the topic is not the one that the table holds (creation zxid 8 instead of 7)"
    )
    restarted = status_of(behind(), at_four(), topic_entry, choices=Choices(on_recreated="restart"))
    assert (restarted.error, restarted.lag, restarted.partitions[0].cursor) == (None, 10, 0)


def test_another_id_of_the_same_incarnation_is_no_error() -> None:
    assert (
        status_of(behind(), at_four(), replace(entry(incarnation="AAAAAAAAAAAAAAAAAAAABw"), also=("7",))).error is None
    )


# fault B14
def test_a_log_that_ends_before_the_cursor_is_an_error() -> None:
    status = status_of(behind(), Table(entries=[commit({P0: 12})]))
    sentence = "the log of partition 0 ends at 10, but the table holds offsets up to 12"
    assert status.error == f"CursorAheadOfLog: {sentence} (PS-302)"
    assert status.lag == 0


# fault B07
def test_records_that_expired_before_their_load_are_lost() -> None:
    bounds_by_topic: Any = {"clicks": {P0: Bounds(earliest=7, latest=10)}}
    status = status_of(behind(bounds_by_topic=bounds_by_topic), at_four())
    assert (status.lag, status.lost, status.state(NOW_MS)) == (3, 3, TopicState.LOSING)


def test_a_partition_that_vanished_is_an_error_unless_loads_wait_for_it() -> None:
    table = Table(entries=[commit({P0: 4, P1: 6})])
    assert str(status_of(behind(), table).error).startswith("PartitionsVanished: ")
    waiting = status_of(behind(), table, choices=Choices(on_vanished="wait"))
    assert waiting.error is None
    assert len(waiting.warnings) == 1


def test_the_retention_of_the_settings_is_used_if_brokers_report_none() -> None:
    status = status_of(behind(kept={}), at_four(), fallback=timedelta(hours=3))
    assert (status.kept, status.left_s(NOW_MS)) == (RetentionPeriod(ms=3 * HOUR_MS, by=RetentionSource.SETTINGS), 3600)


@pytest.mark.parametrize("ms", [FOREVER, 0, HOUR_MS])
def test_the_retention_of_the_brokers_overrides_the_settings(ms: int) -> None:
    status = status_of(behind(kept={"clicks": Retention(ms=ms)}), at_four(), fallback=timedelta(hours=3))
    assert status.kept == RetentionPeriod(ms=ms, by=RetentionSource.BROKERS)


def test_records_that_never_expire_have_no_time_left() -> None:
    status = status_of(behind(kept={"clicks": Retention(ms=FOREVER)}), at_four())
    assert (status.late_s(NOW_MS), status.left_s(NOW_MS), status.state(NOW_MS)) == (2 * 3600, None, TopicState.BEHIND)


def test_a_refused_request_for_the_retention_is_a_warning() -> None:
    status = status_of(behind(kept={"clicks": AuthorizationFailed("you may not")}), at_four())
    assert (status.error, status.kept.by) == (None, RetentionSource.NOBODY)
    [warning] = status.warnings
    assert "AuthorizationFailed: you may not" in warning


def test_a_failed_request_for_the_retention_is_a_warning() -> None:
    status = status_of(behind(failing={"retention": ConnectFailed("no")}), at_four())
    assert (status.error, len(status.warnings)) == (None, 1)


def test_the_retention_is_estimated_from_a_trimmed_log() -> None:
    bounds_by_topic: Any = {"clicks": {P0: Bounds(earliest=2, latest=10)}}
    times = {("clicks", 0, 2): NOW_MS - 30 * HOUR_MS, ("clicks", 0, 4): NOW_MS - 29 * HOUR_MS}
    status = status_of(behind(bounds_by_topic=bounds_by_topic, times=times, kept={}), at_four())
    assert (status.kept, status.left_s(NOW_MS)) == (RetentionPeriod(ms=30 * HOUR_MS, by=RetentionSource.ESTIMATE), 3600)


@pytest.mark.parametrize(
    ("earliest", "oldest_ms"), [(0, NOW_MS - 30 * HOUR_MS), (2, None), (2, NOW_MS), (2, NOW_MS + HOUR_MS)]
)
def test_a_log_that_was_not_trimmed_gives_no_estimate(earliest: int, oldest_ms: int | None) -> None:
    bounds_by_topic: Any = {"clicks": {P0: Bounds(earliest=earliest, latest=10)}}
    times: Any = {("clicks", 0, earliest): oldest_ms, ("clicks", 0, 4): NOW_MS - HOUR_MS}
    status = status_of(behind(bounds_by_topic=bounds_by_topic, times=times, kept={}), at_four())
    assert (status.kept.by, status.left_s(NOW_MS), status.late_s(NOW_MS)) == (RetentionSource.NOBODY, None, 3600)


def test_the_newest_load_is_the_last_commit_with_new_ranges() -> None:
    table = Table(
        entries=[
            commit({P0: 4}, kind=CommitKind.REWIND, target=1),
            commit({P0: 6}, kind=CommitKind.REPLAY, at_ms=NOW_MS - 1),
            commit({P0: 6}, ranges=()),
            commit({P0: 6}, at_ms=NOW_MS - 5000),
            commit({P0: 1}, at_ms=NOW_MS - 9000),
        ]
    )
    assert status_of(behind(), table).loaded_at_ms == NOW_MS - 5000


def test_a_table_whose_last_commit_is_a_load_is_read_once() -> None:
    table = at_four()
    status_of(behind(), table)
    assert table.read == 0


def test_a_table_that_no_load_has_committed_to_has_no_last_load() -> None:
    table = Table(entries=[commit({P0: 4}, kind=CommitKind.REWIND, target=1), commit({P0: 6}, ranges=())])
    assert status_of(behind(), table).loaded_at_ms is None


def test_errors_of_last_loads_that_cannot_be_read_hide_no_status(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    folder = lake / "main" / "_penstock"
    folder.mkdir(parents=True)
    (folder / "last_errors").write_text("a file where the folder of errors should be")
    file = tmp_path / "penstock.toml"
    file.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:9"')
    cluster: Any = behind(id="the-cluster")
    [status] = statuses_of(cluster, Settings.load(file), {"clicks": entry()}, now_ms=NOW_MS)
    assert (status.lag, status.error) == (10, None)


def test_a_real_table_gives_the_same_status(small: SmallTable) -> None:
    id_ = BrokerPartition(0, 0)
    small.commit(small.write(0, 50))
    cluster = Brokers(id=None, bounds_by_topic={"clicks": {id_: Bounds(earliest=0, latest=80)}})
    [status] = statuses(cluster, lambda _: small.table, {"clicks": entry(id_)}, now_ms=NOW_MS)
    assert (status.version, status.lag, status.loaded_at_ms, status.error) == (1, 30, 0, None)


def test_the_watched_topics_are_those_of_the_cluster_and_those_with_a_table() -> None:
    entries = [entry(name="b"), entry(name="a"), entry(name="x1")]
    known = watched(entries, ["b", "c", "x2"], TopicRules(deny=("x.",)))
    assert list(known) == ["a", "b", "c"]
    assert [status and status.name for status in known.values()] == ["a", "b", None]


def two_tables(cursor: int | None, *, own: int = 7) -> dict[str, Table]:
    """The tables of a topic by name. The second one is loaded up to a cursor, or is gone."""
    of_topic = commit({P0: own})
    routes = TableRoutes(by="header:type", names=(("order", "orders"),), others="main")
    second = None if cursor is None else [commit({P0: cursor})]
    return {
        "clicks": Table(entries=[replace(of_topic, state=replace(of_topic.state, routes=routes))]),
        "clicks/orders": Table(entries=second, uri="/lake/main/orders"),
    }


def routed(cursor: int | None, *, own: int = 7) -> TopicStatus:
    """The status of the topic of these tables."""
    tables = two_tables(cursor, own=own)
    [status] = statuses(behind(), lambda name: always(tables[name])(name), {"clicks": entry()}, now_ms=NOW_MS)
    return status


@pytest.mark.parametrize(("cursor", "lag"), [(4, 6), (9, 3)])
def test_a_topic_lags_as_far_as_the_last_of_its_tables(cursor: int, lag: int) -> None:
    assert (routed(cursor).lag, routed(cursor).error) == (lag, None)


def test_each_table_of_a_topic_is_read_once() -> None:
    tables = two_tables(4)
    topics = {"clicks": entry(), "clicks/orders": entry()}
    of_topic, _ = statuses(behind(), lambda name: always(tables[name])(name), topics, now_ms=NOW_MS)
    assert (of_topic.topic, of_topic.lag) == ("clicks", 6)
    assert [table.opened for table in tables.values()] == [1, 1]


def test_a_table_that_is_gone_is_an_error_of_its_topic() -> None:
    error = str(routed(None).error)
    assert error.startswith("TableLost: the table /lake/main/orders has no rows, but the topic was loaded into it")
    assert "topic=clicks/orders" in error


def held_back(**more: Any) -> Brokers:
    """A log with 1,000 records after the last stable offset, which is 10."""
    return Brokers(bounds_by_topic={"clicks": {P0: Bounds(earliest=0, latest=10, held_back=1000)}}, **more)


def test_the_transaction_that_holds_records_back_is_described(  # fault N06
) -> None:
    kept = {"clicks": Retention(ms=24 * HOUR_MS)}
    status = status_of(held_back(kept=kept), Table(entries=[commit({P0: 10})]))
    [partition] = status.partitions
    assert partition.transaction == OpenTransaction(first_offset=10, began_ms=NOW_MS - HOUR_MS, producer_id=4711)
    assert (status.lag, status.loadable, status.state(NOW_MS)) == (1000, 0, TopicState.HELD_BACK)
    # The oldest record without a row is the first of the transaction, and retention may remove it.
    assert (status.late_s(NOW_MS), status.left_s(NOW_MS)) == (3600, 23 * 3600)


def test_records_that_retention_removes_from_an_open_transaction_are_at_risk() -> None:  # fault N06
    kept = {"clicks": Retention(ms=HOUR_MS + 60_000)}
    status = status_of(held_back(kept=kept), Table(entries=[commit({P0: 10})]))
    assert status.state(NOW_MS) is TopicState.AT_RISK


def test_a_transaction_that_no_broker_describes_still_counts_as_lag() -> None:  # fault N06
    failing: dict[str, KafkaIOError] = {"transactions": ConnectFailed("nobody there")}
    status = status_of(held_back(failing=failing), Table(entries=[commit({P0: 10})]))
    assert (status.lag, status.state(NOW_MS)) == (1000, TopicState.BEHIND)


def test_brokers_are_not_asked_for_transactions_where_nothing_is_held_back() -> None:
    cluster = Brokers(bounds_by_topic={"clicks": {P0: Bounds(earliest=0, latest=10)}})
    status_of(cluster, Table(entries=[commit({P0: 10})]))
    assert "transactions" not in cluster.asked
