"""What Dagster loads, and that loading touches nothing."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg

from pipelines.definitions import defs
from pipelines.schedules import every_topic
from pipelines.sensors import new_topics
from resources.settings import PATH_VARIABLE

ROOT = Path(__file__).parents[2]


def test_everything_is_declared() -> None:
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {"topic_table"}
    assert {key.name for key in graph.asset_check_keys} == {"offsets_covered"}
    repository = defs.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {"new_topics"}
    assert {schedule.name for schedule in repository.schedule_defs} == {"every_topic"}
    assert {job.name for job in repository.get_all_jobs()} >= {
        "load_topics",
        "backfill_from_earliest",
        "replay_topic",
    }


def test_the_sensor_and_the_schedule_run_from_the_start() -> None:
    assert new_topics.default_status is dg.DefaultSensorStatus.RUNNING
    assert every_topic.default_status is dg.DefaultScheduleStatus.RUNNING


def test_the_workspace_loads_though_the_settings_file_is_missing(tmp_path: Path) -> None:
    environment = {**os.environ, PATH_VARIABLE: str(tmp_path / "none.toml"), "DAGSTER_HOME": str(tmp_path)}
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    loading = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(ROOT / "workspace.yaml")],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert loading.returncode == 0, loading.stderr
    assert "Validation successful for code location penstock" in loading.stderr + loading.stdout
