"""The requests to an object store do not grow with the history of a table: each command has a bound."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipelines.reports.outcome import TopicLoad
from pipelines.status.collect import statuses_of
from pipelines.verify.verify import verify
from resources.errors import FileRefused
from resources.kafka import open_cluster
from resources.stores.lake import Lake
from resources.stores.lake_marker import use_lake
from resources.stores.object_reads import ObjectReader
from tests.counted_lake import STEP, CountedLake
from tests.fakes.cluster import FakeCluster
from tests.fakes.object_store import ObjectStore, object_store
from tests.fakes.records import holding
from tests.small_store import SmallStore
from tests.small_table import SmallTable

_ENTRIES_PER_CHECKPOINT = 10
_OF_RUN = 2  # the marker of the lake, and the last errors
_OF_COMMIT = 3  # the entry, and before and after it the entry on which it is built
_OF_FILE = 2  # the file, and its footer
_OF_CHECKPOINT = 2  # the file, and the pointer to it
_MAX_OF_LOAD, _MAX_OF_FILE = 15, 3


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def opening(version: int) -> int:
    """The requests with which a table is opened: the pointer, a listing, the checkpoint, and the entries after it."""
    if version < _ENTRIES_PER_CHECKPOINT:
        return 2 + version + 1
    return 3 + max(1, version % _ENTRIES_PER_CHECKPOINT)


@pytest.fixture
def small(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path)


@pytest.fixture(params=[2, 9, 25, pytest.param(99, marks=pytest.mark.thorough)], ids=str)
def lake(request: pytest.FixtureRequest, store: ObjectStore, fake: FakeCluster) -> Iterator[CountedLake]:
    """A lake whose table has so many versions."""
    with fake:
        lake = CountedLake(store, fake, f"lake-{uuid4().hex}")
        lake.load()
        lake.commit_until(request.param)
        yield lake


@pytest.mark.slow
def test_the_requests_of_a_command_do_not_grow_with_the_history(lake: CountedLake) -> None:  # fault L22
    nothing_new = lake.counted(lake.load)
    assert nothing_new == _OF_RUN + opening(lake.version)
    assert nothing_new <= _MAX_OF_LOAD
    for files in (1, 2):
        for number in range(files):
            lake.fake.logs[number] = holding(0, lake.fake.logs[number].end + STEP)
        checkpoints = int((lake.version + 1) % _ENTRIES_PER_CHECKPOINT == 0)
        expected = _OF_RUN + opening(lake.version) + _OF_COMMIT + _OF_FILE * files + _OF_CHECKPOINT * checkpoints
        loads: list[TopicLoad] = []
        assert lake.counted(lambda: loads.append(lake.load())) == expected  # noqa: B023 - called at once
        assert expected <= _MAX_OF_LOAD + _MAX_OF_FILE * (files + checkpoints)
        assert loads[0].files == files
    entries, data_files, folders = lake.version + 1, len(lake.data_files), 1
    pointer, listing, checkpoint = 1, 1, int(lake.version >= _ENTRIES_PER_CHECKPOINT)
    expected = pointer + listing + checkpoint + entries + folders + 2 * data_files
    assert lake.counted(lambda: verify(lake.table)) == expected
    assert verify(lake.table).proven
    with open_cluster(lake.settings, "main") as cluster:
        topic = {"clicks": cluster.topic("clicks")}
        expected = opening(lake.version) + 1  # the last errors
        assert lake.counted(lambda: statuses_of(cluster, lake.settings, topic, now_ms=0)) == expected


@pytest.mark.slow
def test_the_first_load_of_a_table_sends_few_requests(store: ObjectStore, fake: FakeCluster) -> None:  # fault L22
    with fake:
        lake = CountedLake(store, fake, f"lake-{uuid4().hex}")
        use_lake(Lake.of(lake.settings))
        assert lake.counted(lake.load) <= _MAX_OF_LOAD + _MAX_OF_FILE * 2
        assert len(lake.data_files) == 2


@pytest.mark.slow
def test_a_log_gets_a_checkpoint_every_ten_commits(small: SmallTable) -> None:  # fault L22
    for start in range(0, 210, 10):
        small.commit(small.write(start, start + 10))
    names = sorted(path.name for path in (Path(small.uri) / "_delta_log").glob("*.checkpoint.parquet"))
    assert names == [f"{version:020d}.checkpoint.parquet" for version in (10, 20)]
    assert verify(small.table).proven


def test_a_table_keeps_the_interval_of_its_checkpoints(small: SmallTable) -> None:  # fault L22
    small.commit(small.write(0, 10))
    small.handle().alter.set_table_properties({"delta.checkpointInterval": "4"}, raise_if_not_exists=False)
    for start in (10, 20, 30):
        small.commit(small.write(start, start + 10))
    assert [path.name[:20] for path in (Path(small.uri) / "_delta_log").glob("*.checkpoint.parquet")] == [f"{4:020d}"]


def test_a_load_succeeds_if_its_checkpoint_cannot_be_written(
    small: SmallTable, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault L22
    def fail(_: DeltaTable) -> NoReturn:
        raise DeltaError("Generic S3 error: status 503")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    for start in range(0, 100, 10):
        small.commit(small.write(start, start + 10))
    assert verify(small.table).proven


@pytest.mark.parametrize("length", [0, 3, 4 * 2**20, 4 * 2**20 + 1], ids=str)
def test_an_object_of_any_length_is_read_whole(length: int, store: ObjectStore) -> None:
    lake, content = Lake(root=store.root, options=store.options), b"x" * length
    store.put("lake/some/object", content)
    reader = ObjectReader(lake.root, lake.options)
    assert reader.read("some/object") == content
    with pytest.raises(FileNotFoundError):
        reader.read("some/other")


def test_a_file_that_its_worker_did_not_write_so_is_refused(store: ObjectStore) -> None:  # fault L07
    """Its footer is not where a file of the expected size has it."""
    lake = SmallStore(store, "checked")
    good = lake.write(0, 50)
    [file] = good.files
    for size, problem in ((file.size + 1, f"has {file.size} bytes"), (10_000, f"has {file.size} bytes")):
        with pytest.raises(FileRefused, match=problem):
            lake.table.check([replace(good, files=(replace(file, size=size),))])
    with pytest.raises(FileRefused, match="is not there"):
        lake.table.check([replace(good, files=(replace(file, path="date=2026-01-02/none.parquet"),))])
    with pytest.raises(FileRefused, match="holds 5 rows; its worker wrote 6"):
        lake.table.check([replace(good, files=(replace(file, rows=6),))])
    lake.table.check([good])
