"""Runs over a modern broker in this process: small loads need neither Spark nor ZooKeeper."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from resources.penstock import PenstockResource
from resources.settings import PATH_VARIABLE, Settings
from tests.live import numbered
from tests.pipelines.defs.declared import DEFS, failure, know, loaded, observed, run
from tests.publishing import publish_by_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a running cluster `main`. The environment names their file."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        file = tmp_path / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')
        monkeypatch.setenv(PATH_VARIABLE, str(file))
        yield Settings.load(file)


def test_a_run_loads_its_topics_and_shows_their_status(instance: dg.DagsterInstance, settings: Settings) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    result = run(instance, ["clicks"])
    assert result.success
    metadata = loaded(result)["clicks"]
    assert (metadata["rows"], metadata["lag_before"], metadata["lag"], metadata["lag_seconds"]) == (20, 20, 0, 0.0)
    (check,) = result.get_asset_check_evaluations()
    assert (check.passed, check.description) == (True, "tables proven: 1")
    watched = DEFS.resolve_job_def("watch__main__topics").execute_in_process(instance=instance)
    assert [check.passed for check in watched.get_asset_check_evaluations()] == [True] * 5


def test_a_topic_that_dagster_has_seen_loaded_does_not_begin_again_in_another_lake(
    instance: dg.DagsterInstance, settings: Settings
) -> None:  # fault N17
    publish_by_settings(settings, "clicks", numbered(20))
    assert run(instance, ["clicks"]).success
    Path(settings.lake).rename(f"{settings.lake} elsewhere")
    error = observed(run(instance, ["clicks"]))["clicks"]["error"]
    assert error.startswith("TableLost: Dagster has a materialization of this topic, with version 1 of its table, but")
    assert loaded(run(instance, ["clicks"], since="earliest"))["clicks"]["rows"] == 20


def test_a_failed_topic_is_observed_with_its_error_and_the_others_are_loaded(
    instance: dg.DagsterInstance, settings: Settings
) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    result = run(instance, ["clicks", "gone", "Views"])
    assert loaded(result)["clicks"]["rows"] == 20
    errors = {key: metadata["error"].partition(":")[0] for key, metadata in observed(result).items()}
    assert errors == {"gone": "TopicUnknown", "Views": "ValueError"}
    assert failure(result).description.startswith("2 of 3 topics were not loaded completely: ")


def test_the_schedule_requests_topics_with_new_records(instance: dg.DagsterInstance, settings: Settings) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    know(instance, "clicks")
    schedule, resources = DEFS.resolve_schedule_def("load__main__topics"), {"penstock": PenstockResource()}
    with dg.build_schedule_context(
        instance=instance, resources=resources, scheduled_execution_time=datetime.now(UTC)
    ) as context:
        (request,) = schedule.evaluate_tick(context).run_requests or []
    assert str(request.run_key).endswith(": clicks to clicks")
