"""An erasure takes each row out of the one range that has it, or is refused."""

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit import erasure
from pipelines.commit.erasure import (
    EraseChange,
    ErasedRange,
    HitRows,
    MissingChange,
    TableMoved,
    on_newest,
    taken_out,
)
from pipelines.ledger.committed_range import CommittedRange, LoadedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.table.exact_sets import store_exact
from resources.errors import EraseRefused, FileRefused
from tests.pipelines.taken_out import rows_of

ONE, TWO = BrokerPartition(None, 0), BrokerPartition(None, 1)
STATE = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))


def loaded(start: int, stop: int, *, partition: BrokerPartition = ONE, rows: int = 10) -> CommittedRange:
    return CommittedRange(offsets=OffsetRange(partition, start, stop), rows=rows, loaded_at_us=1)


def entry_of(kind: CommitKind, *ranges: CommittedRange) -> LedgerEntry:
    return LedgerEntry(commit=kind, run="", kind=kind, sequence=0, table="", ranges=ranges, state=STATE)


def erased(ranges: Sequence[CommittedRange], *offsets: int, check: Mock | None = None) -> list[tuple[str, int]]:
    """The ranges that lose rows in an erasure of these offsets of partition 0, and the number of rows that stay."""
    rows = np.array(offsets, np.int64)
    hits = HitRows(offsets=rows, inner=np.zeros_like(rows), loaded_us=np.ones_like(rows))
    change = EraseChange(state=STATE, run="erasure", hits={ONE: hits}, removed=("a.parquet",), request="7")
    table = Mock(
        check=check or Mock(),
        entries=lambda _: [(1, entry_of(CommitKind.LOAD, *ranges))],
        exact_sets=lambda _: {},
        store_exact=lambda own: store_exact("", {}, own),
    )
    entry, _ = change.complete(entry_of(CommitKind.ERASE), table, Mock())
    assert (entry.erasure.request, entry.erasure.former) == ("7", ())
    return [(str(part), part.rows) for part in entry.ranges]


def test_a_row_is_taken_out_of_the_range_that_has_its_offset() -> None:
    ranges = [loaded(0, 10), loaded(10, 20), loaded(0, 10, partition=TWO), loaded(20, 30)]
    assert erased(ranges, 3, 9) == [("partition 0 [0, 10)", 8)]
    assert erased(ranges, 10) == [("partition 0 [10, 20)", 9)]
    assert erased(ranges, 19, 20) == [("partition 0 [10, 20)", 9), ("partition 0 [20, 30)", 9)]


def test_a_row_that_no_range_counts_is_not_erased() -> None:
    for ranges in ([loaded(0, 3)], [loaded(0, 10, partition=TWO)], [loaded(0, 10, rows=0)]):
        with pytest.raises(EraseRefused, match="nothing was erased"):
            erased(ranges, 3)


def test_one_of_two_rows_of_a_message_of_0_7_is_erased() -> None:
    of_07 = BrokerPartition(0, 0)
    rows = HitRows(offsets=np.array([3]), inner=np.array([1]), loaded_us=np.array([1]))
    change = EraseChange(state=STATE, run="erasure", hits={of_07: rows}, removed=("a.parquet",), request="")
    [(_, erased_rows, count)] = change.erased([loaded(0, 10, partition=of_07)])
    assert (erased_rows, count) == (rows_of(3, inner=1), 1)


def test_the_files_with_the_other_rows_are_checked() -> None:
    with pytest.raises(FileRefused, match="cut"):
        erased([loaded(0, 10)], 3, check=Mock(side_effect=FileRefused("cut")))


def test_a_range_that_lacks_rows_is_erased_there_and_its_visible_gaps_end() -> None:
    whole, lacking = loaded(0, 10), replace(loaded(10, 20, rows=6), gaps={"compacted": 3, "retired": 1})
    absent = rows_of(11, 12, 13, 14)
    change = MissingChange(state=STATE, run="r", removed=(), request="", missing={LoadedRange.of(lacking): absent})
    [(committed, places, _)] = change.erased([whole, lacking])
    assert (committed.offsets, committed.rows, committed.gaps, places) == (lacking.offsets, 9, {"retired": 1}, absent)


def test_an_erasure_ends_if_other_runs_are_always_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "_MAX_TRIES", 3)
    attempt = Mock(side_effect=TableMoved("moved"))
    with pytest.raises(TableMoved):
        on_newest(Mock(), Mock(), attempt)
    assert attempt.call_count == 3


@pytest.mark.parametrize(("most", "expected"), [(3, [(1, 2), (4, 6), (9, 10)]), (2, [(1, 6), (9, 10)])])
def test_more_places_than_the_maximum_are_named_by_one_range(
    most: int, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "MAX_WRITTEN", most)
    erased = [ErasedRange(loaded(0, 8), rows_of(1, 4, 5), 3), ErasedRange(loaded(8, 10), rows_of(9), 1)]
    written = taken_out(erased)
    assert [(part.offsets.start, part.offsets.stop) for part in written] == expected
