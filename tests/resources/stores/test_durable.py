"""A new file and all new folders above it are forced to disk, or the caller learns which folders it must force."""

from pathlib import Path

import pytest

from resources.stores import durable


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


def test_folders_that_are_forced_later_are_collected_once(synced: list[Path]) -> None:
    root, later = Path("/lake/table"), set[Path]()
    for name in ("date=1/a", "date=1/b", "date=2/c"):
        durable.sync_below(root, root / name, later)
    assert synced == [root / "date=1" / "a", root / "date=1" / "b", root / "date=2" / "c"]
    assert later == {root / "date=1", root / "date=2", root, root.parent}
