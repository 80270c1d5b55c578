"""What a table covers, and what several tables of a topic cover together."""

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.coverage import NotAdjoining, common, extended, is_backfill, is_covered
from pipelines.ledger.ledger import Coverage

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)


@pytest.mark.parametrize(
    ("start", "stop", "covered", "backfill"),
    [
        (10, 20, True, False),
        (12, 18, True, False),
        (9, 20, False, True),
        (10, 21, False, False),
        (20, 25, False, False),
    ],
)
def test_a_table_has_offsets_between_its_start_and_its_cursor(
    start: int, stop: int, covered: bool, backfill: bool
) -> None:
    table = {A: (10, 20)}
    assert is_covered(OffsetRange(A, start, stop), table) == covered
    assert is_backfill(OffsetRange(A, start, stop), table) == backfill
    assert not is_covered(OffsetRange(B, start, stop), table)
    assert not is_backfill(OffsetRange(B, start, stop), table)


def test_tables_of_a_topic_have_together_what_each_of_them_covers() -> None:
    one = {A: (0, 30), B: (5, 9)}
    assert common([one]) == one
    assert common([one, {A: (10, 20), B: (7, 8)}]) == {A: (10, 20), B: (7, 8)}
    assert common([{A: (0, 5)}, {A: (10, 20)}]) == {A: (5, 5)}


def test_a_table_without_a_partition_begins_where_the_first_of_the_others_does() -> None:
    assert common([{A: (5, 9)}, {A: (3, 8)}, {}]) == {A: (3, 3)}


@pytest.mark.parametrize(
    "added",
    [
        [(60, 70)],
        [(40, 60)],
        [(50, 60), (70, 80)],
        [(20, 25)],
        [(20, 35)],
        [(10, 20), (25, 30)],
        [(30, 50)],
    ],
    ids=["hole after", "overlap", "hole between", "hole before", "overlap before", "hole in older", "again"],
)
def test_the_covered_range_grows_only_at_its_ends(added: list[tuple[int, int]]) -> None:
    with pytest.raises(NotAdjoining):
        extended({A: (30, 50)}, [OffsetRange(A, *offsets) for offsets in added])


@pytest.mark.parametrize(
    ("added", "after"),
    [
        ([(50, 60), (60, 70)], {A: (30, 70)}),
        ([(10, 20), (20, 30)], {A: (10, 50)}),
        ([(50, 60), (20, 30)], {A: (20, 60)}),
        ([(50, 50)], {A: (30, 50)}),
    ],
)
def test_ranges_at_both_ends_are_covered_afterwards(added: list[tuple[int, int]], after: Coverage) -> None:
    assert extended({A: (30, 50)}, [OffsetRange(A, *offsets) for offsets in added]) == after
    assert extended({}, [OffsetRange(A, *offsets) for offsets in sorted(added)[:1]]) == {A: min(added)}
