"""A load that fails because the disk is full leaves no file of its own, unless a commit may name it."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from pipelines.delta import delta_table
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.reports.outcome import TopicLoad
from resources.errors import CommitUnknown, LakeUnavailable
from resources.progress import Progress
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding
from tests.pipelines.loaded import Loaded

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[Loaded]:
    """A topic whose first ten records are loaded, and ten more are not."""
    with FakeCluster(logs={0: holding(0, 10), 1: holding(0, 10)}) as cluster:
        loaded = Loaded(tmp_path / "penstock.toml")
        bootstrap = ",".join(broker.address for broker in cluster.bootstrap)
        loaded.settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{bootstrap}"\n')
        loaded.load()
        cluster.logs |= {0: holding(0, 20), 1: holding(0, 20)}
        yield loaded


def files(topic: Loaded) -> set[str]:
    return {path.name for path in Path(topic.table.uri).glob("*/*.parquet") if "_delta_log" not in path.parts}


def load(topic: Loaded, **options: object) -> TopicLoad:
    with topic.loader(**options) as loader:
        return loader.load("clicks")


@contextmanager
def refusing(error: Exception) -> Iterator[None]:
    """The disk takes no commit file."""

    class Client:
        """The store of a table."""

        def create(self, *_: object) -> None:
            """Refuse."""
            raise error

    with patch.object(delta_table, "store_client", lambda *_: Client()):
        yield


def test_the_files_of_a_commit_that_a_full_disk_refused_are_deleted(topic: Loaded) -> None:  # faults E21, L04
    before = files(topic)
    with refusing(FULL):
        failed = load(topic)
    assert "no space left on device" in str(failed.error)
    assert files(topic) == before
    topic.load()
    assert topic.problems() == ()


@pytest.mark.parametrize("error", [OSError(errno.EIO, "input/output error"), FULL], ids=["broken", "full"])
def test_files_that_a_commit_may_name_stay(error: OSError, topic: Loaded) -> None:  # faults E21, L04
    """A broken disk says nothing of what it wrote. With a full one, the table may be unreadable after the write."""
    before = files(topic)
    unreadable = LakeUnavailable("no answer")
    with refusing(error), patch.object(delta_table.DeltaLakeTable, "newer", side_effect=unreadable):
        failed = load(topic)
    assert failed.failures[0].kind == CommitUnknown.__name__
    assert len(files(topic)) == len(before) + 2


def test_files_that_no_commit_got_are_deleted(topic: Loaded) -> None:  # fault E21
    """The second slice of partition 1 fails, so nothing after it can be committed."""

    def fetch(tasks: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
        facts = fetch_here(tasks, on_progress)
        failure = SliceFailure(kind="LakeUnavailable", reason="the disk is full")
        return [replace(part, failure=failure) if part.partition.partition == 1 else part for part in facts]

    before = files(topic)
    assert load(topic, fetch=fetch).error is not None
    assert len(files(topic)) == len(before) + 1
    topic.load()
    assert topic.problems() == ()
