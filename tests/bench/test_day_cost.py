"""The cost of folders of event days is measured on real files, and the fastest rounds are compared."""

from pathlib import Path

import pytest

from tests.bench import day_cost
from tests.bench.day_cost import ONE_DAY, TIMES, DayCost, measure, report


def test_each_case_is_measured_by_round(tmp_path: Path) -> None:
    costs = measure(tmp_path, rows=3000, rounds=2)
    assert list(costs) == list(TIMES)
    assert all(len(cost.loaded_s) == len(cost.by_day_s) == len(cost.split_s) == 2 for cost in costs.values())
    assert {name: cost.files for name, cost in costs.items()}[ONE_DAY] == 1
    assert 8 < max(cost.files for cost in costs.values()) <= 17
    assert f"| {ONE_DAY} |" in report(costs)


@pytest.mark.parametrize(("split_s", "is_missed"), [([0.1, 9.0], False), ([0.2, 0.3], True)])
def test_the_bound_is_about_the_fastest_rounds(
    split_s: list[float], is_missed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = DayCost(loaded_s=[1.0, 1.0], by_day_s=[1.1, 1.2], split_s=split_s, files=1)
    monkeypatch.setattr(day_cost, "measure", lambda _: {ONE_DAY: cost})
    if is_missed:
        with pytest.raises(SystemExit, match=r"cost more than 15%"):
            day_cost.main()
    else:
        day_cost.main()
