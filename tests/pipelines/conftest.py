"""Fixtures for the tests of pipelines: a live cluster, a small table, a Dagster instance."""

import pkgutil
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from pipelines.delta.delta_table import LakeTable
from pipelines.load.load import Loader
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import Proof, verify
from resources.settings.settings import PATH_VARIABLE, Settings
from resources.stores.lake import Lake
from tests.live import LiveCluster, live_cluster
from tests.small_table import SmallTable


@pytest.fixture
def live(chroot: str, tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(chroot, tmp_path / "live") as cluster:
        yield cluster


@pytest.fixture
def load(live: LiveCluster, spark: SparkSession) -> Callable[..., TopicLoad]:
    """Loads a topic of the live cluster with its settings file."""

    def run(topic: str, **options: object) -> TopicLoad:
        settings = Settings.load(live.settings)
        with live.open() as cluster:
            return Loader.of(settings, cluster, lambda: spark, **options).load(topic)

    return run


@pytest.fixture
def prove(live: LiveCluster) -> Callable[[str], Proof]:
    """Verifies the table of a topic of the live cluster."""
    lake = Lake(root=str(live.lake))
    return lambda topic: verify(LakeTable.of(lake, "main", topic))


@pytest.fixture
def small(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path / "lake")


def _instance_in(home: Path) -> dg.DagsterInstance:
    """An instance with one database for the events of all runs. By default each run creates one, which takes long."""
    events = {
        "module": "dagster._core.storage.event_log",
        "class": "ConsolidatedSqliteEventLogStorage",
        "config": {"base_dir": str(home / "events")},
    }
    overrides = {"telemetry": {"enabled": False}, "event_log_storage": events}
    return dg.DagsterInstance.local_temp(str(home), overrides=overrides)


@pytest.fixture(scope="session", autouse=True)
def cached_migrations() -> Iterator[None]:
    """Read the migrations of Dagster's databases once. Dagster reads sixty files for each instance that it opens."""
    directories = pkgutil.resolve_name("alembic.script:ScriptDirectory")  # Dagster's own dependency, and not ours
    read, known = directories.from_config, dict[str, Any]()

    def read_once(config: Any) -> Any:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    with patch.object(directories, "from_config", read_once):
        yield


@pytest.fixture(scope="session")
def empty_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Dagster instance without runs. To create its databases takes longer than many a test."""
    home = tmp_path_factory.mktemp("dagster")
    with _instance_in(home) as local:
        assert not local.get_runs()
    return home


@pytest.fixture
def instance(empty_instance: Path, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance for one test, with storage on disk."""
    home = shutil.copytree(empty_instance, tmp_path / "dagster")
    with _instance_in(home) as local:
        yield local


@pytest.fixture
def configured(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> LiveCluster:
    """The live cluster. The environment names its settings file."""
    monkeypatch.setenv(PATH_VARIABLE, str(live.settings))
    return live
