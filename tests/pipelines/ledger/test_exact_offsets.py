"""An exact set is the set that it was made of, whatever is stored, split or joined; damaged bytes are an error."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger import exact_offsets
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from resources.errors import ExactSetLost

ONE = BrokerPartition(None, 0)
_LARGEST = 2**63 - 2
_OFFSETS = st.sets(st.integers(0, 40) | st.integers(0, _LARGEST), max_size=30)
_ROWS = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=20)
_EDGES = st.tuples(st.integers(0, 45), st.integers(0, 45))


def of_offsets(offsets: set[int]) -> ExactOffsets:
    return ExactOffsets.of(np.array(sorted(offsets), np.int64))


def of_rows(rows: set[tuple[int, int]]) -> ExactOffsets:
    offsets, inner = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    return ExactOffsets.of(offsets, inner)


@given(_OFFSETS, _OFFSETS, _EDGES)
def test_a_set_of_offsets_is_like_a_plain_set(one: set[int], other: set[int], edges: tuple[int, int]) -> None:
    offsets, part = of_offsets(one), OffsetRange(ONE, *edges)
    assert ExactOffsets.decode(offsets.encode()) == offsets
    assert offsets.count == len(one)
    assert offsets | of_offsets(other) == of_offsets(one | other)
    assert offsets.within(part) == of_offsets({offset for offset in one if edges[0] <= offset < edges[1]})
    asked = np.array(sorted(one | other), np.int64)
    assert offsets.contains(asked, np.zeros(len(asked), np.int64)).tolist() == [offset in one for offset in asked]


@given(_ROWS, _ROWS, _EDGES)
def test_a_set_of_rows_is_like_a_plain_set(  # in 0.7 several rows have one offset
    one: set[tuple[int, int]], other: set[tuple[int, int]], edges: tuple[int, int]
) -> None:
    rows, part = of_rows(one), OffsetRange(BrokerPartition(0, 0), *edges)
    assert ExactOffsets.decode(rows.encode()) == rows
    assert rows.count == len(one)
    assert rows | of_rows(other) == of_rows(one | other)
    assert rows.within(part) == of_rows({row for row in one if edges[0] <= row[0] < edges[1]})
    asked = sorted(one | other | {(offset, inner + 1) for offset, inner in one})
    columns = (np.array([row[place] for row in asked], np.int64) for place in (0, 1))
    assert rows.contains(*columns).tolist() == [row in one for row in asked]


@given(_OFFSETS, _EDGES)
def test_the_parts_of_a_split_set_are_all_of_it_and_nothing_twice(offsets: set[int], edges: tuple[int, int]) -> None:
    whole, low, high = of_offsets(offsets), min(edges), max(edges)
    bounds = (0, low, high, 2**63 - 1)
    parts = [whole.within(OffsetRange(ONE, start, stop)) for start, stop in pairwise(bounds)]
    assert ExactOffsets.union(parts) == whole
    assert sum(part.count for part in parts) == whole.count


@given(st.binary(max_size=40) | st.builds(bytes, st.lists(st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]))))
def test_bytes_are_a_set_with_this_encoding_or_an_error(data: bytes) -> None:
    try:
        decoded = ExactOffsets.decode(data)
    except ExactSetLost:
        return
    assert decoded.encode() == data
    assert (np.diff(decoded.firsts) >= 0).all()
    assert (decoded.firsts >= 0).all()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "begins with the byte none"),
        (b"\x03\x00", "begins with the byte 03"),
        (b"\x01", "ends within a number"),
        (b"\x01\x80", "ends within a number"),
        (b"\x01\x80\x00", "of another length than it needs"),
        (b"\x01" + b"\xff" * 10 + b"\x01", "of another length than it needs"),
        (b"\x01\x05\x02", "fewer than its 5 elements"),
        (b"\x01" + b"\xff" * 9 + b"\x01", "fewer than its"),
        (b"\x01\x01\x02\x02", "belong to no element"),
        (b"\x01\x02\x02\x00", "two runs of a set of offsets touch"),
        (b"\x01\x02" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x02", "above the largest one"),
        (b"\x01\x01" + b"\xfe" + b"\xff" * 8 + b"\x01", "above the largest one"),
        (b"\x02\x01\x01" + b"\xfe" + b"\xff" * 7 + b"\x7f", "belong to no element"),
        (b"\x02\x02\x02\x00", "not in order"),
    ],
)
def test_damaged_bytes_are_a_typed_error(data: bytes, reason: str) -> None:
    with pytest.raises(ExactSetLost, match=reason):
        ExactOffsets.decode(data)


def test_more_bytes_than_the_limit_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_offsets, "MAX_ENCODED_BYTES", 3)
    assert ExactOffsets.decode(b"\x01\x01\x02") == of_offsets({1})
    with pytest.raises(ExactSetLost, match="at most 3 are read"):
        ExactOffsets.decode(b"\x01\x01\x02\x00")


def test_single_offsets_take_two_bytes_and_a_run_takes_few() -> None:
    scattered = np.arange(0, 1_000_000, 1_000)
    assert len(ExactOffsets.of(scattered).encode()) < 2.1 * len(scattered)
    assert len(ExactOffsets.of_runs(np.array([0]), np.array([10**12])).encode()) < 12


def test_sets_of_offsets_and_of_rows_are_never_joined() -> None:
    assert NO_OFFSETS | of_rows({(1, 0)}) == of_rows({(1, 0)})
    with pytest.raises(ExactSetLost, match="a set of offsets and a set of rows"):
        ExactOffsets.union([of_offsets({1}), of_rows({(1, 0)})])


def test_an_empty_run_is_nothing() -> None:
    assert len(ExactOffsets.of_runs(np.array([5]), np.array([5])).firsts) == 0
    assert len(of_offsets({3, 4, 5, 6}).within(OffsetRange(ONE, 5, 5)).firsts) == 0


def test_a_run_and_a_row_end_before_the_next_offset() -> None:
    assert of_offsets({3, 4, 8}).stops.tolist() == [5, 9]
    assert of_rows({(3, 0), (3, 1), (8, 0)}).stops.tolist() == [4, 4, 9]


def test_equal_sets_have_the_same_bytes() -> None:
    assert of_offsets({1}) != of_offsets({2})
    assert NO_OFFSETS.encode() != NO_OFFSETS
    same = ExactOffsets.of_runs(np.array([3, 0]), np.array([5, 3]))
    assert (same, hash(same)) == (of_offsets({0, 1, 2, 3, 4}), hash(of_offsets({0, 1, 2, 3, 4})))
    assert same.encode() == of_offsets({0, 1, 2, 3, 4}).encode() != of_offsets({0, 1, 2, 3}).encode()
