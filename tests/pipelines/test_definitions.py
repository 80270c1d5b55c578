"""What Dagster loads, per cluster and group, and what it says of settings that are wrong."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from pipelines.declaring import declared
from resources.groups import Group
from resources.settings import PATH_VARIABLE, Alerts, ClusterSettings, Settings
from tests.pipelines.declared import DEFS

ROOT = Path(__file__).parents[2]
TWO = Settings(
    lake="/nowhere",
    clusters={"new-one": ClusterSettings(bootstrap="b:9092"), "old": ClusterSettings(zookeeper="z:2181")},
    groups={"billing": Group(topics=("bill.*",), clusters=("new-one",), cron="*/5 * * * *")},
    alerts=Alerts(command=("true",)),
)


def test_everything_of_a_cluster_is_declared() -> None:
    dg.Definitions.validate_loadable(DEFS)
    graph = DEFS.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {"kafka/main/topics", "lake/main/topics"}
    assert {key.name for key in graph.asset_check_keys} == {"offsets_covered", "lag", "freshness", "retention_race"}
    repository = DEFS.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {"new_topics__main", "lost_runs"}
    kinds = ("load", "watch", "verify")
    assert {schedule.name for schedule in repository.schedule_defs} == {f"{kind}__main__topics" for kind in kinds}
    jobs = {job.name for job in repository.get_all_jobs()}
    assert jobs >= {*(f"{kind}__main__topics" for kind in (*kinds, "backfill")), "replay__main"}


def test_each_cluster_and_group_has_its_own() -> None:
    defs = declared(TWO)
    dg.Definitions.validate_loadable(defs)
    tables = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys() if key.path[0] == "lake"}
    assert tables == {"lake/new-one/billing", "lake/new-one/topics", "lake/old/topics"}
    repository = defs.get_repository_def()
    crons = {one.name: one.cron_schedule for one in repository.schedule_defs if one.name.startswith("load")}
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
    repository = declared(TWO).get_repository_def()
    assert {one.default_status for one in repository.sensor_defs} == {dg.DefaultSensorStatus.RUNNING}
    assert {one.default_status for one in repository.schedule_defs} == {dg.DefaultScheduleStatus.RUNNING}


def test_a_cron_that_is_none_is_told() -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="'every day'"):
        declared(TWO.model_copy(update={"cron": "every day"}))


def validated(folder: Path, settings: str | None) -> subprocess.CompletedProcess[str]:
    """Dagster's own look at our workspace, with a settings file or without."""
    file = folder / "penstock.toml"
    if settings is not None:
        file.write_text(settings)
    (folder / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    return subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(ROOT / "workspace.yaml")],
        env={**os.environ, PATH_VARIABLE: str(file), "DAGSTER_HOME": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_workspace_loads_though_no_cluster_answers(tmp_path: Path) -> None:
    loading = validated(tmp_path, 'lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n')
    assert loading.returncode == 0, loading.stderr
    assert "Validation successful for code location penstock" in loading.stderr + loading.stdout


def test_missing_settings_are_one_sentence_of_the_code_location(tmp_path: Path) -> None:
    loading = validated(tmp_path, None)
    assert loading.returncode != 0
    assert "there is no settings file" in loading.stderr + loading.stdout
