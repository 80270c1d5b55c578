"""The cost of an erasure is measured beside deltalake's own; the bound fails only if every round misses it."""

from pathlib import Path

import pytest

from tests.bench import erase_cost
from tests.bench.erase_cost import EraseCost, measure


def test_both_take_out_the_same_rows(tmp_path: Path) -> None:
    cost = measure(tmp_path, files=3, rows=200, persons=100, erased=10, rounds=2)
    assert len(cost.ours_s) == len(cost.theirs_s) == 2
    assert all(seconds > 0 for seconds in (*cost.ours_s, *cost.theirs_s))
    assert cost.rows > 20
    assert f"of {erase_cost.ERASED:,} persons" in erase_cost.report(cost)


@pytest.mark.parametrize(("ours", "is_slower"), [([0.9, 9.0], False), ([1.8, 1.6], True), ([1.0, 1.0], False)])
def test_the_bound_fails_only_if_every_round_misses_it(ours: list[float], is_slower: bool) -> None:
    assert EraseCost(ours_s=ours, theirs_s=[1.0, 1.0], rows=1).is_slower is is_slower
