"""A lake is probed at its first use: a store that cannot hold commits is refused before anything is loaded into it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock, patch

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from resources.errors import StoreUnsafe
from resources.stores.lake import Lake, list_folder
from resources.stores.lake_marker import check_put_if_absent, read_marker, use_lake
from tests.fakes.object_store import ObjectStore, object_store


def lake_in(store: ObjectStore) -> Lake:
    return Lake(root=store.root, options=store.options)


def test_a_lake_is_marked_at_its_first_use_and_keeps_its_marker(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path / "lake"))
    assert read_marker(lake) is None
    assert not (tmp_path / "lake").exists()
    marker = use_lake(lake)
    assert (use_lake(lake), read_marker(lake)) == (marker, marker)
    assert [path.name for path in (tmp_path / "lake").iterdir()] == ["_penstock"]


def test_only_a_lake_without_tables_is_new_at_its_first_use(tmp_path: Path) -> None:  # fault N17
    lake, older = Lake(root=str(tmp_path / "lake")), tmp_path / "older"
    (older / "main" / "clicks" / "_delta_log").mkdir(parents=True)  # versions before 0.7 wrote no marker
    assert use_lake(lake).is_new
    assert not use_lake(lake).is_new
    assert not use_lake(Lake(root=str(older))).is_new


def test_a_folder_that_appears_while_it_is_listed_is_listed_again() -> None:
    """This is the error of pyarrow when another process creates the folder after the listing has failed."""
    infos = [pafs.FileInfo("main", pafs.FileType.Directory)]
    files = Mock(get_file_info=Mock(side_effect=[FileNotFoundError("Cannot list directory"), infos]))
    assert list_folder(files, "") == infos


def test_runs_that_use_a_new_lake_at_once_agree_about_its_id(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path / "lake"))
    with ThreadPoolExecutor(4) as runs:
        assert len(set(runs.map(lambda _: use_lake(lake), range(4)))) == 1


def test_a_store_that_refuses_a_second_writer_is_probed_once() -> None:  # fault P13
    with object_store() as store:
        marker = use_lake(lake_in(store))
        assert store.objects == ["lake/_penstock/_delta_log/00000000000000000000.json"]
        probed = len(store.requests)
        assert use_lake(lake_in(store)) == marker
        assert {method for method, _ in store.requests[probed:]} <= {"GET", "HEAD"}
        assert len(store.requests) - probed <= 2


def test_the_clusters_of_a_lake_are_its_folders_with_tables() -> None:
    with object_store() as store:
        lake = lake_in(store)
        use_lake(lake)
        assert lake.clusters() == []
        columns = pa.schema([pa.field("offset", pa.int64())])
        lake.create(lake.table_uri("main", "clicks"), columns, partition_by=[], configuration={})
        assert lake.clusters() == ["main"]


def test_a_store_that_ignores_if_none_match_is_refused_and_left_unmarked() -> None:  # fault P13
    with object_store(put_if_absent=False) as store:
        with pytest.raises(StoreUnsafe, match="lets a second writer replace an object"):
            use_lake(lake_in(store))
        assert store.objects == []
        assert read_marker(lake_in(store)) is None


def test_a_file_system_that_replaces_files_is_refused(tmp_path: Path) -> None:  # fault P13
    with (
        patch.object(os, "link", lambda source, target: Path(target).write_bytes(source.read_bytes())),
        pytest.raises(StoreUnsafe),
    ):
        check_put_if_absent(Lake(root=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []
