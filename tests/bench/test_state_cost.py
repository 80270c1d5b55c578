"""The cost of an update of a state table is measured beside deltalake's MERGE; the bound fails only in every round."""

from pathlib import Path

import pytest

from tests.bench.state_cost import StateCost, measure, report


def test_both_ways_merge_the_same_rows(tmp_path: Path) -> None:
    cost = measure(tmp_path, keys=2000, changed=100, rounds=2)
    assert len(cost.update_s) == len(cost.merge_s) == 2
    assert "| 100 changed keys into 2,000 | s |" in report(cost, 2000, 100)


@pytest.mark.parametrize(("update", "slow"), [([1.9, 9.0], False), ([2.5, 2.1], True), ([1.0, 1.0], False)])
def test_the_bound_fails_only_if_every_round_misses_it(update: list[float], slow: bool) -> None:
    assert StateCost(update_s=update, merge_s=[1.0, 1.0]).is_slow is slow
