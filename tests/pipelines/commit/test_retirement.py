"""Whole files leave a table only if each of their rows belongs to a range, once; ranges without rows become one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.retirement import FileRows, RetireChange, RetiredRows, merged
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.table.exact_sets import store_exact
from resources.errors import CommitRefused
from tests.pipelines.taken_out import rows_of

ONE, OF_07 = BrokerPartition(None, 0), BrokerPartition(0, 0)


def loaded(start: int, stop: int, *, rows: int | None = None, at_us: int = 1) -> CommittedRange:
    return CommittedRange(
        offsets=OffsetRange(ONE, start, stop), rows=stop - start if rows is None else rows, loaded_at_us=at_us
    )


def of_file(*offsets: int, rows: int | None = None, at_us: int = 1) -> list[FileRows]:
    return [FileRows(ONE, at_us, rows_of(*offsets), len(offsets) if rows is None else rows)]


def retired(rows: RetiredRows, **earlier: ExactOffsets) -> list[tuple[str, int, int]]:
    """The ranges that lose rows: their offsets, the number of rows that stay, and of those that are retired."""
    table = Mock(exact_sets=lambda _: {ExactCause(cause): own for cause, own in earlier.items()})
    return [(str(part.offsets), part.rows, sets[ExactCause.RETIRED].count) for part, sets in rows.without(table)]


def test_rows_of_a_file_are_taken_out_of_the_ranges_that_have_them() -> None:
    rows = RetiredRows([loaded(0, 10), loaded(10, 20), loaded(20, 30)])
    assert rows.take(of_file(9, 10, 11))
    assert retired(rows) == [("partition 0 [0, 10)", 9, 1), ("partition 0 [10, 20)", 8, 2)]


@pytest.mark.parametrize(
    "of_files", [of_file(4), of_file(9, 10), of_file(15), of_file(9, at_us=2), of_file(5, 9, rows=3)]
)
def test_a_file_with_a_row_that_no_range_has_stays(of_files: list[FileRows]) -> None:
    rows = RetiredRows([loaded(5, 10), loaded(10, 15, rows=0), loaded(15, 20, at_us=3)])
    assert not rows.take(of_files)
    assert retired(rows) == []


def test_rows_of_0_7_are_taken_out_by_offset_and_position() -> None:
    committed = CommittedRange(offsets=OffsetRange(OF_07, 0, 10), rows=5, loaded_at_us=1)
    rows = RetiredRows([committed, replace(committed, offsets=OffsetRange(OF_07, 10, 20))])
    own = ExactOffsets.of(np.array([0, 0, 9]), np.array([0, 1, 0]))
    assert rows.take([FileRows(OF_07, 1, own, 3)])
    assert retired(rows) == [("partition 0-0 [0, 10)", 2, 3)]


@pytest.mark.parametrize(
    ("files", "earlier"),
    [
        ([of_file(3, 4), of_file(4, 5)], {}),
        ([of_file(3, 4)], {"retired": rows_of(4)}),
        ([of_file(0, 1, 2, 3, 4, 5, 6)], {}),
    ],
)
def test_no_row_is_retired_again_and_no_more_rows_than_the_range_has(
    files: list[list[FileRows]], earlier: Mapping[str, ExactOffsets]
) -> None:
    rows = RetiredRows([loaded(0, 10, rows=6)])
    assert all(map(rows.take, files))
    with pytest.raises(CommitRefused, match="some of them again: `penstock verify` shows what is wrong"):
        retired(rows, **earlier)


def test_rows_beside_those_that_were_retired_earlier_are_retired() -> None:
    rows = RetiredRows([loaded(0, 10, rows=2)])
    assert rows.take(of_file(3, 4))
    assert retired(rows, retired=rows_of(7, 8)) == [("partition 0 [0, 10)", 0, 4)]


@pytest.mark.parametrize(
    "now",
    [
        loaded(20, 30, rows=0),
        replace(loaded(10, 20, rows=0), offsets=OffsetRange(BrokerPartition(None, 1), 10, 20)),
        loaded(10, 20),
        replace(loaded(10, 20, rows=0), isolation="committed"),
    ],
)
def test_ranges_that_do_not_adjoin_or_have_rows_stay_apart(now: CommittedRange) -> None:
    before = loaded(0, 10, rows=0)
    assert [part for part, _ in merged([(before, {}), (now, {})])] == [before, now]
    before, now = loaded(0, 10), loaded(10, 20, rows=0)
    assert [part for part, _ in merged([(before, {}), (now, {})])] == [before, now]


@pytest.mark.parametrize(
    ("partition", "causes", "count"),
    [
        (ONE, ("compacted", "compacted"), 1),
        (ONE, ("compacted", "", "compacted"), 1),
        (ONE, ("compacted", "", "control"), 2),
        (OF_07, ("", ""), 1),
        (OF_07, ("empty", ""), 2),
    ],
)
def test_only_gaps_of_one_cause_can_be_counted_again(
    partition: BrokerPartition, causes: Sequence[str], count: int
) -> None:
    parts = [
        CommittedRange(offsets=OffsetRange(partition, 10 * at, 10 * at + 10), gaps={cause: 2} if cause else {})
        for at, cause in enumerate(causes)
    ]
    ranges = [whole for whole, _ in merged((part, {}) for part in parts)]
    assert len(ranges) == count
    assert sum(sum(whole.gaps.values()) for whole in ranges) == 2 * sum(map(bool, causes))


def test_a_range_of_several_without_rows_has_their_sums_and_the_last_loading_time() -> None:
    ranges = [loaded(0, 10, rows=0, at_us=5), loaded(10, 20, rows=0, at_us=7), loaded(20, 30, rows=0, at_us=6)]
    sets = [{ExactCause.RETIRED: rows_of(*range(part.offsets.start, part.offsets.stop))} for part in ranges]
    [(whole, exact)] = merged((replace(part, bytes=100), own) for part, own in zip(ranges, sets, strict=True))
    assert (str(whole.offsets), whole.rows, whole.bytes, whole.loaded_at_us) == ("partition 0 [0, 30)", 0, 300, 7)
    assert exact == {ExactCause.RETIRED: rows_of(*range(30))}


STATE = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))


def retiring(**files: list[FileRows]) -> RetireChange:
    return RetireChange(state=STATE, run="retirement", files=files)


def entry_of(kind: CommitKind, *ranges: CommittedRange) -> LedgerEntry:
    return LedgerEntry(commit=kind, run="", kind=kind, sequence=0, ranges=ranges, state=STATE)


def test_files_are_retired_only_if_ranges_have_all_of_their_rows() -> None:
    entries = [(1, entry_of(CommitKind.LOAD, loaded(0, 10)))]
    table = Mock(entries=lambda _: entries, exact_sets=lambda _: {}, store_exact=lambda own: store_exact("", {}, own))
    empty = entry_of(CommitKind.RETIRE)
    entry, [files] = retiring(a=of_file(4, 5)).complete(empty, table, Mock())
    assert ([(str(part), part.rows) for part in entry.ranges], files.paths) == ([("partition 0 [0, 10)", 8)], ("a",))
    with pytest.raises(CommitRefused, match="another run has changed the ranges of old rows meanwhile; run again"):
        retiring(a=of_file(4), b=of_file(10)).complete(empty, table, Mock())


def test_files_that_another_run_has_replaced_are_not_retired() -> None:
    change, opened = retiring(a=of_file(4), b=of_file(5)), Mock(files=lambda: pa.table({"path": ["b", "c"]}))
    newest = Mock(entry=entry_of(CommitKind.LOAD, loaded(0, 10)), opened=opened)
    rebased = change.rebased(newest)
    assert rebased is not None
    assert list(rebased.files) == ["b"]
    assert retiring(a=of_file(4)).rebased(newest) is None
    other = replace(STATE, topic=replace(STATE.topic, incarnation="8"))
    for entry in (None, Mock(topic=other.topic)):
        with pytest.raises(CommitRefused, match="the table holds another incarnation now"):
            change.rebased(Mock(entry=entry, opened=opened))
