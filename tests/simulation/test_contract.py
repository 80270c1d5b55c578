"""The table in memory and the Delta table behave the same, so a simulation in memory is valid for both."""

import random
import shutil
import uuid
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.ledger import CommitKind, Coverage, LedgerEntry
from pipelines.loading.table_log import CommitConflict, TableSnapshot
from pipelines.loading.work import CommittedRange, SliceFacts
from resources.errors import FileRefused, TableReplaced
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.small import SmallStore
from tests.small_table import SmallTable

A = BrokerPartition(0, 0)


class LakeSmall(SmallTable):
    """A small Delta table."""

    def compact(self) -> None:
        """Merge the small files, in a commit without an entry of Penstock."""
        self.handle().optimize.compact()

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
    return LedgerEntry(
        commit=uuid.uuid4().hex,
        run="run",
        code="test",
        kind=kind,
        sequence=snapshot.next_sequence,
        topic=small.topic,
        ranges=tuple(CommittedRange.of(slice_facts) for slice_facts in facts),
        covered=covered
        or {**before, **{slice_facts.offsets.partition: (0, slice_facts.offsets.stop) for slice_facts in facts}},
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
    assert append(small, snapshot, small.write(40, 50)) == 4
    now = small.table.snapshot()
    assert (now.version, now.next_sequence, small.rows()) == (4, 4, 5)
    assert [version for version, _ in small.table.entries(now)] == [4, 2, 1]


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
        offsets=OffsetRange(BrokerPartition(0, 0), 0, 10), rows=1, path="date=2026-01-02/ghost.parquet", size=7
    )
    with pytest.raises(FileRefused, match="ghost"):
        small.table.check([small.write(0, 10), ghost])
    assert small.table.snapshot().version == 0
