"""The topic of complete hours: its flights, and the hours that loads of them complete."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.demo.data import rows_of
from pipelines.demo.departures import TOPIC, departures, publish
from pipelines.demo.state import DAYS, MODERN, DemoState
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.plan.window import LoadWindow
from pipelines.status.completeness import complete_through
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.fakes.loaders import loader_of


@pytest.fixture
def state(tmp_path: Path) -> DemoState:
    """The folder of a demo."""
    state = DemoState(home=tmp_path / "demo")
    state.begin(bootstrap="127.0.0.1:1")
    return state


@pytest.fixture
def settings(state: DemoState) -> Settings:
    """The settings of the demo."""
    return Settings.load(state.settings)


@pytest.fixture
def broker(state: DemoState, tmp_path: Path) -> Iterator[None]:
    """The modern broker of the demo, in this process."""
    config = ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker", port=state.broker_port, partitions=2)
    with ModernBrokerServer(config):
        yield


def load(settings: Settings, until: str | None = None) -> DeltaLakeTable:
    """Load the topic without Spark, and return its table."""
    window = LoadWindow.parse(None, until, now=datetime.now(UTC))
    with open_cluster(settings, MODERN) as cluster:
        loaded = loader_of(settings, cluster, pytest.fail, fetch=fetch_here, window=window).load(TOPIC)
    assert not loaded.error
    return DeltaLakeTable.of(Lake.of(settings), MODERN, TOPIC)


def test_the_flights_of_three_days_are_moved_to_the_last_three_days(settings: Settings) -> None:
    flights = departures(settings)
    hours = flights.in_time["time_hour"].to_pylist()
    assert hours == sorted(hours)
    assert flights.first_day == datetime.now(UTC).date() - timedelta(days=DAYS)
    days = Counter(date.fromisoformat(hour[:10]) for hour in (*hours, *flights.late["time_hour"].to_pylist()))
    past = Counter(hour[:10] for hour in rows_of("flights")["time_hour"].to_pylist())
    assert days == {flights.first_day + timedelta(days=day): past[f"2013-01-0{day + 1}"] for day in range(DAYS)}


@pytest.mark.slow
@pytest.mark.usefixtures("broker")
def test_loads_complete_the_hours_one_after_another(settings: Settings) -> None:
    flights = departures(settings)
    publish(settings, flights.in_time)
    first = complete_through(load(settings, until=str(flights.second_day)))
    assert first == datetime.combine(flights.first_day, datetime.min.time(), UTC) + timedelta(hours=23)
    began = datetime.now(UTC).replace(microsecond=0)
    through = complete_through(load(settings))
    assert through is not None
    assert through >= began, "the ends of the logs are reached"
    publish(settings, flights.late)
    entry = load(settings).snapshot().entry
    assert entry is not None
    assert entry.event_time is not None
    assert entry.event_time.late == {flights.late["time_hour"][0].as_py()[:13]: 1}


def test_the_aircraft_of_the_late_flight_flies_again(settings: Settings) -> None:
    flights = departures(settings)
    [late] = flights.late.to_pylist()
    assert late["time_hour"].startswith(str(flights.second_day))
    own = flights.in_time.filter(pc.equal(flights.in_time["tailnum"], late["tailnum"]))
    assert pc.max(own["time_hour"]).as_py() > late["time_hour"]
