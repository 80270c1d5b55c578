"""Processes for which little is new are measured beside others, and a missed bound is an error."""

import pytest

from resources.settings.settings import PATH_VARIABLE
from tests.bench import cold_start
from tests.bench.cold_start import (
    EMPTY_RUN,
    LOAD,
    MAX_OF_EMPTY,
    RUN,
    RUN_WITH_NEWS,
    main,
    measure,
    missed,
)
from tests.bench.many_topics import CommandCost


def costs(load_s: float = 1.0, run_s: float = 3.0, news_s: float = 3.0) -> dict[str, CommandCost]:
    """An empty run needs two CPU seconds."""
    seconds = {LOAD: load_s, EMPTY_RUN: 2.0, RUN: run_s, RUN_WITH_NEWS: news_s}
    return {name: CommandCost(wall_s=9, cpu_s=cpu_s) for name, cpu_s in seconds.items()}


def test_a_bound_is_missed_above_its_cpu_time() -> None:
    most = [2.0 * MAX_OF_EMPTY[name] for name in (LOAD, RUN, RUN_WITH_NEWS)]
    assert list(missed(costs(*(seconds - 0.01 for seconds in most)))) == []
    problems = missed(costs(*(seconds + 0.1 for seconds in most)))
    assert [line.partition(":")[0] for line in problems] == [LOAD, RUN, RUN_WITH_NEWS]


def test_the_bench_fails_if_a_bound_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cold_start, "measure", lambda: costs(load_s=7.0))
    with pytest.raises(SystemExit, match=r"3\.50 of the CPU time of an empty run, allowed are"):
        main()
    assert f"| {LOAD} | 9.00 | 7.00 |" in capsys.readouterr().out


@pytest.mark.slow
def test_each_process_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAGSTER_HOME", PATH_VARIABLE):
        monkeypatch.setenv(name, "")
    assert all(cost.cpu_s > 0 for cost in measure(1).values())
