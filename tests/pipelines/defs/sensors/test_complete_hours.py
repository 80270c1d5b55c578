"""The sensor of complete hours reports each hour when it is complete, with its rows, and again after late rows."""

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import pytest

from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog, topic_schedules
from pipelines.defs.catalog.known_topics import KnownTopics, TopicStorage
from pipelines.defs.sensors.complete_hours import MAX_REPORTS, complete_hours_sensors
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.event_time import OLDER
from pipelines.status import complete_windows
from pipelines.status.window_progress import MAX_AGAIN
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from tests.pipelines.defs.declared import key, storage_of
from tests.timed_table import HOUR_MS, TimedTable

pytestmark = pytest.mark.slow

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_MS = int(FIRST.timestamp()) * 1000
HOURLY = {"event_time": "timestamp", "complete": "hourly", "complete_since": "2026-01-01"}
DAILY = {**HOURLY, "complete": "daily"}
Report = tuple[str, Any, Any]
"""The key of a partition, its rows, and its late rows."""


def at(hour: float) -> int:
    """The time of this hour after the first one, in ms."""
    return FIRST_MS + round(hour * HOUR_MS)


class Cluster:
    """The topic `clicks` with its table, and the ticks of the sensor."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.table = TimedTable(root)
        self.cursor: str | None = None
        self.topics: dict[str, Mapping[str, Any]] = {"clicks": HOURLY}
        self.seconds = 0.0
        storage_of(instance).add(["clicks"])

    @property
    def catalog(self) -> Catalog:
        """The catalog of the definitions, as a process that begins now has it."""
        settings = Settings.of(
            {
                "lake": self.table.lake.root,
                "webserver": "",
                "clusters": {"main": {"bootstrap": "127.0.0.1:1"}},
                "topics": self.topics,
            },
            folder=Path("/"),
        )
        known = {"main": storage_of(self.instance).known()}
        return Catalog(source=PenstockResource(inline=settings), settings=settings, known=known)

    @property
    def definitions(self) -> dg.Definitions:
        """The definitions of such a process."""
        return definitions_of(self.catalog)

    def tick(self) -> list[Report]:
        """The reports of the next tick."""
        return self.evaluated()[1]

    def evaluated(self) -> tuple[Any, list[Report]]:
        """The next tick, and its reports, which the instance gets as from the daemon."""
        with dg.build_sensor_context(
            instance=self.instance, definitions=self.definitions, cursor=self.cursor
        ) as context:
            result = self.definitions.resolve_sensor_def("complete_hours__main").evaluate_tick(context)
        self.cursor = result.cursor
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        return result, [
            (
                str(event.partition),
                event.metadata["dagster/partition_row_count"].value,
                event.metadata["late_rows"].value,
            )
            for event in result.asset_events
        ]

    def load(self, *hours: float | None, through: float | None = None, **options: Any) -> None:
        """Load rows of these hours; then the table is complete through another one."""
        times = [None if hour is None else at(hour) for hour in hours]
        self.table.load_at(times, through_ms=None if through is None else at(through), **options)

    def hours(self) -> set[str]:
        """The partitions that the instance shows as materialized."""
        return set(self.instance.get_materialized_partitions(dg.AssetKey([*key("clicks").path, "hours"])))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Cluster(tmp_path / "lake", instance)


def name(hour: int) -> str:
    return f"2026-01-{1 + hour // 24:02}-{hour % 24:02}:00"


def test_an_hour_is_reported_when_the_table_is_complete_through_its_end(cluster: Cluster) -> None:
    cluster.load(0.1, 0.2, 1.5, through=0.99)
    assert cluster.tick() == []
    cluster.load(1.6, 2.5, through=2)
    assert cluster.tick() == [(name(0), 2, 0), (name(1), 2, 0)]
    assert cluster.tick() == []
    assert cluster.hours() == {name(0), name(1)}


def test_an_hour_without_rows_is_reported_too(cluster: Cluster) -> None:
    cluster.load(1.5, through=2)
    assert cluster.tick() == [(name(0), 0, 0), (name(1), 1, 0)]


def test_nothing_is_reported_without_proof(cluster: Cluster) -> None:
    cluster.load(0.5, 9)
    assert cluster.tick() == []
    shutil.rmtree(cluster.table.uri)
    assert cluster.tick() == []


def test_the_event_says_what_the_table_had(cluster: Cluster) -> None:
    cluster.load(0.5, through=1.25)
    cluster.load(2)
    cluster.load(2, through=1.25)
    result, _ = cluster.evaluated()
    [event] = result.asset_events
    assert event.asset_key == dg.AssetKey(["lake", "main", "clicks", "hours"])
    assert event.metadata["table_version"].value == 3
    assert event.metadata["valid_through"].value == at(1.25) / 1000


# fault N59
def test_late_rows_report_their_hour_again(cluster: Cluster) -> None:
    cluster.load(0.5, 1.5, 2.5, through=3)
    cluster.tick()
    cluster.load(0.6, 2.6, 2.7, 3.5, through=3, late={"2026-01-01T00": 1, "2026-01-01T02": 2})
    cluster.load(2.8, through=4, late={"2026-01-01T02": 1})
    assert cluster.tick() == [(name(0), 2, 1), (name(2), 4, 3), (name(3), 1, 0)]
    assert cluster.tick() == []


def test_late_rows_of_an_hour_that_was_not_reported_are_no_second_report(cluster: Cluster) -> None:
    cluster.load(0.5, through=1)
    cluster.tick()
    cluster.load(-5, 1.2, 1.3, through=2, late={"2025-12-31T19": 1, "2026-01-01T01": 2})
    assert cluster.tick() == [(name(1), 2, 0)]
    assert cluster.tick() == []


def test_late_rows_that_are_not_counted_by_hour_are_found_in_the_files(cluster: Cluster) -> None:
    cluster.load(0.5, 1.5, 2.5, through=4)
    cluster.tick()
    cluster.load(0.7, 2.7, 2.8, 4.5, through=4, late={OLDER: 3})
    assert cluster.tick() == [(name(0), 2, 1), (name(2), 3, 2)]


def test_all_hours_are_reported_again_if_the_file_with_such_rows_is_deleted(cluster: Cluster) -> None:
    cluster.load(0.5, through=2)
    cluster.tick()
    cluster.load(0.7, through=2, late={OLDER: 1})
    handle = cluster.table.handle()
    handle.optimize.compact()
    handle.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert cluster.tick() == [(name(0), 2, 0), (name(1), 0, 0)]


@pytest.mark.parametrize("reason", ["rewind", "replay", "cut"])
def test_a_valid_through_that_moved_back_reports_hours_again_as_they_are_completed_again(
    cluster: Cluster, reason: str
) -> None:
    cluster.load(0.5, 1.5, 2.5, through=3)
    assert len(cluster.tick()) == 3
    cluster.load(2.6, through=1, moved_back_by=reason)
    assert cluster.tick() == []
    cluster.load(through=2.5)
    assert cluster.tick() == [(name(1), 1, 0)]
    cluster.load(through=3)
    assert cluster.tick() == [(name(2), 2, 0)]


@pytest.mark.parametrize("reason", ["rewind", "recreation", "setting", "backfill"])
def test_a_move_back_between_two_ticks_is_not_overlooked(cluster: Cluster, reason: str) -> None:
    cluster.load(0.5, 1.5, through=2)
    cluster.tick()
    cluster.load(0.6, through=1 if reason == "rewind" else None, moved_back_by=reason)
    cluster.load(through=2)
    assert cluster.tick() == [(name(0), 2, 0), (name(1), 1, 0)][1 if reason == "rewind" else 0 :]


def test_a_recreated_topic_that_is_complete_at_once_reports_every_hour_again(cluster: Cluster) -> None:
    cluster.load(0.5, through=1)
    cluster.tick()
    cluster.load(0.6, through=1, moved_back_by="recreation")
    assert cluster.tick() == [(name(0), 2, 0)]


def test_another_table_of_the_topic_is_reported_from_its_first_hour_on(cluster: Cluster) -> None:
    cluster.load(0.5, 1.5, through=2)
    cluster.tick()
    shutil.rmtree(cluster.table.uri)
    cluster.table.table.snapshot()
    cluster.load(0.5, 0.6, through=1)
    assert cluster.tick() == [(name(0), 2, 0)]


def test_a_tick_reports_at_most_so_many_hours_and_the_next_ticks_the_others(cluster: Cluster) -> None:
    cluster.load(0.5, 100.5, 249.5, through=250)
    reports = [cluster.tick() for _ in range(4)]
    assert list(map(len, reports)) == [MAX_REPORTS, MAX_REPORTS, 50, 0]
    assert [report[0] for tick in reports for report in tick] == [name(hour) for hour in range(250)]
    assert [rows for tick in reports for _, rows, _ in tick if rows] == [1, 1, 1]


def test_many_hours_with_late_rows_become_one_range(cluster: Cluster) -> None:
    """The cursor stays short."""
    hours = MAX_AGAIN + 50
    cluster.load(through=hours)
    while cluster.tick():
        pass
    for first in range(1, hours, 48):
        late = {f"{name(hour)[:10]}T{hour % 24:02}": 1 for hour in range(first, min(first + 48, hours))}
        cluster.load(through=hours, late=late)
    assert cluster.tick()[0] == (name(1), 0, 0)
    assert json.loads(str(cluster.cursor))["topics"]["clicks"]["again"] == {}
    assert sum(len(cluster.tick()) for _ in range(4)) == hours - 1 - MAX_REPORTS


def test_days_follow_their_zone_when_clocks_change(cluster: Cluster) -> None:
    cluster.topics = {"clicks": {**DAILY, "complete_since": "2026-03-28", "time_zone": "Europe/Berlin"}}
    begin = (datetime(2026, 3, 28, 23, tzinfo=UTC) - FIRST).total_seconds() / 3600  # midnight in Berlin
    cluster.load(begin - 0.1, begin, begin + 22.9, begin + 23, through=begin + 22.99)
    assert cluster.tick() == [("2026-03-28", 1, 0)]
    cluster.load(through=begin + 23)
    assert cluster.tick() == [("2026-03-29", 2, 0)]
    cluster.load(begin + 22, through=begin + 23, late={"2026-03-29T21": 1})
    assert cluster.tick() == [("2026-03-29", 3, 1)]


def test_the_first_hour_is_the_first_one_with_rows_and_is_kept(cluster: Cluster) -> None:
    cluster.topics = {"clicks": {"event_time": "timestamp", "complete": "hourly"}}
    asset = dg.AssetKey([*key("clicks").path, "hours"])
    assert asset not in cluster.definitions.resolve_all_asset_keys()
    assert cluster.tick() == []
    cluster.load(-9e5, None, 5.5, through=7)  # one clock shows 1923
    result, reports = cluster.evaluated()
    assert (reports, result.skip_message) == (
        [],
        "new topics with complete hours or days: 1; reload the code location",
    )
    assert asset in cluster.definitions.resolve_all_asset_keys()
    assert cluster.tick() == [(name(5), 1, 0), (name(6), 0, 0)]
    cluster.load(2.5, through=7, moved_back_by="backfill")
    assert [report[0] for report in cluster.tick()] == [name(5), name(6)]


def test_an_hour_that_another_process_has_found_is_not_stored_twice(cluster: Cluster) -> None:
    cluster.topics = {"clicks": {"event_time": "timestamp", "complete": "hourly"}}
    cluster.load(5.5, through=7)
    catalog = cluster.catalog
    [sensor] = complete_hours_sensors(catalog, list(topic_schedules(catalog)))
    for expected in ("new topics with complete hours or days: 1; reload the code location", "nothing else is complete"):
        with dg.build_sensor_context(instance=cluster.instance) as context:
            assert sensor.evaluate_tick(context).skip_message == expected
    assert storage_of(cluster.instance).known().first_windows == {"clicks": at(5)}


def test_a_table_without_news_is_not_opened(cluster: Cluster) -> None:
    cluster.load(0.5, through=1)
    cluster.tick()
    with patch.object(DeltaLakeTable, "existing", side_effect=AssertionError("the log was read")):
        assert cluster.tick() == []


def test_a_long_history_of_commits_is_read_in_several_ticks(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete_windows, "_MAX_ENTRIES", 2)
    cluster.load(0.5, through=1)
    cluster.tick()
    for hour in range(2, 7):
        cluster.load(0.5, through=hour, late={"2026-01-01T00": 1})
    assert [cluster.tick() for _ in range(2)] == [[], []]
    assert cluster.tick()[:2] == [(name(0), 6, 5), (name(1), 0, 0)]


def test_other_settings_report_every_hour_again(cluster: Cluster) -> None:
    cluster.load(0.5, 1.5, through=2)
    assert len(cluster.tick()) == 2
    cluster.topics = {"clicks": {**HOURLY, "complete_since": "2026-01-01T01:00"}}
    assert cluster.tick() == [(name(1), 1, 0)]


def test_an_unreadable_cursor_reports_every_hour_again(cluster: Cluster) -> None:
    cluster.load(0.5, through=1)
    cluster.cursor = "{"
    assert cluster.tick() == [(name(0), 1, 0)]


def test_a_tick_without_time_reports_the_others_later(cluster: Cluster) -> None:
    """The portions of a tick grow, so each tick reports something."""
    cluster.load(through=8)
    clock = iter([0.0, 1, 2, 3, 30, *[100] * 9])
    catalog = cluster.catalog
    [sensor] = complete_hours_sensors(catalog, list(topic_schedules(catalog)), clock=lambda: next(clock))
    with dg.build_sensor_context(instance=cluster.instance) as context:
        result = sensor.evaluate_tick(context)
    assert [event.partition for event in result.asset_events] == [name(hour) for hour in range(3)]
    cluster.cursor = result.cursor
    assert [report[0] for report in cluster.tick()] == [name(hour) for hour in range(3, 8)]


def test_a_table_that_cannot_be_read_does_not_stop_the_others(cluster: Cluster) -> None:
    storage_of(cluster.instance).add(["broken"])
    cluster.topics = {"broken": HOURLY, "clicks": HOURLY}
    log = Path(cluster.table.uri).parent / "broken" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{")
    cluster.load(0.5, through=1)
    assert cluster.tick() == [(name(0), 1, 0)]


def test_topics_share_the_reports_of_a_tick(cluster: Cluster) -> None:
    """A table with years of hours does not delay the present hours of another one."""
    storage_of(cluster.instance).add(["orders"])
    cluster.topics = {"clicks": {**HOURLY, "complete_since": "2025-01-01"}, "orders": HOURLY}
    cluster.load(0.5, through=2)
    shutil.copytree(cluster.table.uri, Path(cluster.table.uri).parent / "orders")
    result, reports = cluster.evaluated()
    orders = [event for event in result.asset_events if "orders" in event.asset_key.path]
    assert (len(orders), len(reports)) == (2, MAX_REPORTS)


def test_the_asset_of_days_has_their_name_and_depends_on_the_table(cluster: Cluster) -> None:
    cluster.topics = {
        "clicks": {**DAILY, "time_zone": "Europe/Berlin", "owners": ["a@shop.example"], "asset_group": "web"}
    }
    graph = cluster.definitions.resolve_asset_graph()
    days = graph.get(dg.AssetKey([*key("clicks").path, "days"]))
    assert (days.is_external, days.parent_keys, days.group_name, days.owners) == (
        True,
        {key("clicks")},
        "web",
        ["a@shop.example"],
    )
    assert days.partitions_def == dg.DailyPartitionsDefinition("2026-01-01", timezone="Europe/Berlin")


def test_without_the_setting_nothing_is_defined(cluster: Cluster) -> None:
    cluster.topics = {"clicks": {"event_time": "timestamp"}}
    assert "complete_hours__main" not in {sensor.name for sensor in cluster.definitions.sensors or ()}
    assert all(asset.path[-1] == "clicks" for asset in cluster.definitions.resolve_all_asset_keys())


def test_definitions_with_another_name_have_their_own_first_hours(cluster: Cluster) -> None:
    TopicStorage(instance=cluster.instance, prefix="other", cluster="main").add_first_windows({"a b": 5})
    other = TopicStorage(instance=cluster.instance, prefix="other", cluster="main").known()
    assert other == KnownTopics(first_windows={"a b": 5})
    assert storage_of(cluster.instance).known().first_windows == {}
