"""Dagster's storage in a real Postgres, with the instance of docs/deploy: a run, pools, old events, a migration."""

import json
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from click.testing import CliRunner
from dagster._cli import create_dagster_cli

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from resources.settings.settings import PATH_VARIABLE, Settings
from tests.live import numbered
from tests.pipelines.defs.declared import key, run
from tests.publishing import publish_by_settings

pytestmark = pytest.mark.postgres

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy"
EARLIER = "7e2f3204cf8e"
"""A revision of Dagster's tables to which that of its newest version adds nothing in Postgres."""


@pytest.fixture
def home(postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DAGSTER_HOME with the documented file, and an empty database."""
    home = tmp_path / "dagster"
    home.mkdir()
    shutil.copy(DEPLOY / "dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres_dsn.replace("postgresql:", "postgresql+psycopg2:"))
    return home


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a running broker with 20 records in `clicks`."""
    file = tmp_path / "penstock.toml"
    monkeypatch.setenv(PATH_VARIABLE, str(file))
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')
        loaded = Settings.load(file)
        publish_by_settings(loaded, "clicks", numbered(20))
        yield loaded


def checked_storage() -> tuple[bool, str]:
    """Whether `penstock config check` accepts the storage, and its sentence."""
    results = json.loads(CliRunner().invoke(main, ["config", "check", "--json"]).stdout)["results"]
    [storage] = (result for result in results if result["check"] == "dagster storage")
    return storage["ok"], storage["message"]


def dagster_command(*words: str) -> str:
    """What a command of Dagster prints."""
    command: Any = create_dagster_cli()  # type: ignore[no-untyped-call] # Dagster gives it no types
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_storage_keeps_runs_and_pools_and_is_migrated_and_cleaned(
    home: Path, settings: Settings, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.DagsterInstance.get() as instance:
        result = run(instance, ["clicks"], settings=settings)
        event = instance.get_latest_materialization_event(key("clicks"))
        assert event
        assert (result.success, event.run_id) == (True, result.run_id)
    dagster_command("instance", "concurrency", "set", "kafka_main", "3")
    assert '"kafka_main"' in dagster_command("instance", "concurrency", "get", "--all")
    assert checked_storage() == (True, "PostgresRunStorage, runs: 1, limit of pools: 2")

    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        [(head,)] = connection.execute("select version_num from alembic_version").fetchall()
        connection.execute(f"update alembic_version set version_num = '{EARLIER}'".encode())
    is_ok, sentence = checked_storage()
    assert not is_ok
    assert f"at the revision {EARLIER}, and this version of Dagster needs {head}" in sentence
    dagster_command("instance", "migrate")

    delete_old_runs = runpy.run_path(str(DEPLOY / "delete_old_runs.py"))["delete_old_runs"]
    with dg.DagsterInstance.get() as instance:
        assert (delete_old_runs(instance, days=1), delete_old_runs(instance, days=0)) == (0, 1)
        assert (instance.get_run_by_id(result.run_id), instance.all_logs(result.run_id)) == (None, [])
        publish_by_settings(settings, "clicks", numbered(5, start=20))
        assert run(instance, ["clicks"], settings=settings).success
    history = json.loads(CliRunner().invoke(main, ["history", "clicks", "--json"]).stdout)["results"]
    assert [commit["rows"] for commit in history[:2]] == [5, 20]  # the cursor is in the table

    monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres_dsn)  # SQLAlchemy then takes a driver that cannot write events
    assert checked_storage()[1].startswith("StorageUnusable: Dagster cannot write events through the driver psycopg: ")
