"""Complete hours and days in Dagster show what producers counted, if their topic has an audit."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog
from pipelines.status.audit import HOUR_MS
from pipelines.status.audited_hours import Audit
from resources.penstock import PenstockResource
from tests.audited_shop import COUNTS, EIGHT, SEVEN, Shop
from tests.pipelines.defs.declared import storage_of

pytestmark = pytest.mark.slow

WITH_COUNTS = f'audit = "{COUNTS}"\n'
SINCE = 'complete_since = "2026-01-31"\n'


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        yield Shop(tmp_path, f"127.0.0.1:{broker.port}")


def audited(shop: Shop) -> Mapping[str, Mapping[str, Any]]:
    """The metadata about the audit that the sensor reports by partition."""
    with dg.DagsterInstance.ephemeral() as instance:
        storage = storage_of(instance)
        storage.add(["clicks"])
        settings = shop.settings
        known = {"main": storage.known()}
        definitions = definitions_of(Catalog(source=PenstockResource(inline=settings), settings=settings, known=known))
        with dg.build_sensor_context(instance=instance, definitions=definitions) as context:
            result: Any = definitions.resolve_sensor_def("complete_hours__main").evaluate_tick(context)
    return {
        event.partition: {
            name.removeprefix("audited_"): value.value
            for name, value in event.metadata.items()
            if name.startswith("audited_")
        }
        for event in result.asset_events
    }


# fault N56
def test_an_hour_shows_what_producers_counted_and_what_is_missing(shop: Shop) -> None:
    shop.configure(audit=f'{WITH_COUNTS}complete = "hourly"\n{SINCE}')
    shop.send([SEVEN, SEVEN + 1, SEVEN + 2, EIGHT])
    shop.load("clicks")
    shop.send([SEVEN + 4])  # counted, and not loaded yet
    shop.load(COUNTS)
    reported = audited(shop)
    assert reported["2026-01-31-07:00"] == {"records": 4, "share": 0.75, "difference": 1, "all_counts": True}
    assert reported["2026-01-31-08:00"] == {"records": 1, "share": 1.0, "difference": 0, "all_counts": True}
    assert reported["2026-01-31-06:00"] == {"records": 0, "difference": 0, "all_counts": True}


def test_a_day_adds_up_the_counts_of_its_hours(shop: Shop) -> None:
    shop.configure(audit=f'{WITH_COUNTS}complete = "daily"\n{SINCE}time_zone = "Europe/Berlin"\n')
    shop.send([SEVEN, EIGHT], producer=None)
    shop.send([SEVEN + 1, EIGHT + 1, EIGHT + 2])
    shop.load()
    shop.send([EIGHT + 16 * HOUR_MS - HOUR_MS])  # 2026-02-01 in Berlin
    shop.load(COUNTS)
    reported = audited(shop)
    assert reported["2026-01-31"] == {"records": 3, "share": 5 / 3, "difference": -2, "all_counts": True}
    assert reported["2026-02-01"]["records"] == 1


def test_a_day_that_has_parts_of_hours_is_reported_without_its_counts(shop: Shop) -> None:
    shop.configure(audit=f'{WITH_COUNTS}complete = "daily"\n{SINCE}time_zone = "Asia/Kolkata"\n')
    shop.send([SEVEN])
    shop.load()
    reported = audited(shop)
    assert reported["2026-01-31"] == {}


# fault N58
def test_an_hour_is_reported_without_counts_that_cannot_be_read(shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    shop.configure(audit=f'{WITH_COUNTS}complete = "hourly"\n{SINCE}')
    shop.send([SEVEN])
    shop.load("clicks")
    reported = audited(shop)
    assert reported["2026-01-31-07:00"] == {}
    assert "there is no table of the counts of producers" in capfd.readouterr().err


def test_hours_that_lie_apart_have_their_own_counts(shop: Shop) -> None:
    shop.configure()
    shop.send([SEVEN, EIGHT, EIGHT + HOUR_MS, EIGHT + HOUR_MS])
    shop.load(COUNTS)
    audit = Audit.of(shop.settings, "main", "clicks")
    assert audit is not None
    counted = audit.counted("clicks", [(SEVEN, EIGHT), (EIGHT + HOUR_MS, EIGHT + 2 * HOUR_MS)], 400 * 24 * HOUR_MS)
    assert {start: window.records for start, window in counted.items()} == {SEVEN: 1, EIGHT + HOUR_MS: 2}
    assert not any(window.has_all_counts for window in counted.values())  # records may be sent for a long time


def test_a_topic_without_an_audit_has_no_such_metadata(shop: Shop) -> None:
    shop.configure(audit=f'complete = "hourly"\n{SINCE}')
    shop.send([SEVEN])
    shop.load()
    reported = audited(shop)
    assert reported["2026-01-31-07:00"] == {}
