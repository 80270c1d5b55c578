"""A commit makes files and offsets visible together, once, and only on top of the snapshot that it was planned on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import SchemaMismatchError

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from pipelines.commit.commit import commit, committable
from pipelines.delta import delta_table as table_module
from pipelines.layout.layout import TYPED
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.coverage import extended
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.slice_facts import Observations, SliceFacts
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown
from pipelines.verify.verify import verify
from resources.errors import CommitRefused, CommitUnknown, FileRefused, LakeRefused, LakeUnavailable
from tests.small_table import ONLY_DELTA
from tests.unreliable import Unreliable

if TYPE_CHECKING:
    from tests.small_table import SmallTable

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)


def fact(start: int, stop: int, *, partition: int = 0, failed: bool = False) -> SliceFacts:
    failure = SliceFailure(kind="Corrupt", reason="wrong CRC") if failed else None
    offsets = OffsetRange(BrokerPartition(0, partition), start, stop)
    return SliceFacts(range=CommittedRange(offsets=offsets), failure=failure)


def test_rows_and_cursor_become_visible_together(small: "SmallTable") -> None:
    result = small.commit(small.write(0, 50), small.write(0, 20, partition=1))
    assert (result.version, small.rows()) == (1, 7)
    assert small.covered() == {A: (0, 50), B: (0, 20)}
    assert next(small.table.commits(1)).transactions[small.topic.app_id(A)] == 50


def test_a_slice_of_gaps_alone_moves_the_cursor_without_a_file(small: "SmallTable") -> None:
    small.commit(small.write(0, 50, rows=0))
    assert small.covered() == {A: (0, 50)}
    assert small.table.snapshot().opened.files().num_rows == 0


def test_a_failed_slice_holds_back_only_the_later_slices_of_its_partition() -> None:  # fault S07
    facts = [
        fact(0, 10),
        fact(10, 20, failed=True),
        fact(20, 30),
        fact(0, 10, partition=1),
        fact(10, 20, partition=1),
    ]
    assert committable(facts, {}) == [facts[0], facts[3], facts[4]]


def test_a_failed_slice_of_a_backfill_holds_back_the_older_slices() -> None:
    facts = [fact(0, 10), fact(10, 20, failed=True), fact(20, 30), fact(50, 60), fact(60, 70, failed=True)]
    covered = {A: (30, 50)}
    complete = committable(facts, covered)
    assert complete == [facts[2], facts[3]]
    assert extended(covered, [part.offsets for part in complete]) == {A: (20, 60)}


def test_one_of_two_runs_with_the_same_range_wins_and_the_other_learns_it(
    small: "SmallTable",
) -> None:  # faults L05, O03, O05
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 50), snapshot=snapshot, run="first")
    result = small.commit(small.write(0, 50), snapshot=snapshot, run="second")
    assert (result.overtaken_by, result.version) == ("first", 1)
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})


def test_a_zombie_never_moves_the_cursor_back(small: "SmallTable") -> None:  # faults L06, S05
    zombie = small.table.snapshot()
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    assert small.commit(small.write(0, 50), snapshot=zombie).overtaken_by == "run"
    assert (small.rows(), small.covered()) == (8, {A: (0, 80)})


def test_slices_that_another_run_overlaps_are_left_to_the_next_step_and_the_others_land(
    small: "SmallTable",
) -> None:  # faults L05, O03, U05
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 50), snapshot=snapshot, run="first")
    assert small.commit(small.write(0, 80), snapshot=snapshot, run="second").overtaken_by == "first"
    result = small.commit(
        small.write(0, 80), small.write(80, 90), small.write(0, 20, partition=1), snapshot=snapshot, run="third"
    )
    assert result.change is not None
    assert [str(facts.offsets) for facts in result.change.facts] == ["partition 0-1 [0, 20)"]
    assert (small.rows(), small.covered()) == (7, {A: (0, 50), B: (0, 20)})


def test_slices_of_a_partition_that_another_run_began_elsewhere_are_left_to_the_next_step(
    small: "SmallTable",
) -> None:  # fault U05
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 50), snapshot=snapshot, run="first")
    assert small.commit(small.write(70, 80), snapshot=snapshot, run="second").overtaken_by == "first"
    assert small.covered() == {A: (0, 50)}


def test_a_backfill_that_another_run_overlaps_is_left_to_the_next_step(small: "SmallTable") -> None:  # fault U05
    small.commit(small.write(50, 60))
    snapshot = small.table.snapshot()
    small.commit(small.write(30, 50), snapshot=snapshot, run="first")
    assert small.commit(small.write(10, 50), snapshot=snapshot, run="second").overtaken_by == "first"
    assert small.covered() == {A: (30, 60)}


@pytest.mark.parametrize(("target", "reason"), [(1, "partition 0-0 was taken back"), (2, r"\[50, 80\) .* 30")])
def test_a_load_is_refused_where_the_cursor_was_taken_back_meanwhile(
    small: "SmallTable", target: int, reason: str
) -> None:  # fault G01
    small.commit(small.write(0, 20, partition=1))
    small.commit(small.write(0, 30))
    small.commit(small.write(30, 50))
    snapshot = small.table.snapshot()
    rewind(plan_rewind(small.table, target, run="back"))
    covered = small.covered()
    with pytest.raises(CommitRefused, match=reason):
        small.commit(small.write(50, 80), snapshot=snapshot)
    assert small.covered() == covered
    assert verify(small.table).problems == ()


def test_a_partition_does_not_begin_at_0_where_the_table_was_emptied_and_begun_at_a_time_meanwhile(
    small: "SmallTable",
) -> None:  # faults G01, P02
    small.commit(small.write(0, 30))
    snapshot = small.table.snapshot()
    rewind(plan_rewind(small.table, 0, run="back"))
    begun = replace(small.loading(small.write(50, 80), run="other"), start_times={B: 5})
    commit(small.table, small.table.snapshot(), begun)
    with pytest.raises(CommitRefused, match=r"run other committed first \(partition 0-1 begins at a time now\)"):
        small.commit(small.write(0, 20, partition=1), snapshot=snapshot)
    assert small.covered() == {A: (50, 80)}


def test_a_partition_that_begins_at_0_in_the_table_of_another_run_is_left_to_the_next_step(
    small: "SmallTable",
) -> None:  # faults P02, U05
    snapshot = small.table.snapshot()
    planned = small.loading(small.write(50, 80), small.write(20, 20, partition=1))
    small.commit(small.write(0, 50), run="other")
    result = commit(small.table, snapshot, planned, sleep=lambda _: None)
    assert result.change is not None
    assert [str(facts.offsets) for facts in result.change.facts] == ["partition 0-0 [50, 80)"]
    assert small.covered() == {A: (0, 80)}


def test_a_load_is_refused_where_the_commit_that_began_its_table_was_taken_back(
    small: "SmallTable",
) -> None:  # faults G01, P02
    """This run, too, would have begun partition 0 at offset 30. What is left of it would let that begin at 0."""
    planned = small.loading(small.write(30, 30), small.write(0, 20, partition=1))
    small.commit(small.write(30, 30), run="other")
    rebased = planned.rebased(small.table.snapshot())
    assert rebased is not None
    rewind(plan_rewind(small.table, 0, run="back"))
    with pytest.raises(CommitRefused, match="all rows were taken back"):
        rebased.rebased(small.table.snapshot())


def test_an_entry_has_no_epoch_of_a_partition_that_another_run_loaded_and_a_rewind_took_back(
    small: "SmallTable",
) -> None:  # faults G01, U05
    small.commit(small.write(0, 10, partition=2))
    planned = replace(small.loading(small.write(0, 30), small.write(0, 20, partition=1)), epochs={A: 1, B: 1})
    small.commit(small.write(0, 30), run="other")
    rebased = planned.rebased(small.table.snapshot())
    assert rebased is not None
    rewind(plan_rewind(small.table, 1, run="back"))
    change = rebased.rebased(small.table.snapshot())
    assert change is not None
    commit(small.table, small.table.snapshot(), change)
    entry = small.table.snapshot().entry
    assert entry is not None
    assert ((entry.covered.get(A), entry.covered[B]), entry.state.epochs) == ((None, (0, 20)), {B: 1})


def test_slices_that_another_run_did_not_commit_are_committed(small: "SmallTable") -> None:  # fault O03
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 50), snapshot=snapshot, run="first")
    result = small.commit(small.write(0, 50), small.write(50, 80), small.write(0, 20, partition=1), snapshot=snapshot)
    assert result.version == 2
    assert (small.rows(), small.covered()) == (10, {A: (0, 80), B: (0, 20)})


def test_runs_of_different_partitions_both_land_and_neither_forgets_the_other(small: "SmallTable") -> None:
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 50), snapshot=snapshot)
    small.commit(small.write(0, 20, partition=1), snapshot=snapshot)
    assert (small.rows(), small.covered()) == (7, {A: (0, 50), B: (0, 20)})


def test_a_backfill_and_a_load_of_one_partition_both_land(small: "SmallTable") -> None:  # fault O03
    small.commit(small.write(50, 60))
    snapshot = small.table.snapshot()
    small.commit(small.write(60, 70), snapshot=snapshot)
    small.commit(small.write(0, 50), snapshot=snapshot)
    assert (small.rows(), small.covered()) == (7, {A: (0, 70)})


def another_footer(file: Path) -> None:
    """A whole Parquet file of the same size, with fewer rows."""
    size = file.stat().st_size
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"offset": [1]}), sink)
    body = sink.getvalue().to_pybytes()
    file.write_bytes(body[:4] + b"\0" * (size - len(body)) + body[4:])


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (Path.unlink, "is not there"),
        (lambda file: file.write_bytes(b"short"), "has 5 bytes"),
        (lambda file: file.write_bytes(b"x" * file.stat().st_size), "is not a Parquet file"),
        (another_footer, "holds 1 rows; its worker wrote 5"),
    ],
    ids=["missing", "cut", "foreign", "other rows"],
)
def test_a_file_that_is_not_what_the_worker_wrote_is_refused(
    harm: Callable[[Path], None], reason: str, small: "SmallTable"
) -> None:  # fault L07
    facts = small.write(0, 50)
    harm(Path(small.uri) / facts.files[0].path)
    with pytest.raises(FileRefused, match=rf"date=2026-01-02/0-0-.*parquet {reason}"):
        small.commit(facts)
    assert small.covered() == {}


@pytest.mark.parametrize("error", [CommitOutcomeUnknown, CommitConflict])
def test_a_commit_whose_answer_is_lost_is_found_by_its_id(
    error: type[Exception], small: "SmallTable"
) -> None:  # faults L02, L03, O04
    lossy = Unreliable(small.table, [True], error)
    result = small.commit(small.write(0, 50), table=lossy)
    assert (result.version, result.overtaken_by) == (1, None)  # it does not take its own commit for another run's
    assert (small.rows(), small.covered(), lossy.synced) == (5, {A: (0, 50)}, [0])


# fault G02
def test_each_search_for_the_own_commit_begins_after_the_version_of_the_first_attempt(small: "SmallTable") -> None:
    """Whichever attempt landed, its version is above that one: no other version is sure to be below it."""
    lossy = Unreliable(small.table, [False, False])
    snapshot = small.table.snapshot()
    small.commit(small.write(0, 20, partition=1))
    small.commit(small.write(0, 50), snapshot=snapshot, table=lossy)
    assert lossy.read_after == [snapshot.version, snapshot.version]


def test_a_commit_that_did_not_land_is_tried_again(small: "SmallTable") -> None:  # faults L03, L11
    assert small.commit(small.write(0, 50), table=Unreliable(small.table, [False, False])).version == 1
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})


def test_a_commit_that_never_lands_says_so_and_deletes_nothing(small: "SmallTable") -> None:  # faults L03, L04
    facts = small.write(0, 50)
    with pytest.raises(LakeUnavailable, match="did not land: connection reset"):
        small.commit(facts, table=Unreliable(small.table, [False] * 3))
    assert (Path(small.uri) / facts.files[0].path).exists()
    small.commit(facts)
    assert small.rows() == 5


class Refused(CommitOutcomeUnknown):
    """The store has refused something."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, refused=True)


def test_a_commit_that_the_store_refuses_is_not_written_again(small: "SmallTable") -> None:  # fault N14
    """The log is read once more, because an earlier attempt of the store's client may have been committed."""
    facts, lossy = small.write(0, 50), Unreliable(small.table, [False, True], Refused)
    with pytest.raises(LakeRefused, match="the commit did not land: connection reset"):
        small.commit(facts, table=lossy)
    assert (small.rows(), lossy.commits) == (0, [True])
    assert small.commit(facts, table=lossy).version == 1
    assert (small.rows(), lossy.commits) == (5, [])


def test_a_load_is_refused_by_a_table_that_became_typed_while_it_was_fetched(small: "SmallTable") -> None:
    snapshot, facts = small.table.snapshot(), small.write(0, 50)
    small.commit(small.write(0, 20, partition=1))
    typed = replace(small.table.snapshot(), layout=TYPED)
    with (
        patch.object(type(small.table), "newer", return_value=typed),
        pytest.raises(CommitRefused, match="the table became typed meanwhile; run again"),
    ):
        small.commit(facts, snapshot=snapshot)
    assert small.covered() == {B: (0, 20)}


def with_last(facts: SliceFacts, offset: int, digest: str) -> SliceFacts:
    return replace(facts, observed=Observations(last=LastMessage(offset=offset, digest=digest)))


def test_slices_of_another_log_than_that_of_a_concurrent_run_are_refused(small: "SmallTable") -> None:  # fault P11
    snapshot, last_slice = small.table.snapshot(), small.write(50, 80)
    small.commit(with_last(small.write(0, 50), 40, "theirs"))
    with pytest.raises(CommitRefused, match="partition 0-0 has another log since"):
        small.commit(with_last(small.write(0, 50), 40, "ours"), last_slice, snapshot=snapshot)
    assert small.covered() == {A: (0, 50)}
    same = with_last(small.write(0, 20), 10, "before"), with_last(small.write(20, 50), 40, "theirs")
    small.commit(*same, last_slice, snapshot=snapshot)
    assert small.covered() == {A: (0, 80)}


def test_a_commit_that_always_conflicts_ends_after_waits_that_grow(small: "SmallTable") -> None:
    snapshot, waits = small.table.snapshot(), list[float]()
    change = small.loading(small.write(0, 50))
    with (
        patch.object(type(small.table), "write", side_effect=CommitConflict("another was first")),
        pytest.raises(LakeUnavailable, match="the commit did not land: another was first"),
    ):
        commit(small.table, snapshot, change, sleep=waits.append)
    assert len(waits) == 19
    assert waits[0] <= 0.02
    assert all(1 <= wait <= 2 for wait in waits[8:])


@ONLY_DELTA
def test_a_commit_whose_rows_the_table_does_not_accept_is_refused_at_once(small: "SmallTable") -> None:  # fault N16
    facts = small.write(0, 50)
    refusal = SchemaMismatchError("cannot cast the column theirs")
    with (
        patch.object(table_module, "can_append", lambda _: False),
        patch.object(DeltaTable, "create_write_transaction", side_effect=refusal) as written,
        pytest.raises(LakeRefused, match="does not accept the rows: its columns are not those that Penstock writes"),
    ):
        small.commit(facts)
    assert written.call_count == 1


def test_a_commit_that_cannot_be_looked_up_is_reported_as_unknown(small: "SmallTable") -> None:  # fault L03
    snapshot = small.table.snapshot()
    with pytest.raises(CommitUnknown, match="connection reset"):
        small.commit(small.write(0, 50), snapshot=snapshot, table=Unreliable(small.table, [True], blind=True))
