"""A lake asks an object store about several tables at the same time, and a local disk about one after the other."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from resources.stores import durable, lake
from resources.stores.lake import Lake, each_of

TOPICS = ("clicks", "orders", "views")
TIMEOUT_S = 30


def with_tables(root: Path) -> Lake:
    """A lake with the logs of some tables, and folders and files that are no tables."""
    for topic in TOPICS:
        (root / "main" / topic / "_delta_log").mkdir(parents=True)
    (root / "main" / "_penstock").mkdir()
    (root / "main" / "notes.txt").touch()
    return Lake(root=str(root))


@pytest.mark.parametrize("is_local", [True, False])
def test_the_topics_of_a_lake_are_its_folders_with_a_log(
    is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_local:
        monkeypatch.setattr(durable, "local_path", lambda _: None)
    assert with_tables(tmp_path).topics("main") == list(TOPICS)
    assert Lake(root=str(tmp_path)).topics("other") == []


def test_an_object_store_is_asked_about_several_folders_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everyone = threading.Barrier(len(TOPICS) + 2)
    is_table = lake._has_delta_log

    def after_the_others_asked(files: pafs.FileSystem, folder: Sequence[str]) -> bool:
        everyone.wait(TIMEOUT_S)
        return is_table(files, folder)

    monkeypatch.setattr(lake, "_has_delta_log", after_the_others_asked)
    monkeypatch.setattr(durable, "local_path", lambda _: None)
    assert with_tables(tmp_path).topics("main") == list(TOPICS)


@pytest.mark.parametrize(("uri", "count"), [("/lake", 3), ("s3://bucket/lake", 1)])
def test_no_thread_asks_a_local_disk_or_for_one_item(uri: str, count: int) -> None:
    threads = list(each_of(uri, lambda _: threading.get_ident(), range(count), at_once=8))
    assert threads == [threading.get_ident()] * count


def test_the_answers_have_the_order_of_the_items_and_an_error_is_raised() -> None:
    assert list(each_of("s3://bucket/lake", lambda item: 10 // item, [5, 1, 2], at_once=8)) == [2, 10, 5]
    with pytest.raises(ZeroDivisionError):
        list(each_of("s3://bucket/lake", lambda item: 10 // item, [5, 0, 2], at_once=8))
