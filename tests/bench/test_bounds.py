"""A bound fails only if every round misses it, or if it was not measured."""

import pytest

from tests.bench import loaders as by
from tests.bench.bounds import missed
from tests.bench.cases import COLD, LARGE, SPREAD, ZSTD
from tests.bench.comparison import Comparison
from tests.bench.event_times import EventTimeCost
from tests.bench.last_messages import LastMessageCost
from tests.bench.measure import Usage
from tests.bench.results import Round


def measured(
    confluent_cpu_s: float = 8,
    *,
    limit: float = 1.25,
    inside: float = 1.25,
    last_messages: float = 0.01,
    event_times: float = 0.005,
    peak_mb: float = 340,
    in_spark_cpu_s: float = 3,
    worker_mb: float = 320,
) -> Round:
    """A round in which ours needs 2 CPU seconds."""
    return Round(
        usages={
            by.OURS: Usage(wall_s=1, cpu_s=2, peak_mb=peak_mb),
            by.CONFLUENT: Usage(wall_s=1, cpu_s=confluent_cpu_s, peak_mb=100),
            by.OURS_IN_SPARK: Usage(wall_s=1, cpu_s=in_spark_cpu_s, peak_mb=1000, worker_mb=worker_mb),
            by.SPARK: Usage(wall_s=1, cpu_s=40, peak_mb=2000),
        },
        comparison=Comparison(pairs=1, records=1, ours_cpu_s=1, limit_cpu_s=1 / limit, inside_cpu_s=1 / inside),
        last_messages=LastMessageCost(load_cpu_s=2, compare_cpu_s=2 * last_messages),
        event_times=EventTimeCost(load_cpu_s=2, times_cpu_s=2 * event_times),
    )


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ([measured()], []),
        ([measured(5.8), measured(6.2), measured(5.8)], []),
        (
            [measured(5.8), measured(5.2)],
            ["200 B, zstd, confluent-kafka: >= 3: every round misses it (2.90, 2.60)"],
        ),
        ([measured(limit=1.6), measured(limit=1.3)], []),
        (
            [measured(limit=1.9), measured(limit=1.8)],
            ["200 B, zstd, ours / limit: <= 1.45: every round misses it (1.90, 1.80)"],
        ),
        ([measured(inside=1.4), measured(inside=1.3)], []),
        (
            [measured(inside=1.5), measured(inside=1.6)],
            ["200 B, zstd, ours / timers inside ours: <= 1.35: every round misses it (1.50, 1.60)"],
        ),
        (
            [measured(last_messages=0.05), measured(last_messages=0.04)],
            ["200 B, zstd, last messages / ours: <= 0.03: every round misses it (0.05, 0.04)"],
        ),
        ([measured(peak_mb=390), measured(peak_mb=360)], []),
        (
            [measured(peak_mb=390), measured(peak_mb=400)],
            ["200 B, zstd, ours, peak MB: <= 370: every round misses it (390.00, 400.00)"],
        ),
        (
            [measured(event_times=0.02), measured(event_times=0.03)],
            ["200 B, zstd, event time / ours: <= 0.01: every round misses it (0.02, 0.03)"],
        ),
    ],
)
def test_a_bound_that_every_round_misses_is_named_with_its_values(rounds: list[Round], message: list[str]) -> None:
    assert list(missed({ZSTD.name: rounds})) == message


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ([measured(in_spark_cpu_s=4.2), measured(in_spark_cpu_s=3.9)], []),
        (
            [measured(in_spark_cpu_s=4.2), measured(in_spark_cpu_s=5)],
            [f"{SPREAD.title}, ours in Spark / ours: <= 2: every round misses it (2.10, 2.50)"],
        ),
        (
            [measured(worker_mb=500)],
            [f"{SPREAD.title}, ours in Spark, peak MB of a worker: <= 370: every round misses it (500.00)"],
        ),
    ],
)
def test_ours_in_spark_is_compared_with_ours(rounds: list[Round], message: list[str]) -> None:
    assert list(missed({SPREAD.name: rounds})) == message


def test_a_loader_that_failed_does_not_pass_its_bound() -> None:
    rounds = [Round(usages={by.COLD_OURS: Usage(wall_s=1, cpu_s=2, peak_mb=100)})]
    assert list(missed({COLD.name: rounds})) == [f"{COLD.title}, {by.COLD_SPARK}: >= 5: not measured"]


def test_a_comparison_that_failed_does_not_pass_its_bound() -> None:
    rounds = [Round(usages=measured().usages)]
    assert [line.rpartition(": ")[2] for line in missed({ZSTD.name: rounds})] == ["not measured"] * 4


def test_cases_without_bounds_or_without_rounds_miss_no_bound() -> None:
    assert list(missed({})) == []
    assert list(missed({LARGE.name: [measured(0.1)]})) == []
