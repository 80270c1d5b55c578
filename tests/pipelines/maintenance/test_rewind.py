"""A rewind takes rows and cursors back together, and the next load restores the table as it was."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake import CommitProperties, Transaction

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import LoadChange, commit
from pipelines.commit.replacement import CutChange
from pipelines.delta.open_version import DeltaVersion
from pipelines.identity.identity import table_state
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.replay import ReplayChange
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown, TableSnapshot
from pipelines.verify.verify import verify
from resources.errors import (
    CommitRefused,
    CursorMismatch,
    LakeUnavailable,
    RewindRefused,
    TableMissing,
    TopicRecreated,
)
from resources.printed import printed
from resources.settings.choices import Choices
from tests.small_table import SmallTable
from tests.unreliable import Unreliable

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)


def back(small: SmallTable, version: int) -> int:
    """Rewind the table; returns the new version."""
    return rewind(plan_rewind(small.table, version, run="rewinder"))


def stored_rows(small: SmallTable) -> list[tuple[int, int]]:
    """Partition and offset of each row, as any reader of Delta sees them."""
    rows = small.handle().to_pyarrow_dataset().to_table(["partition", "offset"]).to_pylist()
    return sorted((row["partition"], row["offset"]) for row in rows)


def cursors(small: SmallTable) -> dict[BrokerPartition, int | None]:
    """The `txn` of each partition that is covered."""
    return {id_: small.handle().transaction_version(small.topic.app_id(id_)) for id_ in small.covered()}


def three_loads(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80), small.write(0, 20, partition=1))
    small.commit(small.write(80, 90), small.write(20, 40, partition=1))


def check_proven(small: SmallTable) -> None:
    assert verify(small.table).problems == ()
    assert cursors(small) == {id_: cursor for id_, (_, cursor) in small.covered().items()}


@pytest.mark.parametrize("target", [0, 1, 2])
def test_the_next_load_fills_exactly_what_was_taken_back(target: int, small: SmallTable) -> None:  # fault L14
    three_loads(small)
    full = stored_rows(small)
    assert back(small, target) == 4
    assert small.covered() == [{}, {A: (0, 50)}, {A: (0, 80), B: (0, 20)}][target]
    check_proven(small)
    ends = {id_: cursor for id_, (_, cursor) in small.covered().items()}
    small.commit(small.write(ends.get(A, 0), 90), small.write(ends.get(B, 0), 40, partition=1))
    assert stored_rows(small) == full
    check_proven(small)


def test_a_rewind_is_described_before_it_is_done(small: SmallTable) -> None:
    three_loads(small)
    planned = plan_rewind(small.table, 1, run="rewinder")
    cursors = [(cursor.partition, cursor.before, cursor.after) for cursor in planned.cursors]
    assert (planned.rows, cursors) == (8, [(A.partition, 90, 50), (B.partition, 40, None)])
    assert small.handle().version() == 3
    assert str(planned).endswith("UTC), 8 rows fewer")
    assert printed(planned) == {
        "topic": "clicks",
        "table": small.uri,
        "target": 1,
        "time": planned.time.isoformat(),
        "rows": 8,
        "cursors": [
            {"broker": 0, "partition": 0, "before": 90, "after": 50},
            {"broker": 0, "partition": 1, "before": 40, "after": None},
        ],
    }


def test_a_rewind_over_a_compaction_takes_no_rows_back(small: SmallTable) -> None:
    three_loads(small)
    small.handle().optimize.compact()
    assert str(plan_rewind(small.table, 3, run="rewinder")).endswith("UTC), 0 rows fewer")


def test_a_rewind_is_one_entry_of_the_ledger(small: SmallTable) -> None:
    three_loads(small)
    back(small, 2)
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    assert (
        snapshot.version,
        snapshot.entry.kind,
        snapshot.entry.target,
        snapshot.entry.sequence,
        snapshot.entry.run,
    ) == (
        4,
        CommitKind.REWIND,
        2,
        4,
        "rewinder",
    )
    assert (snapshot.entry.ranges, snapshot.entry.choices) == ((), ())


def test_a_rewind_can_be_taken_back(small: SmallTable) -> None:
    three_loads(small)
    full = stored_rows(small)
    back(small, 1)
    planned = plan_rewind(small.table, 3, run="rewinder")
    assert (planned.rows, str(planned).endswith("8 rows more")) == (-8, True)
    rewind(planned)
    assert (stored_rows(small), small.covered()) == (full, {A: (0, 90), B: (0, 40)})
    check_proven(small)


def test_a_rewind_can_go_back_to_a_rewind(small: SmallTable) -> None:
    three_loads(small)
    back(small, 1)
    small.commit(small.write(50, 70))
    assert back(small, 4) == 6
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})
    check_proven(small)
    small.commit(small.write(50, 60))
    check_proven(small)
    assert back(small, 3) == 8
    assert small.covered() == {A: (0, 90), B: (0, 40)}
    check_proven(small)


def test_a_rewind_cancels_a_cut(small: SmallTable) -> None:
    small.commit(small.write(0, 80))
    snapshot = small.table.snapshot()
    commit(
        small.table,
        snapshot,
        CutChange(state=table_state(snapshot, small.topic), ranges=(OffsetRange(A, 40, 80),), run="run"),
    )
    small.commit(small.write(40, 60))
    back(small, 1)
    assert (small.rows(), small.covered()) == (8, {A: (0, 80)})
    check_proven(small)
    back(small, 2)
    assert (small.rows(), small.covered()) == (4, {A: (0, 40)})
    check_proven(small)


def test_a_rewind_cancels_a_replay(small: SmallTable) -> None:
    small.commit(small.write(0, 80))
    snapshot = small.table.snapshot()
    replay = ReplayChange(
        fetched_rows=lambda part: part.rows,
        state=table_state(snapshot, small.topic),
        ranges=(OffsetRange(A, 20, 50),),
        facts=(small.write(20, 50),),
        run="run",
    )
    commit(small.table, snapshot, replay)
    small.commit(small.write(80, 90))
    back(small, 1)
    assert (small.rows(), small.covered()) == (8, {A: (0, 80)})
    check_proven(small)
    back(small, 2)
    assert (small.rows(), small.covered()) == (8, {A: (0, 80)})
    check_proven(small)


def test_a_partition_that_appeared_after_the_target_of_a_rewind_is_loaded_from_its_start(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(100, 150, partition=1))
    back(small, 1)
    small.commit(small.write(120, 160, partition=1))
    assert small.covered() == {A: (0, 50), B: (120, 160)}
    check_proven(small)


def test_a_compaction_in_between_changes_nothing(small: SmallTable) -> None:  # fault L16
    three_loads(small)
    small.handle().optimize.compact()
    small.commit(small.write(90, 95))
    back(small, 2)
    assert (small.rows(), small.covered()) == (10, {A: (0, 80), B: (0, 20)})
    check_proven(small)


def test_a_rewind_can_restore_a_former_incarnation_of_the_topic(small: SmallTable) -> None:  # fault B05
    small.commit(small.write(0, 50))
    recreated = replace(small.topic, incarnation="8")
    snapshot = small.table.snapshot()
    commit(
        small.table,
        snapshot,
        LoadChange(
            state=table_state(snapshot, recreated, choices=Choices(on_recreated="restart")),
            facts=(small.write(0, 20),),
            run="run",
        ),
    )
    back(small, 1)
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})
    check_proven(small)
    with pytest.raises(TopicRecreated):
        table_state(small.table.snapshot(), recreated)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("target", [1, 2])
def test_a_rewind_repairs_a_table_after_a_restore_by_others(
    target: int, compacted: bool, small: SmallTable
) -> None:  # fault L14
    small.commit(small.write(0, 30), small.write(30, 50))
    small.commit(small.write(50, 80))
    small.handle().restore(1)
    if compacted:
        small.handle().optimize.compact()
    with pytest.raises(CursorMismatch, match="`penstock rewind clicks --version 1` takes both back together"):
        small.table.snapshot()
    back(small, target)
    assert (small.rows(), small.covered()) == ((5, {A: (0, 50)}) if target == 1 else (8, {A: (0, 80)}))
    check_proven(small)
    small.commit(small.write(small.covered()[A][1], 90))
    check_proven(small)


def test_a_restore_to_a_time_names_no_version(small: SmallTable) -> None:  # fault L14
    three_loads(small)
    [*_, first] = small.table.commits(1)
    small.handle().restore(first.time + timedelta(milliseconds=1))
    with pytest.raises(CursorMismatch, match="`penstock rewind"):
        small.table.snapshot()


@pytest.mark.parametrize("target", [3, 4])
def test_a_version_whose_cursors_do_not_match_is_no_target(target: int, small: SmallTable) -> None:  # fault L14
    small.commit(small.write(0, 30), small.write(30, 50))
    small.commit(small.write(50, 80))
    small.handle().restore(1)
    small.handle().optimize.compact()
    with pytest.raises(RewindRefused, match=r"version 3 restored version 1 .* `penstock rewind clicks --version 1`"):
        plan_rewind(small.table, target, run="rewinder")
    back(small, 1)
    with pytest.raises(RewindRefused, match="version 3 restored version 1"):
        plan_rewind(small.table, target, run="rewinder")


def test_a_rewind_also_restores_a_cursor_that_somebody_moved(small: SmallTable) -> None:
    three_loads(small)
    handle = small.handle()
    moved = CommitProperties(app_transactions=[Transaction(small.topic.app_id(A), 7)])
    handle.create_write_transaction(
        [], mode="append", schema=handle.schema(), partition_by=["date"], commit_properties=moved
    )
    assert verify(small.table).problems == ("partition 0-0: the cursor is 7, but the newest commit left it at 90",)
    back(small, 3)
    check_proven(small)


def test_a_time_means_the_newest_version_that_is_not_younger(small: SmallTable) -> None:
    three_loads(small)
    times = {log_commit.version: log_commit.time for log_commit in small.table.commits(3)}
    moment = timedelta(microseconds=1)
    assert plan_rewind(small.table, times[2], run="rewinder").target == 2
    assert plan_rewind(small.table, times[2] - moment, run="rewinder").target == 1
    assert plan_rewind(small.table, times[0], run="rewinder").target == 0
    with pytest.raises(RewindRefused, match=r"no version of .*\+00:00 or before; its newest is version 3"):
        plan_rewind(small.table, times[0] - moment, run="rewinder")
    with pytest.raises(RewindRefused, match="version 3 is the newest"):
        plan_rewind(small.table, times[3], run="rewinder")


@pytest.mark.parametrize(
    ("target", "said"), [(-1, "has no version -1"), (4, "has no version 4"), (3, "version 3 is the newest")]
)
def test_a_version_to_which_the_table_cannot_go_back_is_refused(target: int, said: str, small: SmallTable) -> None:
    three_loads(small)
    with pytest.raises(RewindRefused, match=said):
        plan_rewind(small.table, target, run="rewinder")


def test_a_table_without_a_load_cannot_be_rewound(small: SmallTable, tmp_path: Path) -> None:
    with pytest.raises(RewindRefused, match="nothing was loaded yet"):
        plan_rewind(small.table, 0, run="rewinder")
    nowhere = replace(small.table, uri=str(tmp_path / "nowhere"))
    with pytest.raises(TableMissing, match="there is no table"):
        plan_rewind(nowhere, 0, run="rewinder")
    assert not (tmp_path / "nowhere").exists()


def test_files_that_were_vacuumed_are_named_and_nothing_changes(small: SmallTable) -> None:
    three_loads(small)
    small.handle().optimize.compact()
    small.handle().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    before = small.handle().version()
    with pytest.raises(RewindRefused, match=r"date=2026-01-02/0-.*parquet \(and 2 more\) of version 2 was deleted"):
        plan_rewind(small.table, 2, run="rewinder")
    assert (small.handle().version(), small.rows()) == (before, 13)


def test_a_lost_file_of_the_version_from_which_on_a_clean_keeps_files_is_named(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    lost = small.write(50, 80)
    small.commit(lost)
    back(small, 1)
    path = lost.files[0].path
    Path(small.uri, path).unlink()
    with (
        patch.object(DeltaVersion, "cleaned_before", 2),
        pytest.raises(RewindRefused, match=rf"the data file {path} of version 2 was deleted, for example"),
    ):
        back(small, 2)


def test_a_load_since_a_rewind_was_planned_refuses_it(small: SmallTable) -> None:  # faults L05, L06
    three_loads(small)
    planned = plan_rewind(small.table, 1, run="rewinder")
    small.commit(small.write(90, 100), run="rival")
    with pytest.raises(CommitRefused, match="run rival committed meanwhile; look at the history again"):
        rewind(planned)
    assert (small.rows(), small.covered()[A]) == (14, (0, 100))


def test_a_compaction_since_a_rewind_was_planned_does_not_refuse_it(small: SmallTable) -> None:  # fault L16
    three_loads(small)
    planned = plan_rewind(small.table, 1, run="rewinder")
    small.handle().optimize.compact()
    assert rewind(planned) == 5
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})
    check_proven(small)


@pytest.mark.parametrize("bare", [False, True], ids=["whole", "bare restore"])
@pytest.mark.parametrize(
    ("landing", "error"),
    [
        ([True], CommitOutcomeUnknown),
        ([True], CommitConflict),
        ([False, True], CommitOutcomeUnknown),
        ([False, False], CommitOutcomeUnknown),
    ],
)
def test_a_rewind_whose_answer_is_lost_lands_once(
    landing: list[bool], error: type[Exception], bare: bool, small: SmallTable
) -> None:  # fault L03
    three_loads(small)
    if bare:
        small.handle().restore(2)
    planned = plan_rewind(small.table, 1, run="rewinder")
    commit(Unreliable(planned.opened, landing, error), planned.snapshot, planned.change, sleep=lambda _: None)
    assert small.table.snapshot().version == planned.snapshot.version + 1
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})
    check_proven(small)


def test_a_rewind_that_never_lands_says_so(small: SmallTable) -> None:  # fault L03
    three_loads(small)
    planned = plan_rewind(small.table, 1, run="rewinder")
    with pytest.raises(LakeUnavailable, match="did not land"):
        commit(Unreliable(planned.opened, [False] * 3), planned.snapshot, planned.change, sleep=lambda _: None)
    assert small.rows() == 13


def load_more(small: SmallTable, snapshot: TableSnapshot) -> None:
    small.commit(small.write(80, 90), snapshot=snapshot)


def load_other(small: SmallTable, snapshot: TableSnapshot) -> None:
    small.commit(small.write(20, 40, partition=1), snapshot=snapshot)


def cut_other(small: SmallTable, snapshot: TableSnapshot) -> None:
    commit(
        small.table,
        snapshot,
        CutChange(state=table_state(snapshot, small.topic), ranges=(OffsetRange(B, 10, 20),), run="run"),
    )


@pytest.mark.parametrize("change", [load_more, load_other, cut_other])
def test_a_load_that_was_planned_before_a_rewind_is_refused_after_it(
    change: Callable[[SmallTable, TableSnapshot], None], small: SmallTable
) -> None:  # fault L06
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80), small.write(0, 20, partition=1))
    snapshot = small.table.snapshot()
    back(small, 1)
    with pytest.raises(CommitRefused):
        change(small, snapshot)
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})
