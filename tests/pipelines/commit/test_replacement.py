"""A cut takes back a partition's end, rows and cursor together; the next load continues from there."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.identity import table_state
from pipelines.ledger.ledger import CommitKind, RecordedChoice
from pipelines.ledger.slice_facts import Observations
from pipelines.rewrites.replay import ReplayChange
from pipelines.verify.verify import verify
from resources.errors import CommitRefused, ReplayRefused
from tests.pipelines.loaded import call_compaction
from tests.small_table import ONLY_DELTA

if TYPE_CHECKING:
    from tests.small_table import SmallTable

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)
CHOICE = RecordedChoice(setting="on_truncated", value="rewind", partition="0-0", start=40, stop=80)


def cutting(small: "SmallTable", end: int, cursor: int) -> CutChange:
    state = table_state(small.table.snapshot(), small.topic)
    return CutChange(state=state, ranges=(OffsetRange(A, end, cursor),), run="run", choices=(CHOICE,))


@pytest.mark.parametrize("end", [80, 70, 50, 40, 10, 0])
def test_offsets_beyond_the_cut_are_removed_and_can_be_loaded_again(end: int, small: "SmallTable") -> None:  # fault B03
    small.commit(small.write(0, 30), small.write(30, 50), small.write(0, 40, partition=1))
    small.commit(small.write(50, 80))
    result = commit(small.table, small.table.snapshot(), cutting(small, end, 80))
    assert result.version == 3
    assert (small.rows(), small.covered()) == (end // 10 + 4, {A: (0, end), B: (0, 40)})
    assert verify(small.table).problems == ()
    small.commit(small.write(end, 90))
    assert (small.rows(), small.covered()) == (13, {A: (0, 90), B: (0, 40)})
    proof = verify(small.table)
    assert proof.problems == ()
    assert [(partition.offsets.start, partition.offsets.stop, partition.rows) for partition in proof.partitions] == [
        (0, 90, 9),
        (0, 40, 4),
    ]


def test_a_cut_before_the_table_s_first_offset_leaves_it_empty_there(small: "SmallTable") -> None:
    small.commit(small.write(50, 80))
    commit(small.table, small.table.snapshot(), cutting(small, 20, 80))
    assert (small.rows(), small.covered(), verify(small.table).problems) == (0, {A: (20, 20)}, ())
    small.commit(small.write(20, 40))
    assert verify(small.table).problems == ()


@pytest.mark.parametrize(("end", "kept"), [(71, True), (70, False), (40, False)])
def test_the_last_message_is_taken_back_with_its_offset(end: int, kept: bool, small: "SmallTable") -> None:  # fault P11
    last = LastMessage(offset=70, digest="digest")
    small.commit(replace(small.write(0, 80), observed=Observations(last=last)))
    commit(small.table, small.table.snapshot(), cutting(small, end, 80))
    assert table_state(small.table.snapshot(), small.topic).last_messages == ({A: last} if kept else {})


def test_a_cut_is_in_the_ledger_with_the_choice(small: "SmallTable") -> None:
    small.commit(small.write(0, 80))
    commit(small.table, small.table.snapshot(), cutting(small, 40, 80))
    entry = small.table.snapshot().entry
    assert entry is not None
    assert (
        entry.kind,
        entry.choices,
        [(committed.offsets.start, committed.offsets.stop, committed.rows) for committed in entry.ranges],
    ) == (
        CommitKind.CUT,
        (CHOICE,),
        [(0, 40, 4)],
    )


@ONLY_DELTA
def test_a_cut_through_a_range_that_lost_rows_is_refused(small: "SmallTable") -> None:
    small.commit(small.write(0, 80))
    small.handle().delete('"offset" = 10')
    call_compaction(small.uri)
    with pytest.raises(CommitRefused, match=r"partition 0-0 \[0, 80\) holds 7 rows, but its commit counted 8"):
        commit(small.table, small.table.snapshot(), cutting(small, 40, 80))
    assert small.rows() == 7


@ONLY_DELTA
def test_a_part_of_a_range_is_replaced_if_all_that_the_range_lacks_is_in_it(small: "SmallTable") -> None:  # fault P04
    small.commit(small.write(0, 80))
    small.handle().delete('"offset" = 10')
    call_compaction(small.uri)

    def replay(start: int, stop: int) -> None:
        facts, state = small.write(start, stop), table_state(small.table.snapshot(), small.topic)
        change = ReplayChange(
            state=state, ranges=(facts.offsets,), facts=(facts,), run="run", fetched_rows=lambda _: facts.range.rows
        )
        commit(small.table, small.table.snapshot(), change)

    with pytest.raises(ReplayRefused, match="rows are missing outside of"):
        replay(40, 80)
    replay(0, 40)
    assert (small.rows(), verify(small.table).problems) == (8, ())


def test_a_cut_of_what_another_run_moved_is_refused(small: "SmallTable") -> None:
    small.commit(small.write(0, 80))
    snapshot, change = small.table.snapshot(), cutting(small, 40, 80)
    small.commit(small.write(80, 90))
    with pytest.raises(CommitRefused, match="the cursor moved from 80 to 90"):
        commit(small.table, snapshot, change, sleep=lambda _: None)
    assert small.rows() == 9


def test_a_cut_lands_on_top_of_another_partition_s_load(small: "SmallTable") -> None:
    small.commit(small.write(0, 80))
    snapshot, change = small.table.snapshot(), cutting(small, 40, 80)
    small.commit(small.write(0, 20, partition=1))
    commit(small.table, snapshot, change, sleep=lambda _: None)
    assert (small.rows(), small.covered()) == (6, {A: (0, 40), B: (0, 20)})
