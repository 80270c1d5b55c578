"""The files of a load are on the disk, with the entries of their folders, before a commit names them (fault L10)."""

from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pytest

from pipelines.fetch.fetch_runner import fetch_here
from pipelines.reports.outcome import TopicLoad
from resources.kafka import open_cluster
from resources.settings.settings import ClusterSettings, Settings
from resources.stores import durable
from tests.fakes.cluster import FakeCluster
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding, values


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def loaded(fake: FakeCluster, lake: Path) -> TopicLoad:
    """The result of a load of two partitions, each with one slice."""
    fake.logs[0], fake.logs[1] = holding(0, 50), holding(0, 50)
    with fake:
        settings = Settings(lake=str(lake), clusters={"main": ClusterSettings(bootstrap=fake.bootstrap[0].address)})
        with open_cluster(settings, "main") as cluster:
            return loader_of(settings, cluster, no_spark, fetch=fetch_here).load("clicks")


def test_the_folder_of_many_files_is_forced_once_after_all_of_them_and_before_the_commit(
    fake: FakeCluster, tmp_path: Path
) -> None:
    with patch.object(durable, "sync", wraps=durable.sync) as sync:
        assert loaded(fake, tmp_path).error is None
    synced = [call.args[0] for call in sync.call_args_list]
    files = [path for path in synced if path.suffix == ".parquet" and "_delta_log" not in path.parts]
    [folder] = {path.parent for path in files}
    [commit] = [path for path in synced if path.name == f"{1:020d}.json"]
    assert len(files) == len(set(files)) == 2
    assert synced.count(folder) == 1
    assert max(map(synced.index, files)) < synced.index(folder) < synced.index(commit)


def test_a_folder_that_cannot_be_forced_to_disk_ends_the_load_without_a_commit(
    fake: FakeCluster, tmp_path: Path
) -> None:
    def sync(path: Path) -> None:
        if path.name.startswith("date="):
            raise OSError(5, "Input/output error")

    with patch.object(durable, "sync", sync):
        result = loaded(fake, tmp_path)
    assert result.error is not None
    assert "input/output error" in result.error
    assert values(tmp_path) == []
