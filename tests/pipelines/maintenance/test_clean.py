"""Housekeeping deletes files that no version needs; rows, cursors and history stay."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableAlterer

from kafka_io.model import BrokerPartition
from pipelines.delta import compaction
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.layout.layout import RAW
from pipelines.ledger.committed_range import ExactCause
from pipelines.maintenance import clean as cleaning
from pipelines.maintenance.clean import CleanResult, clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.staging import remove_staged, staging_folder
from pipelines.table.exact_sets import store_exact
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.verify import verify
from resources import failpoints
from resources.errors import LakeRefused, LakeUnavailable, RewindRefused
from resources.printed import printed
from resources.stores.lake import Lake
from tests.pipelines.taken_out import rows_of
from tests.small_table import SmallTable

A = BrokerPartition(0, 0)
DAY = timedelta(days=1)
MIB = 1024 * 1024


def aged(small: SmallTable, path: str, *, days: float) -> Path:
    """The file, as if written so long ago."""
    file = Path(small.uri) / path
    then = time.time() - days * 86400
    os.utime(file, (then, then))
    return file


def cleaned(small: SmallTable, *, dry_run: bool = False, keep: timedelta = DAY) -> CleanResult:
    return clean(small.table, keep=keep, target_bytes=MIB, dry_run=dry_run)


@pytest.fixture
def filled(small: SmallTable) -> SmallTable:
    for start in range(0, 200, 50):
        small.commit(small.write(start, start + 50))
    return small


def test_a_table_in_a_folder_whose_path_is_no_url_is_cleaned(tmp_path: Path) -> None:
    small = SmallTable(tmp_path / "my lake")
    for start in range(0, 200, 50):
        small.commit(small.write(start, start + 50))
    assert cleaned(small).merged == 4
    assert small.table.snapshot().opened.uri == small.uri


def test_orphans_are_collected_when_they_are_old_enough(filled: SmallTable) -> None:  # faults L01, L08, S03
    old = aged(filled, filled.write(900, 950).files[0].path, days=2)
    young = aged(filled, filled.write(950, 990).files[0].path, days=0.5)
    result = cleaned(filled)
    assert result.collected == (str(old.relative_to(filled.uri)),)
    assert result.bytes > 0
    assert (old.exists(), young.exists()) == (False, True)
    assert verify(filled.table).proven


@pytest.mark.parametrize(
    "link", ["linked", "date=2026-01-02/linked", "_replays", "_replays/run", "date=2026-01-03"], ids=str
)
def test_files_behind_a_link_to_a_folder_are_not_those_of_the_table(
    link: str, filled: SmallTable, tmp_path: Path
) -> None:  # fault E14
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in ("theirs.parquet", "also.parquet"):
        (foreign / name).write_bytes(b"rows")
        os.utime(foreign / name, (0, 0))
    path = Path(filled.uri) / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(foreign)
    (foreign / "loop").symlink_to(filled.uri)
    assert cleaned(filled, dry_run=True).collected == ()
    assert cleaned(filled).collected == ()
    assert sorted(file.name for file in foreign.iterdir()) == ["also.parquet", "loop", "theirs.parquet"]
    assert path.is_symlink()


def test_staged_files_are_removed_without_what_a_link_among_them_leads_to(
    filled: SmallTable, tmp_path: Path
) -> None:  # fault E14
    (foreign := tmp_path / "theirs").mkdir()
    (foreign / "theirs.parquet").write_bytes(b"rows")
    staged = Path(filled.uri) / staging_folder("run")
    staged.mkdir(parents=True)
    (staged / "linked").symlink_to(foreign)
    remove_staged(filled.table, staging_folder("run"))
    assert not staged.exists()
    assert (foreign / "theirs.parquet").exists()


def test_a_file_in_a_deeper_folder_is_collected_too(filled: SmallTable) -> None:
    orphan = filled.write(900, 950).files[0].path
    deeper = Path(filled.uri) / "date=2026-01-02" / "deeper" / "orphan.parquet"
    deeper.parent.mkdir()
    (Path(filled.uri) / str(orphan)).rename(deeper)
    aged(filled, str(deeper), days=2)
    assert cleaned(filled).collected == ("date=2026-01-02/deeper/orphan.parquet",)


def test_only_files_that_are_deleted_are_announced(filled: SmallTable) -> None:
    for deleted in (0, 4):
        assert len(cleaned(filled, keep=timedelta(0)).collected) == deleted
    version = filled.table.snapshot().version
    assert cleaned(filled, keep=timedelta(0)).collected == ()
    assert filled.table.snapshot().version == version


def test_what_was_announced_is_not_announced_again(filled: SmallTable) -> None:
    unneeded = cleaning.UnneededFiles(unnamed={}, removed={"date=2026-01-02/gone.parquet": 1}, before=2, young=0)
    version = filled.table.snapshot().version
    for _ in range(2):
        assert cleaning.delete_removed(filled.table, filled.table.snapshot(), unneeded) == unneeded
    assert filled.table.snapshot().version == version + 1


def test_housekeeping_passes_its_failpoints_in_order(filled: SmallTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no crash test would end it there."""
    cleaned(filled)  # the merged files are removed from the table
    filled.commit(filled.write(200, 250))
    monkeypatch.setenv(failpoints.KILL_AT, "raise:no failpoint")
    monkeypatch.setattr(failpoints, "_pass_counts", Counter())
    cleaned(filled, keep=timedelta(0))
    expected = ["before clean", "clean announced", "file cleaned"]
    assert list(failpoints._pass_counts) == [*expected, "before compaction", "compaction announced", "after compaction"]


def test_a_dry_run_reports_the_same_files_and_changes_nothing(filled: SmallTable) -> None:
    old = aged(filled, filled.write(900, 950).files[0].path, days=2)
    version = filled.table.snapshot().version
    dry = cleaned(filled, dry_run=True)
    assert dry.collected == (str(old.relative_to(filled.uri)),)
    assert (dry.merged, dry.larger) == (0, 0)
    assert old.exists()
    assert filled.table.snapshot().version == version
    assert cleaned(filled).collected == dry.collected


def test_small_files_become_one_and_rows_cursor_and_ledger_stay(filled: SmallTable) -> None:  # fault L16
    before = filled.table.snapshot()
    result = cleaned(filled)
    assert (result.merged, result.larger) == (4, 1)
    assert (filled.rows(), filled.covered()) == (20, {A: (0, 200)})
    after = filled.table.snapshot()
    assert after.entry == before.entry
    assert verify(filled.table).problems == ()
    filled.commit(filled.write(200, 250))
    assert (filled.rows(), filled.covered()) == (25, {A: (0, 250)})
    assert verify(filled.table).problems == ()


def test_a_load_planned_before_the_files_were_merged_still_lands(filled: SmallTable) -> None:  # fault L16
    snapshot = filled.table.snapshot()
    facts = filled.write(200, 250)
    cleaned(filled)
    filled.commit(facts, snapshot=snapshot)
    assert (filled.rows(), verify(filled.table).problems) == (25, ())


def test_a_load_in_flight_keeps_its_files(filled: SmallTable) -> None:  # fault L08
    snapshot = filled.table.snapshot()
    facts = filled.write(200, 250)
    for _ in range(2):
        cleaned(filled)
    filled.commit(facts, snapshot=snapshot)
    assert verify(filled.table).problems == ()


def test_merged_files_are_collected_once_they_are_old(filled: SmallTable) -> None:
    cleaned(filled)
    assert cleaned(filled).collected == ()
    assert len(cleaned(filled, keep=timedelta(0)).collected) == 4
    assert verify(filled.table).problems == ()


def test_the_files_of_a_killed_replay_are_collected_too(filled: SmallTable) -> None:
    folder = Path(filled.uri) / "_replays" / "run"
    folder.mkdir(parents=True)
    (folder / "old.parquet").write_bytes(b"old")
    (folder / "young.parquet").write_bytes(b"young")
    aged(filled, "_replays/run/old.parquet", days=2)
    assert cleaned(filled).collected == ("_replays/run/old.parquet",)
    assert [file.name for file in folder.iterdir()] == ["young.parquet"]


def test_another_file_than_parquet_is_never_collected(filled: SmallTable) -> None:
    notes = Path(filled.uri) / "date=2026-01-02" / "notes.txt"
    notes.write_text("ours")
    aged(filled, str(notes), days=2)
    assert cleaned(filled).collected == ()
    assert notes.exists()


@pytest.mark.parametrize(
    ("sizes", "target", "has_some"),
    [
        ({"1": [1], "2": [1, 1]}, 2, True),
        ({"1": [3]}, 5, False),
        ({"1": [2, 3]}, 4, False),
        ({"1": [9, 2, 9, 2]}, 4, True),
    ],
)
def test_files_are_merged_if_two_of_one_day_fit_into_one(
    sizes: dict[str, list[int]], target: int, has_some: bool
) -> None:
    adds = [{"partition.date": day, "size_bytes": size} for day, of_day in sizes.items() for size in of_day]
    opened = Mock(files=lambda: pa.Table.from_pylist(adds), layout=RAW)
    assert cleaning._days_to_merge(opened, target, date(2026, 1, 1)) == (None if has_some else [])


@pytest.mark.parametrize(
    ("sizes", "is_worth"),
    [
        ([1, 1], True),
        ([1, 8], True),
        ([1, 9], False),
        ([1, 1, 16], True),
        ([1] * 8 + [100], True),
        ([1] * 7 + [100], False),
    ],
)
def test_the_large_file_of_a_closed_day_is_not_written_again_for_a_few_late_records(
    sizes: list[int], is_worth: bool
) -> None:
    assert cleaning._is_worth_merging(sizes) == is_worth


def test_the_log_gets_a_checkpoint_and_keeps_its_entries(filled: SmallTable) -> None:
    cleaned(filled)
    names = sorted(file.name for file in (Path(filled.uri) / "_delta_log").iterdir())
    assert any(name.endswith(".checkpoint.parquet") for name in names)
    assert [f"{version:020d}.json" in names for version in range(5)] == [True] * 5
    newest = filled.table.snapshot().version
    assert f"{newest:020d}.checkpoint.parquet" in names
    assert [entry.sequence for _, entry in filled.table.entries(filled.table.snapshot())] == [4, 3, 2, 1]


def test_the_checkpoint_is_forced_to_disk(filled: SmallTable) -> None:
    with patch.object(DeltaLakeTable, "sync") as sync:
        cleaned(filled)
    sync.assert_called_once_with(after=filled.table.snapshot().version - 1)


def test_if_another_writer_was_first_nothing_is_merged_and_the_rest_is_done(filled: SmallTable) -> None:
    def overtaken(**_: object) -> None:
        filled.commit(filled.write(200, 210))
        raise CommitFailedError("a concurrent transaction deleted data")

    old = aged(filled, filled.write(900, 950).files[0].path, days=2)
    with patch.object(DeltaTable, "optimize") as optimize:
        optimize.compact.side_effect = overtaken
        result = cleaned(filled)
    assert (result.busy, result.merged) == (True, 0)
    assert not old.exists()


def test_a_compaction_that_deltalake_refuses_for_another_reason_is_an_error(filled: SmallTable) -> None:  # fault E22
    with patch.object(DeltaTable, "optimize") as optimize:
        optimize.compact.side_effect = CommitFailedError("Unsupported table features required: [X]")
        with pytest.raises(LakeRefused, match=r"takes no commit: Unsupported table features required: \[X\]"):
            cleaned(filled)


@contextmanager
def happening(step: str, event: Callable[[], None]) -> Iterator[None]:
    """Let something happen while the housekeeping is suspended at a failpoint."""
    pending = [event]

    def failpoint(name: str) -> None:
        if name == step and pending:
            pending.pop()()

    with patch.object(cleaning, "failpoint", failpoint), patch.object(compaction, "failpoint", failpoint):
        yield


def test_two_housekeeping_runs_never_merge_the_same_files(filled: SmallTable) -> None:  # fault L16
    def other() -> None:
        assert cleaned(filled).merged == 4

    with happening("compaction announced", other):
        assert cleaned(filled).busy
    assert filled.rows() == 20


@pytest.fixture
def merged(filled: SmallTable) -> SmallTable:
    """A table whose four files of version 4 were merged into one."""
    cleaned(filled)
    return filled


def test_a_rewind_is_refused_while_a_suspended_clean_may_delete_its_files(merged: SmallTable) -> None:  # fault P14
    def rewind_to_merged_files() -> None:
        with pytest.raises(RewindRefused, match=r"may be deleted at any time, because `penstock clean` cleaned up"):
            rewind(plan_rewind(merged.table, 2, run="back"))

    with happening("clean announced", rewind_to_merged_files):
        assert len(cleaned(merged, keep=timedelta(0)).collected) == 4
    assert (merged.rows(), verify(merged.table).problems) == (20, ())


def test_a_rewind_that_was_planned_before_the_clean_is_refused(merged: SmallTable) -> None:  # fault P14
    planned = plan_rewind(merged.table, 2, run="back")

    def finish_rewind() -> None:
        with pytest.raises(RewindRefused, match="may be deleted at any time"):
            rewind(planned)

    with happening("clean announced", finish_rewind):
        cleaned(merged, keep=timedelta(0))
    assert (merged.rows(), verify(merged.table).problems) == (20, ())


def test_a_clean_keeps_the_files_that_a_rewind_brought_back_before_its_announcement(
    merged: SmallTable,
) -> None:  # fault P14
    with happening("before clean", lambda: (rewind(plan_rewind(merged.table, 2, run="back")), None)[1]):
        result = cleaned(merged, keep=timedelta(0))
    assert result.collected == ()  # another writer was first
    assert (merged.rows(), verify(merged.table).problems) == (10, ())


@pytest.mark.slow
def test_a_clean_spares_what_a_rewind_brought_back_even_if_its_announcement_lands_on_top(
    merged: SmallTable, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault P14
    """Deltalake refuses such an announcement today, and promises it nowhere."""
    announce = DeltaLakeTable.announce_clean

    def on_top(table: DeltaLakeTable, _snapshot: TableSnapshot, before: int) -> None:
        announce(table, table.snapshot(), before)

    monkeypatch.setattr(DeltaLakeTable, "announce_clean", on_top)
    with happening("before clean", lambda: (rewind(plan_rewind(merged.table, 2, run="back")), None)[1]):
        result = cleaned(merged, keep=timedelta(0))
    assert len(result.collected) == 2  # the files of the loads that the rewind took back
    assert (merged.rows(), verify(merged.table).problems) == (10, ())


def test_a_rewind_to_a_version_whose_files_are_all_kept_is_possible_after_a_clean(
    merged: SmallTable,
) -> None:  # fault P14
    merged.commit(merged.write(200, 250))
    cleaned(merged, keep=timedelta(0))
    version = merged.table.snapshot().version
    merged.commit(merged.write(250, 300))
    rewind(plan_rewind(merged.table, version, run="back"))
    assert (merged.rows(), verify(merged.table).problems) == (25, ())


def test_a_clean_of_a_full_disk_deletes_files_before_it_writes(filled: SmallTable) -> None:  # fault N10
    old = aged(filled, filled.write(900, 950).files[0].path, days=2)
    full = OSError(28, "No space left on device")
    with (
        patch.object(TableAlterer, "set_table_properties", side_effect=full),
        patch.object(DeltaTable, "create_checkpoint", side_effect=full),
        pytest.raises(LakeUnavailable, match="no space left on device"),
    ):
        cleaned(filled)
    assert not old.exists()


def test_a_clean_writes_nothing_where_the_disk_has_no_room(filled: SmallTable) -> None:  # fault E21
    old, version = aged(filled, filled.write(900, 950).files[0].path, days=2), filled.handle().version()
    with patch("shutil.disk_usage", return_value=SimpleNamespace(free=1000)):
        first, second = cleaned(filled), cleaned(filled)
    assert (first.collected, second.collected) == ((str(old.relative_to(filled.uri)),), ())
    assert (first.full, second.full, first.merged, filled.handle().version()) == (True, True, 0, version)
    assert (cleaned(filled).full, cleaned(filled).merged) == (False, 0)


def test_a_table_with_a_lost_data_file_is_cleaned_and_not_merged(filled: SmallTable) -> None:  # fault N09
    old = aged(filled, filled.write(900, 950).files[0].path, days=2)
    lost = next(Path(filled.uri).glob("date=*/0-0-00000000000000000050-*"))
    lost.unlink()
    result = cleaned(filled)
    assert (result.damaged, result.merged) == ((str(lost.relative_to(filled.uri)),), 0)
    assert not old.exists()


def test_a_table_of_another_program_is_named_and_left_as_it_is(tmp_path: Path) -> None:  # fault U01
    lake = Lake(root=str(tmp_path))
    foreign = DeltaLakeTable.of(lake, "main", "others")
    for number in range(3):
        write_deltalake(foreign.uri, pa.table({"number": [number]}), mode="append")
    Path(foreign.uri, "loose.parquet").write_bytes(b"theirs")
    files = sorted(Path(foreign.uri).rglob("*"))
    result = clean(foreign, keep=timedelta(0), target_bytes=MIB, dry_run=False)
    assert "holds data that Penstock did not load" in result.foreign
    assert (result.collected, result.merged) == ((), 0)
    assert sorted(Path(foreign.uri).rglob("*")) == files


def test_a_topic_without_a_table_has_nothing_to_clean(small: SmallTable, tmp_path: Path) -> None:
    nowhere = DeltaLakeTable.of(Lake(root=str(tmp_path / "none")), "main", "views")
    assert printed(clean(nowhere, keep=DAY, target_bytes=MIB, dry_run=False)) == {
        "table": nowhere.uri,
        "collected": [],
        "bytes": 0,
        "young": 0,
        "empty": False,
        "merged": 0,
        "larger": 0,
        "busy": False,
        "full": False,
        "foreign": "",
        "damaged": [],
        "uploads": 0,
        "uploads_unknown": "",
    }


def test_sets_of_offsets_are_kept_as_long_as_an_entry_names_them(filled: SmallTable) -> None:
    named = store_exact(filled.uri, {}, rows_of(*range(0, 2_000, 3), inner=0))
    forgotten = store_exact(filled.uri, {}, rows_of(*range(0, 2_000, 5), inner=0))
    facts = filled.write(200, 250)
    offsets = replace(facts, range=replace(facts.range, exact={ExactCause.FILTERED: named}))
    filled.commit(offsets)
    for stored in (named, forgotten):
        aged(filled, stored.path, days=2)
    filled.handle().vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert cleaned(filled).collected == (forgotten.path,)
    assert (Path(filled.uri) / named.path).exists()
