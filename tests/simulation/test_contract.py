"""The table in memory and the Delta table behave the same, so what simulations show holds for both."""

import random
import uuid
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.ledger import CommitKind, CommittedRange, Coverage, LedgerEntry
from pipelines.loading.table_log import CommitConflict, TableSnapshot
from pipelines.loading.work import SliceFacts
from resources.errors import FileRefused
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.small import SmallStore
from tests.small_table import SmallTable

A = BrokerPartition(0, 0)


class LakeSmall(SmallTable):
    """A small Delta table."""

    def compact(self) -> None:
        """Merge the small files, in a commit without an entry of Penstock."""
        self.handle().optimize.compact()


Small = SmallStore | LakeSmall


@pytest.fixture(params=["memory", "lake"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Small:
    if request.param == "lake":
        return LakeSmall(tmp_path / "lake")
    return SmallStore(Scheduler(rng=random.Random(1), odds=Odds.calm()))


def entry(
    small: Small,
    at: TableSnapshot,
    *facts: SliceFacts,
    kind: CommitKind = CommitKind.LOAD,
    covered: Coverage | None = None,
    target: int | None = None,
) -> LedgerEntry:
    """An entry as a commit would write it on top of `at`."""
    before = at.entry.covered if at.entry else {}
    return LedgerEntry(
        commit=uuid.uuid4().hex,
        run="run",
        code="test",
        kind=kind,
        sequence=at.next_sequence,
        topic=small.topic,
        ranges=tuple(CommittedRange.of(one) for one in facts),
        covered=covered or {**before, **{one.offsets.partition: (0, one.offsets.stop) for one in facts}},
        target=target,
    )


def append(small: Small, at: TableSnapshot, *facts: SliceFacts) -> int:
    """Write to the log directly, without `commit`."""
    return small.table.append(at, entry(small, at, *facts), facts)


def test_versions_are_counted_up_and_each_tells_its_entry(small: Small) -> None:
    assert small.table.snapshot() == TableSnapshot(version=0, entry=None)
    for version in (1, 2, 3):
        at = small.table.snapshot()
        assert append(small, at, small.write(10 * version, 10 * version + 10)) == version
    now = small.table.snapshot()
    assert (now.version, now.next_sequence, small.rows()) == (3, 4, 3)
    told = list(small.table.entries(now))
    assert [(version, one.sequence) for version, one in told] == [(3, 3), (2, 2), (1, 1)]
    assert [version for version, _ in small.table.entries(now, after=1)] == [3, 2]
    assert list(small.table.entries(now, after=3)) == []
    assert told[0][1] == now.entry


def test_an_entry_lands_on_its_snapshot_or_clashes(small: Small) -> None:  # faults L05, L06
    at = small.table.snapshot()
    append(small, at, small.write(0, 10))
    with pytest.raises(CommitConflict):
        append(small, at, small.write(10, 20))
    assert (small.table.snapshot().version, small.rows()) == (1, 1)


def test_a_stale_snapshot_clashes_however_many_commits_later(small: Small) -> None:  # faults L06, S05
    small.commit(small.write(0, 10))
    at = small.table.snapshot()
    for start in (10, 20, 30):
        small.commit(small.write(start, start + 10))
    with pytest.raises(CommitConflict):
        append(small, at, small.write(10, 20))
    assert small.covered() == {A: (0, 40)}


def test_an_old_snapshot_still_tells_what_was_there_then(small: Small) -> None:
    small.commit(small.write(0, 20))
    at = small.table.snapshot()
    first = at.entry
    small.commit(small.write(20, 50))
    assert [one for _, one in small.table.entries(at)] == [first]
    assert small.table.count_rows(at, first.ranges if first else ()) == [2]


def test_a_compaction_by_others_is_built_upon_by_a_load(small: Small) -> None:  # fault L16
    small.commit(small.write(0, 20))
    small.commit(small.write(20, 40))
    at = small.table.snapshot()
    small.compact()
    assert append(small, at, small.write(40, 50)) == 4
    now = small.table.snapshot()
    assert (now.version, now.next_sequence, small.rows()) == (4, 4, 5)
    assert [version for version, _ in small.table.entries(now)] == [4, 2, 1]


def test_rows_are_counted_by_partition_offset_and_loading_time(small: Small) -> None:
    small.commit(small.write(0, 50), small.write(0, 30, partition=1))
    at = small.table.snapshot()
    assert at.entry is not None
    first, second = at.entry.ranges
    pieces = [
        first,
        CommittedRange(
            offsets=OffsetRange(BrokerPartition(0, 0), 10, 30), rows=0, bytes=0, loaded_at_us=first.loaded_at_us
        ),
        CommittedRange(
            offsets=OffsetRange(BrokerPartition(0, 0), 0, 50), rows=0, bytes=0, loaded_at_us=second.loaded_at_us
        ),
        second,
    ]
    assert small.table.count_rows(at, pieces) == [5, 2, 0, 3]


def test_replaced_rows_are_gone_and_others_stay(small: Small) -> None:
    small.commit(small.write(0, 50))
    at = small.table.snapshot()
    assert at.entry is not None
    [whole] = at.entry.ranges
    piece = CommittedRange(
        offsets=OffsetRange(BrokerPartition(0, 0), 20, 50), rows=0, bytes=0, loaded_at_us=whole.loaded_at_us
    )
    new = small.write(20, 50, rows=2)
    told = entry(small, at, new, kind=CommitKind.REPLAY)
    assert small.table.replace(at, told, [piece], [new]) == 2
    now = small.table.snapshot()
    assert small.rows() == 4
    assert small.table.count_rows(now, [whole, *told.ranges]) == [2, 2]
    assert now.entry == told


def test_rows_are_taken_out_without_others_in_their_place(small: Small) -> None:
    small.commit(small.write(0, 50))
    at = small.table.snapshot()
    assert at.entry is not None
    [whole] = at.entry.ranges
    piece = CommittedRange(
        offsets=OffsetRange(BrokerPartition(0, 0), 20, 50), rows=0, bytes=0, loaded_at_us=whole.loaded_at_us
    )
    assert small.table.replace(at, entry(small, at, kind=CommitKind.CUT), [piece], []) == 2
    assert small.rows() == 2
    at = small.table.snapshot()
    assert (
        small.table.replace(at, entry(small, at, kind=CommitKind.CUT), [piece], []) == 3
    )  # nothing is left to take out
    assert (small.rows(), small.table.snapshot().next_sequence) == (2, 4)


def test_a_replacement_on_a_stale_snapshot_clashes(small: Small) -> None:
    small.commit(small.write(0, 50))
    at = small.table.snapshot()
    assert at.entry is not None
    small.commit(small.write(50, 60))
    with pytest.raises(CommitConflict):
        small.table.replace(at, entry(small, at, kind=CommitKind.CUT), at.entry.ranges, [])
    assert small.rows() == 6


def test_a_restore_takes_the_rows_of_its_target(small: Small) -> None:  # fault L14
    small.commit(small.write(0, 20))
    small.commit(small.write(20, 50))
    at, stale = small.table.snapshot(), small.table.snapshot()
    told = entry(small, at, kind=CommitKind.REWIND, target=1, covered={A: (0, 20)})
    assert small.table.restore(at, told) == 3
    assert (small.rows(), small.covered()) == (2, {A: (0, 20)})
    with pytest.raises(CommitConflict):
        small.table.restore(stale, told)
    assert small.table.snapshot().version == 3


def test_a_file_that_is_not_there_is_refused(small: Small) -> None:  # fault L07
    ghost = SliceFacts(
        offsets=OffsetRange(BrokerPartition(0, 0), 0, 10), rows=1, path="date=2026-01-02/ghost.parquet", size=7
    )
    with pytest.raises(FileRefused, match="ghost"):
        small.table.check([small.write(0, 10), ghost])
    assert small.table.snapshot().version == 0
