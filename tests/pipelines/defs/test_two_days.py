"""Two days of event time through three topics, of which one has late rows and one a partition without a leader.

Loads, sensors and automation conditions are real; the brokers are fakes, and the clock is that of the test.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from penstock import on_complete_partitions
from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog
from pipelines.defs.catalog.known_topics import KnownTopics
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.status.hour_counts import hour_counts
from resources.kafka import open_cluster
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster
from tests.fakes.days import append_at, log_at
from tests.fakes.loaders import loader_of
from tests.timed_table import HOUR_MS

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_MS = int(FIRST.timestamp()) * 1000
HOURS, STEP, ROWS = 48, 4, 2
NO_LEADER, WITHOUT = -1, range(12, 20)
"""The hours in which the partition has no leader."""
CLUSTERS = ("steady", "late", "leaderless")
PARTITIONS = dg.HourlyPartitionsDefinition("2026-01-01-00:00")


def name(hour: int) -> str:
    """The partition key of an hour."""
    return f"{FIRST + timedelta(hours=hour):%Y-%m-%d-%H:%M}"


def downstream(cluster: str) -> dg.AssetsDefinition:
    """An asset that follows the hours of a topic."""

    @dg.asset(
        name=f"summary_{cluster}",
        deps=[["lake", cluster, "clicks", "hours"]],
        partitions_def=PARTITIONS,
        automation_condition=on_complete_partitions(),
    )
    def summary() -> None: ...

    return summary


class TwoDays:
    """The three topics, and what Dagster did about them."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, stack: ExitStack) -> None:
        self.instance = instance
        self.fakes = {
            cluster: stack.enter_context(FakeCluster(logs={0: log_at([]), 1: log_at([], leader=1)}))
            for cluster in CLUSTERS
        }
        complete = {"event_time": "timestamp", "complete": "hourly", "complete_since": "2026-01-01"}
        self.settings = Settings.model_validate(
            {
                "lake": str(folder),
                "clusters": {
                    cluster: {"bootstrap": ",".join(broker.address for broker in fake.bootstrap)}
                    for cluster, fake in self.fakes.items()
                },
                "topics": {"clicks": complete},
                "caps": {"attempts": 1, "request_timeout_s": 5},
            }
        )
        source = PenstockResource(inline=self.settings)
        known = dict.fromkeys(CLUSTERS, KnownTopics(names=("clicks",)))
        self.defs = definitions_of(Catalog(source=source, settings=self.settings, known=known))
        self.summaries = {cluster: downstream(cluster) for cluster in CLUSTERS}
        self.followers = dg.Definitions.merge(self.defs, dg.Definitions(assets=[*self.summaries.values()]))
        self.cursors: dict[str, str | None] = dict.fromkeys(CLUSTERS)
        self.conditions: Any = None
        self.requested: dict[str, Counter[str]] = {cluster: Counter() for cluster in CLUSTERS}
        self.rows: dict[str, dict[str, int]] = {cluster: {} for cluster in CLUSTERS}

    def load(self, now: datetime) -> None:
        """Load all topics at this time."""
        for cluster in CLUSTERS:
            with open_cluster(self.settings, cluster) as opened:
                loader_of(self.settings, opened, pytest.fail, fetch=fetch_here, now=lambda: now).load("clicks")

    def tick(self, now: datetime) -> None:
        """Let the sensors report, and execute what the condition requests."""
        for cluster in CLUSTERS:
            with dg.build_sensor_context(
                instance=self.instance, definitions=self.defs, cursor=self.cursors[cluster]
            ) as context:
                result = self.defs.resolve_sensor_def(f"complete_hours__{cluster}").evaluate_tick(context)
            self.cursors[cluster] = result.cursor
            for event in result.asset_events:
                self.instance.report_runless_asset_event(event)
        evaluated = dg.evaluate_automation_conditions(
            self.followers, self.instance, cursor=self.conditions, evaluation_time=now
        )
        self.conditions = evaluated.cursor
        for cluster, asset in self.summaries.items():
            for hour in map(str, evaluated.get_requested_partitions(asset.key)):
                self.requested[cluster][hour] += 1
                self.rows[cluster][hour] = self.count(cluster, hour)
                self.instance.report_runless_asset_event(dg.AssetMaterialization(asset.key, partition=hour))

    def count(self, cluster: str, hour: str) -> int:
        """The rows that the table has of an hour now."""
        table = DeltaLakeTable.of(Lake.of(self.settings), cluster, "clicks")
        start = int(PARTITIONS.time_window_for_partition_key(hour).start.timestamp()) * 1000
        return hour_counts(table, table.snapshot(), "timestamp", [start, start + HOUR_MS])[start]

    def calendar(self, cluster: str) -> set[str]:
        """The partitions that the UI shows as materialized."""
        return self.instance.get_materialized_partitions(dg.AssetKey(["lake", cluster, "clicks", "hours"]))


@pytest.fixture
def days(tmp_path: Path) -> Iterator[TwoDays]:
    with ExitStack() as stack, dg.DagsterInstance.ephemeral() as instance:
        yield TwoDays(tmp_path, instance, stack)


@pytest.mark.slow
def test_the_calendar_the_requests_and_the_counts_are_right(days: TwoDays) -> None:
    days.tick(FIRST)
    waiting: list[int] = []
    for hour in range(0, HOURS + STEP, STEP):
        now = FIRST + timedelta(hours=hour + STEP, minutes=15)
        times = [FIRST_MS + (hour + n) * HOUR_MS + row * 1000 for n in range(STEP) for row in range(ROWS)]
        times = times if hour < HOURS else []
        has_leader = hour not in WITHOUT
        for cluster, fake in days.fakes.items():
            append_at(fake.logs[0], times)
            if cluster != "leaderless":
                append_at(fake.logs[1], times)
        # Producers keep the records for the partition until it has a leader again.
        waiting += times
        days.fakes["leaderless"].logs[1].leader = 1 if has_leader else NO_LEADER
        if has_leader:
            append_at(days.fakes["leaderless"].logs[1], waiting)
            waiting = []
        if hour == 20:
            append_at(days.fakes["late"].logs[0], [FIRST_MS + 14 * HOUR_MS] * 3)
        days.load(now)
        days.tick(now)
        complete = {name(number) for number in range(hour + STEP)}
        assert days.calendar("steady") == days.calendar("late") == complete
        assert days.calendar("leaderless") == (
            complete if has_leader else {name(number) for number in range(WITHOUT.start)}
        )
    both = 2 * ROWS
    everything = {name(number): both if number < HOURS else 0 for number in range(HOURS + STEP)}
    assert days.rows["steady"] == days.rows["leaderless"] == everything
    assert days.rows["late"] == {**everything, name(14): both + 3}
    assert {*days.requested["steady"].values()} == {*days.requested["leaderless"].values()} == {1}
    assert {hour for hour, count in days.requested["late"].items() if count > 1} == {name(14)}
