"""The table in memory and the Delta table behave the same, so a simulation in memory is valid for both."""

import json
import random
import shutil
import uuid
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import NOWHERE, CommittedRange
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, TableState
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table.table_store import CommitConflict, TableSnapshot
from resources.errors import CommitUnknown, FileRefused, LakeUnavailable, LogTorn, TableForeign, TableReplaced
from tests.pipelines.loaded import call_compaction
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.small import SmallStore
from tests.small_table import SmallTable

A = BrokerPartition(0, 0)


class LakeSmall(SmallTable):
    """A small Delta table."""

    def compact(self) -> None:
        """Merge the small files, in a commit without an entry of Penstock."""
        self.handle().optimize.compact()

    def delete_row(self, offset: int) -> None:
        """A broken compaction of another writer loses the rows with this offset."""
        self.handle().delete(f'"offset" = {offset}')
        call_compaction(self.uri)

    def add_deletion_vectors(self) -> None:
        """Another writer sets the feature of deletion vectors, as Spark does."""
        features = {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}
        action = {**features, "minWriterVersion": 7, "writerFeatures": ["deletionVectors"]}
        log_entry = self._log_entry(self.handle().version() + 1)
        log_entry.write_text(f"{json.dumps({'commitInfo': {}})}\n{json.dumps({'protocol': action})}\n")

    def allow_log_cleanup(self) -> None:
        """Another writer sets the property with which every writer deletes old entries of the log."""
        self._set_log_cleanup("true")

    def repair(self) -> None:
        """Set this property back."""
        self._set_log_cleanup("false")

    def _set_log_cleanup(self, value: str) -> None:
        self.handle().alter.set_table_properties({"delta.enableExpiredLogCleanup": value})

    def delete_entries(self, before: int) -> None:
        """Delete the entries of the log before a version, which has a checkpoint."""
        self.handle().create_checkpoint()
        for version in range(before):
            self._log_entry(version).unlink()

    def _log_entry(self, version: int) -> Path:
        return Path(self.uri) / "_delta_log" / f"{version:020d}.json"

    def remove(self) -> None:
        """Remove the table with its log."""
        shutil.rmtree(self.uri)


Small = SmallStore | LakeSmall


@pytest.fixture(params=["memory", "lake"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Small:
    if request.param == "lake":
        return LakeSmall(tmp_path / "lake")
    return SmallStore(Scheduler(rng=random.Random(1), odds=Odds.calm()))


def entry(
    small: Small,
    snapshot: TableSnapshot,
    *facts: SliceFacts,
    kind: CommitKind = CommitKind.LOAD,
    covered: Coverage | None = None,
    target: int | None = None,
) -> LedgerEntry:
    """The ledger entry that a commit on top of `snapshot` writes."""
    before = snapshot.entry.covered if snapshot.entry else {}
    added = {slice_facts.partition: (0, slice_facts.offsets.stop) for slice_facts in facts}
    return LedgerEntry(
        commit=uuid.uuid4().hex,
        run="run",
        code="test",
        kind=kind,
        sequence=snapshot.next_sequence,
        ranges=tuple(slice_facts.committed for slice_facts in facts),
        state=TableState(topic=small.topic, covered=covered or {**before, **added}),
        target=target,
    )


def append(small: Small, snapshot: TableSnapshot, *facts: SliceFacts) -> int:
    """Write an entry to the log directly, without `commit`."""
    return small.table.write(snapshot, entry(small, snapshot, *facts), facts, ())


def test_each_write_adds_a_version_with_its_entry(small: Small) -> None:
    first = small.table.snapshot()
    assert (first.version, first.entry) == (0, None)
    for version in (1, 2, 3):
        snapshot = small.table.snapshot()
        assert append(small, snapshot, small.write(10 * version, 10 * version + 10)) == version
    now = small.table.snapshot()
    assert (now.version, now.next_sequence, small.rows()) == (3, 4, 3)
    entries = list(small.table.entries(now))
    assert [(version, ledger_entry.sequence) for version, ledger_entry in entries] == [(3, 3), (2, 2), (1, 1)]
    assert [version for version, _ in small.table.entries(now, after=1)] == [3, 2]
    assert list(small.table.entries(now, after=3)) == []
    assert entries[0][1] == now.entry


def test_an_entry_on_a_stale_snapshot_conflicts(small: Small) -> None:  # faults L05, L06
    snapshot = small.table.snapshot()
    append(small, snapshot, small.write(0, 10))
    with pytest.raises(CommitConflict):
        append(small, snapshot, small.write(10, 20))
    assert (small.table.snapshot().version, small.rows()) == (1, 1)


def test_a_snapshot_of_a_removed_table_is_refused(small: Small) -> None:  # fault P07
    small.commit(small.write(0, 10))
    snapshot = small.table.snapshot()
    small.remove()
    small.table.snapshot()
    with pytest.raises(TableReplaced):
        small.table.newer(snapshot)
    with pytest.raises(TableReplaced):
        append(small, snapshot, small.write(10, 20))
    assert small.covered() == {}


def test_a_stale_snapshot_conflicts_after_any_number_of_commits(small: Small) -> None:  # faults L06, S05
    small.commit(small.write(0, 10))
    snapshot = small.table.snapshot()
    for start in (10, 20, 30):
        small.commit(small.write(start, start + 10))
    with pytest.raises(CommitConflict):
        append(small, snapshot, small.write(10, 20))
    assert small.covered() == {A: (0, 40)}


def test_an_old_snapshot_still_has_the_rows_and_entries_of_its_version(small: Small) -> None:
    small.commit(small.write(0, 20))
    snapshot = small.table.snapshot()
    first = snapshot.entry
    small.commit(small.write(20, 50))
    assert [entry for _, entry in small.table.entries(snapshot)] == [first]
    assert small.table.count_rows(snapshot, first.ranges if first else ()) == [2]


def test_a_load_lands_after_a_compaction_that_its_snapshot_has_not_seen(small: Small) -> None:  # fault L16
    small.commit(small.write(0, 20))
    small.commit(small.write(20, 40))
    snapshot = small.table.snapshot()
    small.compact()
    facts = small.write(40, 50)
    with pytest.raises(CommitConflict):
        append(small, snapshot, facts)
    assert small.commit(facts, snapshot=snapshot).version == 4
    now = small.table.snapshot()
    assert (now.version, now.next_sequence, small.rows()) == (4, 4, 5)
    assert [version for version, _ in small.table.entries(now)] == [4, 2, 1]


def test_nothing_lands_on_a_snapshot_from_before_a_delete_and_a_load_lands_after_it(small: Small) -> None:  # fault P04
    small.commit(small.write(0, 50))
    snapshot, another, facts = small.table.snapshot(), small.table.snapshot(), small.write(50, 60)
    assert snapshot.entry is not None
    small.delete_row(20)
    with pytest.raises(CommitConflict):
        append(small, snapshot, facts)
    with pytest.raises(CommitConflict):
        small.table.write(another, entry(small, another, kind=CommitKind.CUT), (), snapshot.entry.ranges)
    small.commit(facts, snapshot=snapshot)
    now = small.table.snapshot()
    assert (small.rows(), small.table.count_rows(now, snapshot.entry.ranges)) == (5, [4])


def test_a_table_with_deletion_vectors_is_refused_and_no_commit_lands_after_them(small: Small) -> None:  # fault P05
    small.commit(small.write(0, 50))
    snapshot, facts = small.table.snapshot(), small.write(50, 60)
    small.add_deletion_vectors()
    with pytest.raises(TableForeign, match="deletionVectors"):
        small.table.snapshot()
    with pytest.raises(CommitUnknown, match=r"to see whether it landed: .*deletionVectors"):
        small.commit(facts, snapshot=snapshot)


def test_a_table_whose_log_is_cleaned_up_is_refused_until_the_property_is_set_back(small: Small) -> None:  # fault P06
    small.commit(small.write(0, 50))
    snapshot, facts = small.table.snapshot(), small.write(50, 60)
    small.allow_log_cleanup()
    with pytest.raises(TableForeign, match="enableExpiredLogCleanup"):
        small.table.snapshot()
    with pytest.raises(CommitUnknown, match=r"to see whether it landed: .*enableExpiredLogCleanup"):
        small.commit(facts, snapshot=snapshot)
    small.repair()
    small.commit(facts)
    assert small.covered() == {A: (0, 60)}


def test_a_log_without_its_first_entries_is_continued_and_never_taken_for_the_whole_ledger(
    small: Small,
) -> None:  # fault L13
    small.commit(small.write(0, 20))
    small.commit(small.write(20, 40))
    small.delete_entries(2)
    small.commit(small.write(40, 50))
    now = small.table.snapshot()
    assert small.covered() == {A: (0, 50)}
    with pytest.raises(LogTorn):
        list(small.table.entries(now))
    with pytest.raises(LakeUnavailable):
        small.table.check_restorable(now, 1)


def test_a_log_without_any_entry_of_penstock_is_refused(small: Small) -> None:  # fault L13
    small.commit(small.write(0, 20))
    small.delete_row(10)
    small.delete_entries(2)
    with pytest.raises(LogTorn):
        small.table.snapshot()


def test_rows_are_counted_by_partition_offset_and_loading_time(small: Small) -> None:
    small.commit(small.write(0, 50), small.write(0, 30, partition=1))
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    first, second = snapshot.entry.ranges
    ranges = [
        first,
        CommittedRange(
            offsets=OffsetRange(BrokerPartition(0, 0), 10, 30), rows=0, bytes=0, loaded_at_us=first.loaded_at_us
        ),
        CommittedRange(
            offsets=OffsetRange(BrokerPartition(0, 0), 0, 50), rows=0, bytes=0, loaded_at_us=second.loaded_at_us
        ),
        second,
    ]
    assert small.table.count_rows(snapshot, ranges) == [5, 2, 0, 3]


def test_replaced_rows_are_removed_and_others_stay(small: Small) -> None:
    small.commit(small.write(0, 50))
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    [loaded] = snapshot.entry.ranges
    replaced = CommittedRange(
        offsets=OffsetRange(BrokerPartition(0, 0), 20, 50), rows=0, bytes=0, loaded_at_us=loaded.loaded_at_us
    )
    new = small.write(20, 50, rows=2)
    replay_entry = entry(small, snapshot, new, kind=CommitKind.REPLAY)
    assert small.table.write(snapshot, replay_entry, [new], [replaced]) == 2
    now = small.table.snapshot()
    assert small.rows() == 4
    assert small.table.count_rows(now, [loaded, *replay_entry.ranges]) == [2, 2]
    assert now.entry == replay_entry


def test_rows_can_be_removed_without_replacement(small: Small) -> None:
    small.commit(small.write(0, 50))
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    [loaded] = snapshot.entry.ranges
    replaced = CommittedRange(
        offsets=OffsetRange(BrokerPartition(0, 0), 20, 50), rows=0, bytes=0, loaded_at_us=loaded.loaded_at_us
    )
    assert small.table.write(snapshot, entry(small, snapshot, kind=CommitKind.CUT), (), [replaced]) == 2
    assert small.rows() == 2
    snapshot = small.table.snapshot()
    assert (
        small.table.write(snapshot, entry(small, snapshot, kind=CommitKind.CUT), (), [replaced]) == 3
    )  # the rows are removed already
    assert (small.rows(), small.table.snapshot().next_sequence) == (2, 4)


@pytest.mark.parametrize(("kind", "rows_left"), [(CommitKind.ERASE, 2), (CommitKind.RETIRE, 0)])
def test_rows_are_taken_out_with_the_files_that_a_range_names(small: Small, kind: CommitKind, rows_left: int) -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 60))
    snapshot = small.table.snapshot()
    [_, (_, first)] = small.table.entries(snapshot)
    [loaded] = first.ranges
    files = small.write(0, 50, rows=rows_left).files if rows_left else ()
    left = SliceFacts(range=CommittedRange(offsets=NOWHERE), files=files)
    taken_out = entry(small, snapshot, kind=kind, covered=small.covered())
    gone = CommittedRange(offsets=NOWHERE, paths=loaded.paths)
    assert small.table.write(snapshot, taken_out, [left], [gone]) == 3
    assert (small.rows(), small.covered()) == (rows_left + 1, {A: (0, 60)})
    stale = entry(small, snapshot, kind=kind, covered=small.covered())
    with pytest.raises(CommitConflict):
        small.table.write(snapshot, stale, [left], [gone])


def test_a_replacement_on_a_stale_snapshot_conflicts(small: Small) -> None:
    small.commit(small.write(0, 50))
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    small.commit(small.write(50, 60))
    with pytest.raises(CommitConflict):
        small.table.write(snapshot, entry(small, snapshot, kind=CommitKind.CUT), (), snapshot.entry.ranges)
    assert small.rows() == 6


def test_a_rewind_restores_the_rows_of_its_target(small: Small) -> None:  # fault L14
    small.commit(small.write(0, 20))
    small.commit(small.write(20, 50))
    snapshot, stale = small.table.snapshot(), small.table.snapshot()
    rewind_entry = entry(small, snapshot, kind=CommitKind.REWIND, target=1, covered={A: (0, 20)})
    assert small.table.write(snapshot, rewind_entry, (), ()) == 3
    assert (small.rows(), small.covered()) == (2, {A: (0, 20)})
    with pytest.raises(CommitConflict):
        small.table.write(stale, rewind_entry, (), ())
    assert small.table.snapshot().version == 3


def test_a_missing_data_file_is_refused(small: Small) -> None:  # fault L07
    ghost = SliceFacts(
        range=CommittedRange(offsets=OffsetRange(BrokerPartition(0, 0), 0, 10), rows=1),
        files=(DataFile(path="date=2026-01-02/ghost.parquet", size=7, rows=1),),
    )
    with pytest.raises(FileRefused, match="ghost"):
        small.table.check([small.write(0, 10), ghost])
    assert small.table.snapshot().version == 0
