"""A load whose table is removed meanwhile fails; it does not begin another table in the middle of the log."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pytest

from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load import planned
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.progress import Progress
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import FakeCluster
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding, numbered, table, values

_SLICE = 4


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def load(
    fake: FakeCluster, folder: Path, *, fetched: Callable[[], None] = lambda: None, **options: object
) -> TopicLoad:
    """Load the topic in slices of a few records; `fetched` is called after each fetch."""

    def fetch(tasks: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
        facts = fetch_here(tasks, on_progress)
        fetched()
        return facts

    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    caps = Caps(attempts=1, request_timeout_s=5, slice_records=_SLICE)
    settings = Settings(lake=str(folder), clusters={"main": ClusterSettings(bootstrap=bootstrap)}, caps=caps)
    with open_cluster(settings, "main") as cluster:
        return loader_of(settings, cluster, no_spark, fetch=fetch, **options).load("clicks")


@pytest.mark.parametrize(("part", "error"), [("", "FileRefused"), ("_delta_log", "TableReplaced")])
def test_a_load_whose_table_is_removed_fails_and_creates_no_table(
    part: str, error: str, fake: FakeCluster, tmp_path: Path
) -> None:  # fault P07
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 30)
        failed = load(fake, tmp_path, fetched=lambda: shutil.rmtree(Path(table(tmp_path).uri, part)))
        assert failed.error is not None
        assert failed.error.startswith(error)
        assert not failed.retriable
        assert table(tmp_path).existing() is None
        assert load(fake, tmp_path).error is None
    assert values(tmp_path) == numbered(0, 30)
    assert verify(table(tmp_path)).proven


def test_a_load_whose_table_is_removed_between_two_steps_fails(fake: FakeCluster, tmp_path: Path) -> None:  # fault P07
    def remove(*_: object) -> tuple[()]:
        """Remove the table after the commit of the first step."""
        shutil.rmtree(table(tmp_path).uri)
        return ()

    with fake, patch.object(planned, "_STEP_SLICES", 2):
        failed = load(fake, tmp_path, reports={"committed": remove})
    assert failed.error is not None
    assert failed.error.startswith("TableReplaced: the table")
    assert table(tmp_path).existing() is None
