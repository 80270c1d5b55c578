"""The bounds of the cost of very many topics hold for any number of them."""

import pytest

from tests.bench import many_topics
from tests.bench.many_topics import (
    FOLDER,
    MAX_RATIOS,
    MAX_REQUESTS,
    NEWS,
    NOTHING_NEW,
    PEER,
    STORE,
    CommandCost,
    main,
    measure,
    missed,
    report,
)


def cost(cpu_s: float, requests: int | None = None) -> CommandCost:
    return CommandCost(wall_s=9.0, cpu_s=cpu_s, requests=requests)


def test_a_bound_is_missed_above_its_cpu_time() -> None:
    bound, peer = MAX_RATIOS[FOLDER, NEWS], {(FOLDER, PEER): cost(2.0)}
    assert not list(missed(50, {**peer, (FOLDER, NEWS): cost(2 * bound), (STORE, NEWS): cost(99 * bound, 7)}))
    [problem] = missed(50, {**peer, (FOLDER, NEWS): cost(2 * bound + 2)})
    assert problem == f"load with news (folder): {bound + 1:.2f} times the CPU seconds of {PEER}; allowed are {bound}"


def test_a_bound_is_missed_above_its_requests() -> None:
    allowed = MAX_REQUESTS[STORE, NOTHING_NEW] * 50 + 100
    assert not list(missed(50, {(STORE, NOTHING_NEW): cost(0, allowed)}))
    [problem] = missed(50, {(STORE, NOTHING_NEW): cost(0, allowed + 1)})
    assert problem == f"load, nothing new (store, 40 ms): {allowed + 1} requests, allowed are {allowed}"


def test_the_bench_fails_if_a_bound_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        many_topics, "measure", lambda _count: {(FOLDER, PEER): cost(1.0), (FOLDER, NEWS): cost(1000.0)}
    )
    with pytest.raises(SystemExit, match=r"1000\.00 times"):
        main()
    assert "| load with news | folder | 9.0 | 1000.0 |  |" in capsys.readouterr().out


@pytest.mark.slow
def test_each_command_is_measured() -> None:
    costs = measure(2)
    assert len(costs) == 11
    assert all(cost.cpu_s > 0 for cost in costs.values())
    assert {(place, cost.requests is None) for (place, _), cost in costs.items()} == {(FOLDER, True), (STORE, False)}
    assert report(2, costs).count("\n") == 12
