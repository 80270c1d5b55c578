"""Medians and ratios of measured rounds."""

from tests.bench import loaders as by
from tests.bench.comparison import Comparison
from tests.bench.measure import Usage
from tests.bench.results import Ratio, Round, medians, ratios, total_comparison


def usage(cpu_s: float, wall_s: float = 1.0) -> Usage:
    return Usage(wall_s=wall_s, cpu_s=cpu_s, peak_mb=100)


def test_each_number_of_a_usage_has_its_own_median() -> None:
    rounds = [Round(usages={by.OURS: ours}) for ours in (usage(1, 30), usage(3, 10), usage(2, 20))]
    assert medians(rounds) == {by.OURS: usage(2, 20)}


def test_the_median_of_a_loader_ignores_rounds_in_which_it_failed() -> None:
    rounds = [Round(usages={by.OURS: usage(1), by.SPARK: usage(7)}), Round(usages={by.OURS: usage(3)})]
    assert medians(rounds) == {by.OURS: usage(2), by.SPARK: usage(7)}


def test_a_ratio_is_the_cost_of_another_loader_divided_by_ours() -> None:
    result = ratios({by.OURS: usage(2, 4), by.CONFLUENT: usage(6, 10)})
    assert result == {by.CONFLUENT: Ratio(wall=2.5, cpu=3.0)}


def test_sparks_source_is_compared_with_ours_inside_spark() -> None:
    result = ratios({by.OURS: usage(1), by.OURS_IN_SPARK: usage(2), by.SPARK: usage(8)})
    assert result == {by.SPARK: Ratio(wall=1.0, cpu=4.0)}


def test_sparks_source_with_from_json_is_compared_with_ours_that_decodes_json() -> None:
    result = ratios({by.OURS: usage(1), by.OURS_TYPED: usage(2), by.SPARK_TYPED: usage(16)})
    assert {name: ratio.cpu for name, ratio in result.items()} == {by.OURS_TYPED: 2.0, by.SPARK_TYPED: 8.0}


def test_loaders_that_decode_avro_are_compared_with_ours_that_decodes_it() -> None:
    result = ratios({by.OURS: usage(1), by.OURS_AVRO: usage(2), by.CONFLUENT_AVRO: usage(12), by.SPARK_AVRO: usage(16)})
    assert {name: ratio.cpu for name, ratio in result.items()} == {
        by.OURS_AVRO: 2.0,
        by.CONFLUENT_AVRO: 6.0,
        by.SPARK_AVRO: 8.0,
    }


def test_the_ratio_of_cold_jobs_subtracts_the_cost_of_an_empty_job() -> None:
    result = ratios(
        {
            by.COLD_EMPTY: usage(10, 5),
            by.COLD_OURS: usage(12, 6),
            by.COLD_OURS_FIRST: usage(15, 8),
            by.COLD_SPARK: usage(22, 9),
        }
    )
    assert result == {by.COLD_SPARK: Ratio(wall=4.0, cpu=6.0)}


def test_comparisons_of_all_rounds_are_added_up() -> None:
    comparison = Comparison(pairs=4, records=10, ours_cpu_s=3, limit_cpu_s=2, inside_cpu_s=2.5)
    rounds = [Round(usages={}, comparison=comparison), Round(usages={}), Round(usages={}, comparison=comparison)]
    assert total_comparison(rounds) == comparison + comparison
    assert total_comparison([Round(usages={})]) is None
