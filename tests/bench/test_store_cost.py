"""Loads into a slow store are measured beside deltalake alone, and a missed bound is an error."""

import pytest

from tests.bench import store_cost
from tests.bench.store_cost import DELTALAKE, NOTHING_NEW, ONE_FILE, VERIFY, StoreCost, measure, missed, report


def test_each_case_is_measured() -> None:
    costs = measure(versions=[2], rounds=1, request_s=0.001)
    assert list(costs) == [(2, NOTHING_NEW), (2, ONE_FILE), (2, VERIFY), (2, DELTALAKE)]
    assert [cost.requests for cost in costs.values()][:3] == [[7], [12], [13]]
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


@pytest.mark.parametrize(("seconds", "is_missed"), [(0.74, False), (0.76, True)])
def test_on_a_busy_machine_the_bound_is_a_part_of_the_time_of_deltalake(seconds: float, is_missed: bool) -> None:
    costs = {
        (9, NOTHING_NEW): StoreCost(seconds=[seconds], requests=[1]),
        (9, DELTALAKE): StoreCost(seconds=[1.0], requests=[1]),
    }
    assert any(missed(costs)) is is_missed


@pytest.mark.parametrize(
    ("name", "version", "allowed"),
    [(NOTHING_NEW, 98, 15), (ONE_FILE, 98, 18), (ONE_FILE, 99, 21), (VERIFY, 98, 121)],
)
def test_more_requests_than_a_case_may_send_are_an_error(name: str, version: int, allowed: int) -> None:
    costs = [StoreCost(seconds=[0.1], requests=[1, count]) for count in (allowed, allowed + 1)]
    problems = [list(missed({(version, name): cost, (version, DELTALAKE): costs[1]})) for cost in costs]
    assert problems == [[], [f"{name} at version {version} sent {allowed + 1} requests, and may send {allowed}"]]
