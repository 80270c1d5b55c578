"""Dagster merges the small files of all tables at night, unless the settings say otherwise (fault F08)."""

import shutil
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable

from resources.settings.settings import PATH_VARIABLE, HousekeepingSettings, Settings
from tests.pipelines.defs.declared import CLUSTERS, defs_of
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

JOB = "clean__main__topics"
SETTINGS = 'lake = "lake"\n[clusters.main]\nzookeeper = "unused:1"\n'


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "penstock.toml"
    file.write_text(SETTINGS)
    monkeypatch.setenv(PATH_VARIABLE, str(file))
    return file


def run(instance: dg.DagsterInstance, *topics: str) -> dg.ExecuteInProcessResult:
    job = defs_of(*topics).resolve_job_def(JOB)
    return job.execute_in_process(instance=instance, raise_on_error=False)


def test_the_job_merges_small_files(
    small: SmallTable, settings: Path, instance: dg.DagsterInstance
) -> None:  # fault F08
    for start in range(0, 60, 10):
        small.commit(small.write(start, start + 10))
    assert len(small.handle().file_uris()) == 6
    assert run(instance, "clicks", "without_a_table").success
    assert len(small.handle().file_uris()) == 1


def test_a_table_that_fails_stops_no_other(
    small: SmallTable, settings: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault F08
    for start in (0, 10):
        small.commit(small.write(start, start + 10))
    broken = Path(small.lake.table_uri("main", "a")) / "_delta_log"
    broken.mkdir(parents=True)
    (broken / f"{0:020}.json").write_text("{")
    result = run(instance, "a", "clicks")
    assert not result.success
    assert len(small.handle().file_uris()) == 1


def test_the_job_retires_old_rows(small: SmallTable, settings: Path, instance: dg.DagsterInstance) -> None:
    small.commit(small.write(0, 50))
    settings.write_text(f"{SETTINGS}[topics.clicks]\nkeep_days = 30\n")
    assert run(instance, "clicks").success
    assert small.rows() == 0


def test_the_job_cleans_all_tables_of_a_topic(small: SmallTable, settings: Path, instance: dg.DagsterInstance) -> None:
    for start in range(0, 60, 10):
        small.commit(small.write(start, start + 10))
    other = small.lake.table_uri("main", "clicks/orders")
    shutil.copytree(small.table.uri, other)
    settings.write_text(f'{SETTINGS}[topics.clicks.tables]\nby = "header:type"\nnames = {{ order = "orders" }}\n')
    assert run(instance, "clicks").success
    assert [len(DeltaTable(uri).file_uris()) for uri in (small.table.uri, other)] == [1, 1]


@pytest.mark.parametrize(("cron", "expected"), [("5 4 * * 0", "5 4 * * 0"), ("never", None)])
def test_a_setting_moves_or_stops_the_schedule(cron: str, expected: str | None) -> None:  # fault F08
    of_user = Settings(lake="/nowhere", clusters=CLUSTERS, housekeeping=HousekeepingSettings(cron=cron))
    schedules = {each.name: each for each in defs_of("clicks", settings=of_user).get_repository_def().schedule_defs}
    assert (JOB in schedules) is (expected is not None)
    assert expected is None or schedules[JOB].cron_schedule == expected


def test_the_schedule_runs_by_default_at_night() -> None:  # fault F08
    [schedule] = [each for each in defs_of("clicks").get_repository_def().schedule_defs if each.name == JOB]
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert 0 <= int(str(schedule.cron_schedule).split()[1]) < timedelta(hours=6).seconds // 3600
