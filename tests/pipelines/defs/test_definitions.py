"""The Dagster definitions per cluster and group, and the errors for wrong settings."""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import dagster as dg
import pytest
from click.testing import CliRunner, Result
from dagster._cli import create_dagster_cli

from pipelines.defs.build import build_definitions
from resources.groups import TopicGroupSettings
from resources.settings import PATH_VARIABLE, Alerts, ClusterSettings, Settings
from tests.pipelines.defs.declared import DEFS

ROOT = Path(__file__).parents[3]
TWO = Settings(
    lake="/nowhere",
    clusters={"new-one": ClusterSettings(bootstrap="b:9092"), "old": ClusterSettings(zookeeper="z:2181")},
    groups={"billing": TopicGroupSettings(topics=("bill.*",), clusters=("new-one",), cron="*/5 * * * *")},
    alerts=Alerts(command=("true",)),
)


def test_everything_of_a_cluster_is_declared() -> None:
    dg.Definitions.validate_loadable(DEFS)
    graph = DEFS.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {"kafka/main/topics", "lake/main/topics"}
    assert {key.name for key in graph.asset_check_keys} == {
        "offsets_covered",
        "lag",
        "freshness",
        "retention_race",
        "held_back",
        "bad_records",
    }
    repository = DEFS.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {"new_topics__main", "lost_runs"}
    kinds = ("load", "watch", "verify")
    assert {schedule.name for schedule in repository.schedule_defs} == {f"{kind}__main__topics" for kind in kinds}
    jobs = {job.name for job in repository.get_all_jobs()}
    assert jobs >= {*(f"{kind}__main__topics" for kind in (*kinds, "backfill")), "replay__main"}


def test_each_cluster_and_group_has_its_own_definitions() -> None:
    defs = build_definitions(TWO)
    dg.Definitions.validate_loadable(defs)
    tables = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys() if key.path[0] == "lake"}
    assert tables == {"lake/new-one/billing", "lake/new-one/topics", "lake/old/topics"}
    repository = defs.get_repository_def()
    crons = {
        schedule.name: schedule.cron_schedule
        for schedule in repository.schedule_defs
        if schedule.name.startswith("load")
    }
    assert crons == {
        "load__new_one__billing": "*/5 * * * *",
        "load__new_one__topics": "*/15 * * * *",
        "load__old__topics": "*/15 * * * *",
    }
    sensors = {sensor.name for sensor in repository.sensor_defs}
    assert sensors == {
        "new_topics__new_one",
        "new_topics__old",
        "lost_runs",
        "alert_failed_runs",
        "alert_failed_checks",
    }


def test_sensors_and_schedules_run_from_the_start() -> None:
    repository = build_definitions(TWO).get_repository_def()
    assert {definition.default_status for definition in repository.sensor_defs} == {dg.DefaultSensorStatus.RUNNING}
    assert {definition.default_status for definition in repository.schedule_defs} == {dg.DefaultScheduleStatus.RUNNING}


def test_a_wrong_cron_is_refused() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="'every day'"):
        build_definitions(TWO.model_copy(update={"cron": "every day"}))


@pytest.fixture
def validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Result]:
    """A function that validates the workspace with the command of Dagster, for the text of a settings file."""
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    file = tmp_path / "penstock.toml"

    def validate(settings: str | None) -> Result:
        if settings is not None:
            file.write_text(settings)
        monkeypatch.delitem(sys.modules, "pipelines.definitions", raising=False)  # it reads the settings at its import
        command = ["definitions", "validate", "-w", str(ROOT / "workspace.yaml")]
        dagster_cli: click.Group = create_dagster_cli()  # type: ignore[no-untyped-call] # Dagster gives it no types
        environment = {PATH_VARIABLE: str(file), "DAGSTER_HOME": str(tmp_path)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Dagster warns of its own command
                return CliRunner().invoke(dagster_cli, command, env=environment)
        finally:
            os.environ.pop("DAGSTER_IS_DEFS_VALIDATION_CLI", None)  # the command sets it
            sys.modules.pop("pipelines.definitions", None)

    return validate


def test_the_workspace_loads_while_no_cluster_answers(validated: Callable[[str | None], Result]) -> None:
    loading = validated('lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n')
    assert loading.exit_code == 0, loading.output
    assert "Validation successful for code location penstock" in loading.output


def test_missing_settings_fail_the_code_location_with_a_sentence(validated: Callable[[str | None], Result]) -> None:
    loading = validated(None)
    assert loading.exit_code != 0
    assert "there is no settings file" in loading.output
