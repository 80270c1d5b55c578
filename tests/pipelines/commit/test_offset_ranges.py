"""Parts of committed ranges cover the range exactly, and count their own rows, gaps and bytes."""

from collections.abc import Mapping
from unittest.mock import Mock

import numpy as np
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.offset_ranges import MIXED, split_ranges, with_counts
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.table.exact_sets import ExactSets, store_exact

OF_07, MODERN = BrokerPartition(0, 0), BrokerPartition(None, 0)


@pytest.mark.parametrize(
    ("selected", "inside", "outside"),
    [
        ([(20, 40)], [(20, 40)], [(0, 20), (40, 100)]),
        ([(0, 40)], [(0, 40)], [(40, 100)]),
        ([(60, 200)], [(60, 100)], [(0, 60)]),
        ([(20, 40), (40, 60)], [(20, 40), (40, 60)], [(0, 20), (60, 100)]),
        ([(0, 100)], [(0, 100)], []),
        ([(100, 200)], [], []),
    ],
)
def test_a_range_is_split_at_the_selected_offsets(
    selected: list[tuple[int, int]], inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    whole = CommittedRange(offsets=OffsetRange(MODERN, 0, 100))
    parts, remaining = split_ranges([whole], [OffsetRange(MODERN, *edges) for edges in selected])
    assert [(part.offsets.start, part.offsets.stop) for part in parts] == inside
    assert [(part.offsets.start, part.offsets.stop) for part, owner in remaining if owner == whole] == outside


@pytest.mark.parametrize(
    ("partition", "whole_rows", "whole_gaps", "rows", "gaps", "size"),
    [
        (MODERN, 50, {"compacted": 50}, 15, {"compacted": 5}, 300),
        (MODERN, 50, {"compacted": 30, "control": 20}, 15, {MIXED: 5}, 300),
        (MODERN, 50, {"compacted": 50}, 20, {}, 400),
        (MODERN, 0, {"aborted": 100}, 0, {"aborted": 20}, 0),
        (OF_07, 50, {}, 15, {}, 20),
        (OF_07, 0, {"expired": 100}, 0, {"expired": 20}, 20),
    ],
)
def test_a_part_counts_its_own_rows_gaps_and_bytes(
    partition: BrokerPartition,
    whole_rows: int,
    whole_gaps: Mapping[str, int],
    rows: int,
    gaps: Mapping[str, int],
    size: int,
) -> None:
    whole = CommittedRange(offsets=OffsetRange(partition, 0, 100), rows=whole_rows, bytes=1000, gaps=whole_gaps)
    part = CommittedRange(offsets=OffsetRange(partition, 0, 20), bytes=1000)
    [counted] = with_counts(Mock(count_rows=lambda *_: [rows]), Mock(), [(part, whole)])
    assert (counted.rows, counted.gaps, counted.bytes) == (rows, gaps, size)


def _stored(*offsets: int) -> StoredSet:
    return store_exact("", {}, ExactOffsets.of(np.array(offsets)))


@pytest.mark.parametrize(
    ("visible", "rows", "gaps"),
    [
        ({}, 18, {"erased": 2}),
        ({"compacted": 5}, 15, {"erased": 2, "compacted": 3}),
        ({"compacted": 5, "control": 1}, 15, {"erased": 2, MIXED: 3}),
        ({"compacted": 5}, 18, {"erased": 2}),
        # A row is missing that nobody erased: it must not be counted among the erased ones.
        ({}, 17, {"erased": 2, MIXED: 1}),
    ],
)
def test_gaps_of_an_exact_cause_are_counted_in_their_set(  # fault P17
    visible: Mapping[str, int], rows: int, gaps: Mapping[str, int]
) -> None:
    exact = {ExactCause.ERASED: _stored(3, 4, 50), ExactCause.FILTERED: _stored(60, 61)}
    whole_gaps = {**visible, "erased": 3, "filtered": 2}
    whole = CommittedRange(offsets=OffsetRange(MODERN, 0, 100), rows=90, gaps=whole_gaps, exact=exact)
    [part], _ = split_ranges([whole], [OffsetRange(MODERN, 0, 20)])
    sets = ExactSets.at("", {})
    [counted] = with_counts(Mock(count_rows=lambda *_: [rows], exact_sets=sets.within), Mock(), [(part, whole)])
    assert counted.gaps == gaps
    assert counted.exact == {ExactCause.ERASED: exact[ExactCause.ERASED]}


def test_the_parts_of_a_range_of_0_7_count_the_rows_of_the_set() -> None:
    """There the sizes of messages are not known, so rows and gaps need not add up to the size."""
    offsets, inner = np.array([5, 5, 70]), np.array([0, 2, 0])
    exact = {ExactCause.ERASED: store_exact("", {}, ExactOffsets.of(offsets, inner))}
    whole = CommittedRange(offsets=OffsetRange(OF_07, 0, 100), rows=5, gaps={"erased": 3}, exact=exact)
    _, parts = split_ranges([whole], [OffsetRange(OF_07, 20, 40)])
    table = Mock(count_rows=lambda *_: [3, 2], exact_sets=ExactSets.at("", {}).within)
    assert [counted.gaps for counted in with_counts(table, Mock(), parts)] == [{"erased": 2}, {"erased": 1}]
