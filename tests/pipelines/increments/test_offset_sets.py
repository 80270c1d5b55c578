"""Sets of offsets behave as sets of numbers do."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.increments.offset_sets import OffsetSet

Members = set[tuple[BrokerPartition, int]]
PARTITIONS = [BrokerPartition(None, 0), BrokerPartition(None, 1), BrokerPartition(3, 0)]
RANGES = st.builds(
    lambda partition, start, size: OffsetRange(partition, start, start + size),
    st.sampled_from(PARTITIONS),
    st.integers(0, 30),
    st.integers(0, 8),
)
SETS = st.lists(RANGES, max_size=8)


def members(ranges: list[OffsetRange] | OffsetSet) -> Members:
    return {(part.partition, offset) for part in ranges for offset in range(part.start, part.stop)}


@given(SETS)
def test_a_set_has_the_offsets_of_its_ranges_in_intervals_that_do_not_touch(ranges: list[OffsetRange]) -> None:
    offsets = OffsetSet(ranges)
    assert members(offsets) == members(ranges)
    assert bool(offsets) == bool(members(ranges))
    intervals = list(offsets)
    assert intervals == sorted(intervals)
    for first, second in pairwise(intervals):
        assert first.partition != second.partition or first.stop < second.start
        assert first.size > 0


@given(SETS, SETS)
def test_union_intersection_and_difference(first: list[OffsetRange], second: list[OffsetRange]) -> None:
    one, other = OffsetSet(first), OffsetSet(second)
    assert members(one | other) == members(first) | members(second)
    assert members(one & other) == members(first) & members(second)
    assert members(one - other) == members(first) - members(second)
    assert (one == other) == (members(first) == members(second))
    assert (hash(one) == hash(other)) or one != other


@given(SETS, RANGES)
def test_the_parts_within_a_range(ranges: list[OffsetRange], limits: OffsetRange) -> None:
    parts = list(OffsetSet(ranges).within(limits))
    assert members(parts) == members(ranges) & members([limits])
    assert all(part.size > 0 for part in parts)


def test_a_set_of_what_a_table_covers() -> None:
    partition, other = PARTITIONS[:2]
    assert list(OffsetSet.of_coverage({partition: (3, 7), other: (5, 5)})) == [OffsetRange(partition, 3, 7)]
    assert repr(OffsetSet([OffsetRange(partition, 3, 7)])) == "OffsetSet(partition 0 [3, 7))"
    assert OffsetSet() != 3
