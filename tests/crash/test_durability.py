"""A load forces data files to disk before the log entry that names them, and this entry before it reports success.

The tests record the calls of `fsync`: a file is taken as safe from a loss of power after its last call.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from resources.kafka import open_cluster
from resources.settings.settings import Settings
from tests.crash.child import fetch_here_all
from tests.crash.harness import Trial
from tests.crash.stage import WORLDS, Stage
from tests.fakes.loaders import loader_of

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]


@dataclass(slots=True)
class Synced:
    """Replaces `os.fsync`. `when` has the synced files and folders, each with the log entries at its last sync."""

    log: Path
    fsync: Callable[[int], None]
    when: dict[tuple[int, int], set[str]] = field(default_factory=dict)

    def __call__(self, number: int) -> None:
        """See `os.fsync`."""
        self.fsync(number)
        entries = {file.name for file in self.log.glob("*.json")} if self.log.exists() else set()
        self.when[_file_id(os.fstat(number))] = entries

    def entries_before(self, path: Path) -> set[str] | None:
        """The log entries at the time when the path was last forced to disk; None if it never was."""
        return self.when.get(_file_id(path.stat()))


def _file_id(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


@pytest.fixture(params=WORLDS)
def loaded(
    request: pytest.FixtureRequest, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Trial, Synced]:
    """A table that this process has loaded, with the calls of `fsync`."""
    trial = stage.trial(request.param, tmp_path / "trial")
    _, file = trial.new_driver_files()
    synced = Synced(Path(trial.table.uri) / "_delta_log", os.fsync)
    settings = Settings.load(file)
    with monkeypatch.context() as patched, open_cluster(settings, "main") as cluster:
        patched.setattr(os, "fsync", synced)
        load = loader_of(settings, cluster, pytest.fail, fetch=fetch_here_all).load("clicks")
    assert (load.error, load.version) == (None, 1)
    trial.check_complete()
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
