"""A load forces its commit to disk before it reports it, and data before the entry that names them.

What `fsync` was asked for stands for what a loss of power would leave.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipelines.loading.load import Loader
from resources.kafka import open_cluster
from resources.settings import Settings
from tests.crash.child import fetch_here_all
from tests.crash.harness import Trial
from tests.crash.stage import WORLDS, Stage

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]


@dataclass(slots=True)
class Synced:
    """The files and folders that were forced to disk, each with the entries that the log had then."""

    log: Path
    fsync: Callable[[int], None]
    when: dict[tuple[int, int], set[str]] = field(default_factory=dict)

    def __call__(self, number: int) -> None:
        """See `os.fsync`."""
        self.fsync(number)
        entries = {file.name for file in self.log.glob("*.json")} if self.log.exists() else set()
        self.when[_place(os.fstat(number))] = entries

    def entries_before(self, path: Path) -> set[str] | None:
        """The files of the log when the path was last forced to disk; None if it never was."""
        return self.when.get(_place(path.stat()))


def _place(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


@pytest.fixture(params=WORLDS)
def loaded(
    request: pytest.FixtureRequest, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Trial, Synced]:
    """A table that was loaded in this process."""
    trial = stage.trial(request.param, tmp_path / "trial")
    _, file = trial.place()
    synced = Synced(Path(trial.table.uri) / "_delta_log", os.fsync)
    settings = Settings.load(file)
    with monkeypatch.context() as patched, open_cluster(settings, "main") as cluster:
        patched.setattr(os, "fsync", synced)
        load = Loader.of(settings, cluster, pytest.fail, fetch=fetch_here_all).load("clicks")
    assert (load.error, load.version) == (None, 1)
    trial.check_whole()
    return trial, synced


def test_data_is_safe_before_the_entry_that_names_it(loaded: tuple[Trial, Synced]) -> None:  # fault L10
    trial, synced = loaded
    files = [Path(file) for file in trial.files()]
    assert files
    for path in {*files, *(file.parent for file in files)}:
        assert synced.entries_before(path) == {f"{0:020d}.json"}


def test_the_entry_is_safe_before_the_load_ends(loaded: tuple[Trial, Synced]) -> None:  # fault L10
    trial, synced = loaded
    table, lake = Path(trial.table.uri), trial.home / "lake"
    both = {f"{0:020d}.json", f"{1:020d}.json"}
    assert synced.entries_before(synced.log / f"{1:020d}.json") == both
    for folder in (synced.log, table, table.parent, lake, lake.parent):
        assert synced.entries_before(folder) == both
    assert synced.entries_before(synced.log / f"{0:020d}.json") == {f"{0:020d}.json"}


def test_a_sync_ignores_unfinished_entries_of_other_writers(loaded: tuple[Trial, Synced]) -> None:
    """Another writer may rename a file after the folder was listed and before the file is opened."""
    trial, synced = loaded
    (synced.log / f"{2:020d}.json#1").symlink_to("gone")
    trial.table.sync(after=0)
