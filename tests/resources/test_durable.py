"""A new file and all new folders above it are forced to disk, and no folder is forced twice for the same entry."""

from pathlib import Path

import pytest

from resources import durable


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that were forced to disk."""
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    return synced


def test_a_file_and_all_folders_up_to_the_parent_of_the_root_are_forced(synced: list[Path]) -> None:
    durable.sync_below(Path("/lake/table"), Path("/lake/table/date=1/a.parquet"))
    assert synced == [
        Path(path) for path in ("/lake/table/date=1/a.parquet", "/lake/table/date=1", "/lake/table", "/lake")
    ]


def test_a_folder_is_forced_again_only_for_a_new_entry(synced: list[Path]) -> None:
    root, durable_folders = Path("/lake/table"), set[Path]()
    durable.sync_below(root, root / "date=1" / "a", durable_folders)
    synced.clear()
    durable.sync_below(root, root / "date=1" / "b", durable_folders)
    assert synced == [root / "date=1" / "b", root / "date=1"]
    synced.clear()
    durable.sync_below(root, root / "date=2" / "c", durable_folders)
    assert synced == [root / "date=2" / "c", root / "date=2", root]


def test_a_folder_that_was_not_forced_is_forced_by_the_next_file(
    synced: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, durable_folders = Path("/lake/table"), set[Path]()

    def fail_at_root(path: Path) -> None:
        if path == root:
            raise OSError("the disk is full")

    with monkeypatch.context() as failing:
        failing.setattr(durable, "sync", fail_at_root)
        with pytest.raises(OSError, match="full"):
            durable.sync_below(root, root / "date=1" / "a", durable_folders)
    durable.sync_below(root, root / "date=1" / "b", durable_folders)
    assert synced[1:] == [root / "date=1", root, root.parent]
