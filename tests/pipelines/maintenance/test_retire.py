"""Files with old rows leave the table in one commit, and no row that is lost counts as retired."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import write_deltalake

from pipelines.ledger import incarnations
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance import retire as retiring
from pipelines.maintenance.clean import clean
from pipelines.maintenance.history import history
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.errors import TableNotProven
from tests.pipelines.maintenance.old_rows import ONE, DatedTable, day


@pytest.fixture
def dated(tmp_path: Path) -> DatedTable:
    return DatedTable(tmp_path / "lake")


@pytest.fixture
def loaded(dated: DatedTable) -> DatedTable:
    """Four days with ten records of two partitions each."""
    for number in range(4):
        dated.today = number
        start = 10 * number
        dated.commit(dated.records(start, start + 10), dated.records(start, start + 10, partition=1))
    return dated


def test_files_of_old_days_leave_the_table_and_it_is_proven(loaded: DatedTable) -> None:
    before = loaded.table.snapshot()
    result = loaded.retire(2)
    assert (result.before, result.files, result.rows, result.kept) == (day(2), 4, 40, 0)
    assert result.version == before.version + 1
    assert loaded.offsets() == loaded.offsets(1) == list(range(20, 40))
    proof = verify(loaded.table)
    assert (proof.problems, [part.gaps for part in proof.partitions]) == ((), [{"retired": 20}] * 2)
    after = loaded.table.snapshot().entry
    assert before.entry is not None
    assert after is not None
    assert (after.kind, after.covered) == (CommitKind.RETIRE, before.entry.covered)


def test_adjoining_ranges_without_rows_become_one(loaded: DatedTable) -> None:
    loaded.retire(3)
    entry = loaded.table.snapshot().entry
    assert entry is not None
    assert [(str(part), part.rows, part.gaps) for part in entry.ranges] == [
        ("partition 0 [0, 30)", 0, {"retired": 30}),
        ("partition 1 [0, 30)", 0, {"retired": 30}),
    ]


def test_visible_gaps_stay_what_they_are(dated: DatedTable) -> None:
    dated.commit(dated.records(0, 10, without={3, 4}))
    dated.commit(dated.records(10, 20, without={10}))
    dated.commit(dated.records(20, 30, without={20}, cause="control"))
    dated.today = 1
    dated.commit(dated.records(30, 40))
    assert dated.retire(1).rows == 26
    assert [(str(part.offsets), part.gaps) for part in dated.ranges()] == [
        ("partition 0 [0, 20)", {"compacted": 3, "retired": 17}),
        ("partition 0 [20, 30)", {"control": 1, "retired": 9}),
        ("partition 0 [30, 40)", {}),
    ]
    [first, *_] = dated.ranges()
    assert dated.table.exact_sets(first)[ExactCause.RETIRED].count == 17
    assert dated.problems() == ()


def test_nothing_is_old(loaded: DatedTable) -> None:
    version = loaded.table.snapshot().version
    assert (loaded.retire(0).files, loaded.table.snapshot().version) == (0, version)


def test_a_table_without_rows_has_nothing_to_retire(dated: DatedTable) -> None:
    assert dated.retire(5).files == 0


def test_a_dry_run_counts_and_changes_nothing(loaded: DatedTable) -> None:
    files = sorted(Path(loaded.uri).rglob("*"))
    result = loaded.retire(2, dry_run=True)
    assert (result.files, result.rows, result.version) == (4, 40, None)
    assert sorted(Path(loaded.uri).rglob("*")) == files


@pytest.mark.slow
def test_a_second_retirement_continues_where_the_first_ended(loaded: DatedTable) -> None:
    for before, rows in ((1, 20), (1, 0), (3, 40), (9, 20)):
        assert loaded.retire(before).rows == rows
        assert loaded.problems() == ()
    assert loaded.offsets() == []
    loaded.commit(loaded.records(40, 50))
    assert (loaded.offsets(), loaded.problems()) == (list(range(40, 50)), ())


def test_merged_files_are_retired(loaded: DatedTable) -> None:
    clean(loaded.table, keep=timedelta(days=1), target_bytes=1_000_000, dry_run=False)
    assert len(loaded.handle().file_uris()) == 4
    result = loaded.retire(1)
    assert (result.files, result.rows, loaded.problems()) == (1, 20, ())
    assert loaded.offsets() == list(range(10, 40))


def test_rows_of_07_are_pairs_of_offset_and_position(dated: DatedTable) -> None:
    dated.commit(dated.write(0, 50), dated.write(0, 30, partition=1))
    dated.today = 1
    dated.commit(dated.write(50, 90))
    assert dated.retire(1).rows == 8
    proof = verify(dated.table)
    assert (proof.problems, [part.gaps for part in proof.partitions]) == ((), [{"retired": 5}, {"retired": 3}])
    [first, _] = dated.ranges()
    assert dated.table.exact_sets(first)[ExactCause.RETIRED].by_row


def test_a_row_that_was_lost_before_does_not_count_as_retired(loaded: DatedTable) -> None:
    """Otherwise a loss would be hidden for ever."""
    lost = next(uri for uri in loaded.handle().file_uris() if str(day(0)) in uri)
    Path(lost).unlink()
    result = loaded.retire(2)
    assert (result.files, result.kept) == (3, 1)
    assert any("missing or truncated" in problem for problem in loaded.problems())
    assert any("holds 0 rows, but its commit counted 10" in problem for problem in loaded.problems())


def test_files_of_another_program_are_not_retired(loaded: DatedTable) -> None:
    rows = loaded.handle().to_pyarrow_table().slice(0, 1)
    write_deltalake(loaded.uri, rows, mode="append", partition_by=["date"])
    with pytest.raises(TableNotProven, match="changed rows of the table"):
        loaded.retire(2)


def test_files_with_rows_of_no_range_stay(loaded: DatedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example those of a former topic of the same name."""
    whole = incarnations.ranges_of
    monkeypatch.setattr(retiring, "ranges_of", lambda *where: [part for part in whole(*where) if part.partition == ONE])
    result = loaded.retire(2)
    assert (result.files, result.rows, result.kept) == (2, 20, 2)
    assert (loaded.problems(), len(loaded.offsets(1))) == ((), 40)


def test_a_file_in_the_folder_of_another_day_stays(dated: DatedTable) -> None:
    facts = dated.records(0, 10)
    dated.today = 5
    dated._loaded_at = 0
    young = dated.records(10, 20)
    moved = young.files[0].path.replace(str(day(5)), str(day(0)))
    (Path(dated.uri) / young.files[0].path).rename(Path(dated.uri) / moved)
    dated.commit(facts, replace(young, files=(replace(young.files[0], path=moved),)))
    result = dated.retire(3)
    assert (result.files, result.kept, dated.offsets()) == (1, 1, list(range(10, 20)))


@pytest.mark.slow
def test_a_rewind_brings_rows_back_and_they_are_retired_again(loaded: DatedTable) -> None:
    version = loaded.table.snapshot().version
    loaded.retire(2)
    rewind(plan_rewind(loaded.table, version, run="back"))
    assert (len(loaded.offsets()), loaded.problems()) == (40, ())
    assert loaded.retire(2).rows == 40
    assert loaded.problems() == ()


def test_retired_files_are_deleted_like_all_that_were_removed(loaded: DatedTable) -> None:
    loaded.retire(2)
    clean(loaded.table, keep=timedelta(days=1), target_bytes=1, dry_run=False)
    assert len(list(Path(loaded.uri).glob("date=*/*.parquet"))) == 8
    result = clean(loaded.table, keep=timedelta(0), target_bytes=1, dry_run=False)
    assert len(result.collected) == 4
    assert len(list(Path(loaded.uri).glob("date=*/*.parquet"))) == 4
    assert loaded.problems() == ()


def test_the_history_shows_the_retirement(loaded: DatedTable) -> None:
    loaded.retire(2)
    newest = next(history(loaded.table))
    assert (newest.what, newest.gaps) == ("retire", {"retired": 40})
