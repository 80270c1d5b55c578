"""An asset with the condition is requested for every complete hour, and again after late rows."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from penstock import on_complete_partitions

HOURS = dg.HourlyPartitionsDefinition("2026-01-01-00:00")
CLICKS = dg.AssetSpec(["lake", "main", "clicks", "hours"], partitions_def=HOURS)
FIRST, SECOND, THIRD, FOURTH, FIFTH = (f"2026-01-01-0{hour}:00" for hour in range(5))


@dg.asset(partitions_def=HOURS, deps=[CLICKS], automation_condition=on_complete_partitions())
def summary() -> None:
    """The downstream asset."""


@dg.asset(
    partitions_def=dg.DailyPartitionsDefinition("2026-01-01"),
    deps=[CLICKS],
    automation_condition=on_complete_partitions(),
)
def daily() -> None:
    """A downstream asset whose days need all of their hours."""


class Ticks:
    """Ticks of the daemon that evaluates conditions."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self._cursor: Any = None
        self._assets: list[dg.AssetsDefinition | dg.AssetSpec] = [CLICKS, summary, daily]

    def report(self, *hours: str, key: dg.AssetKey = CLICKS.key) -> None:
        """Report hours as materialized."""
        for hour in hours:
            self.instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=hour))

    def requested(self, asset: dg.AssetsDefinition = summary, day: int = 2) -> set[str]:
        """The partitions that the next tick requests, on this day of the month."""
        result = dg.evaluate_automation_conditions(
            dg.Definitions(assets=self._assets),
            self.instance,
            cursor=self._cursor,
            evaluation_time=datetime(2026, 1, day, tzinfo=UTC),
        )
        self._cursor = result.cursor
        return set(map(str, result.get_requested_partitions(asset.key)))


@pytest.fixture
def ticks() -> Iterator[Ticks]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticks(instance)


def test_a_complete_hour_is_requested_once(ticks: Ticks) -> None:
    assert ticks.requested() == set()
    ticks.report(FIRST)
    assert ticks.requested() == {FIRST}
    assert ticks.requested() == set()


def test_late_rows_request_their_hour_again(ticks: Ticks) -> None:
    ticks.requested()
    ticks.report(FIRST)
    ticks.requested()
    ticks.report(SECOND)
    ticks.requested()
    ticks.report(FIRST, key=summary.key)
    ticks.requested()
    ticks.report(FIRST)
    assert ticks.requested() == {FIRST}
    assert ticks.requested() == set()


def test_several_hours_at_once_are_all_requested(ticks: Ticks) -> None:
    ticks.requested()
    ticks.report(FIRST)
    ticks.requested()
    ticks.report(FIRST, THIRD, FOURTH, FIFTH)
    assert ticks.requested() == {FIRST, THIRD, FOURTH, FIFTH}


# fault N59
def test_late_rows_between_a_request_and_the_end_of_its_run_are_not_forgotten(ticks: Ticks) -> None:
    """The run may have read the table before they came."""
    ticks.requested()
    ticks.report(FIRST)
    assert ticks.requested() == {FIRST}
    ticks.report(FIRST)
    ticks.report(FIRST, key=summary.key)
    assert ticks.requested() == {FIRST}


def test_hours_that_were_complete_before_are_not_requested_unless_they_get_late_rows(ticks: Ticks) -> None:
    ticks.report(FIRST, SECOND)
    assert ticks.requested() == ticks.requested() == set()
    ticks.report(SECOND)
    assert ticks.requested() == {SECOND}


def test_a_day_is_requested_when_all_of_its_hours_are_complete(ticks: Ticks) -> None:
    keys = HOURS.get_partition_keys(datetime(2026, 1, 2, tzinfo=UTC))
    ticks.requested(day=1)
    ticks.report(*keys[:-1])
    assert ticks.requested(daily) == set()
    ticks.report(keys[-1])
    assert ticks.requested(daily) == {"2026-01-01"}
    ticks.report(SECOND)
    assert ticks.requested(daily) == {"2026-01-01"}
