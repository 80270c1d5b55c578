"""A live cluster and one Spark session, for the tests of loads, and a table made by hand."""

from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import Proof, verify
from resources.lake import Lake
from resources.settings import PATH_VARIABLE, Settings
from resources.spark import open_session
from tests.live import LiveCluster, live_cluster
from tests.small_table import SmallTable


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session({"master": "local[2,2]", "spark.ui.enabled": "false"})
    yield session
    session.stop()


@pytest.fixture
def live(chroot: str, tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(chroot, tmp_path / "live") as cluster:
        yield cluster


@pytest.fixture
def load(live: LiveCluster, spark: SparkSession) -> Callable[..., TopicLoad]:
    """Load a topic of the live cluster, as the settings file says."""

    def run(topic: str, **options: object) -> TopicLoad:
        settings = Settings.load(live.settings)
        with live.open() as cluster:
            return Loader.of(settings, cluster, lambda: spark, **options).load(topic)

    return run


@pytest.fixture
def prove(live: LiveCluster) -> Callable[[str], Proof]:
    """Verify the table of a topic of the live cluster."""
    lake = Lake(root=str(live.lake))
    return lambda topic: verify(LakeTable.of(lake, "main", topic))


@pytest.fixture
def small(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path / "lake")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster of this test alone, with storage on disk as a daemon's has."""
    home = tmp_path / "dagster"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home), overrides={"telemetry": {"enabled": False}}) as local:
        yield local


@pytest.fixture
def configured(live: LiveCluster, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> LiveCluster:
    """The live cluster, named by the environment as Dagster's processes have it; runs share the Spark session."""
    monkeypatch.setenv(PATH_VARIABLE, str(live.settings))
    return live
