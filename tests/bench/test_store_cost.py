"""Loads into a slow store are measured beside deltalake alone, and a missed bound is an error."""

import pytest

from tests.bench import store_cost
from tests.bench.store_cost import DELTALAKE, NOTHING_NEW, ONE_FILE, StoreCost, measure, report


def test_each_case_is_measured() -> None:
    costs = measure(versions=[2], rounds=1, request_s=0.001)
    assert list(costs) == [(2, NOTHING_NEW), (2, ONE_FILE), (2, DELTALAKE)]
    assert [cost.requests for cost in costs.values()][:2] == [[7], [12]]
    assert f"| 2 | {ONE_FILE} | 12 |" in report(costs)


@pytest.mark.parametrize(("seconds", "is_missed"), [([9.0, 0.29], False), ([0.31, 0.4], True)])
def test_the_bound_is_about_the_fastest_round(
    seconds: list[float], is_missed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = StoreCost(seconds=seconds, requests=[14, 14])
    monkeypatch.setattr(store_cost, "measure", lambda: {(9, NOTHING_NEW): cost, (9, DELTALAKE): cost})
    if is_missed:
        with pytest.raises(SystemExit, match=r"at version 9 took 0.31 s"):
            store_cost.main()
    else:
        store_cost.main()
