"""Numbers become ratios, bars, a file and a table."""

import json
from pathlib import Path

import pytest

from tests.bench import loaders as by
from tests.bench import report
from tests.bench.cases import ALL, COLD, NONE, ZSTD
from tests.bench.measure import Usage


def usage(cpu_s: float, wall_s: float = 1.0) -> Usage:
    return Usage(wall_s=wall_s, cpu_s=cpu_s, peak_mb=100)


def test_the_middle_is_the_median_of_each_number_by_itself() -> None:
    found = report.middle([usage(1, 30), usage(3, 10), usage(2, 20)])
    assert found == usage(2, 20)


def test_a_ratio_is_theirs_by_ours() -> None:
    found = report.ratios({by.OURS: usage(2, 4), by.CONFLUENT: usage(6, 10)})
    assert found == {by.CONFLUENT: {"wall": 2.5, "cpu": 3.0}}


def test_the_limit_is_told_the_other_way_round() -> None:
    found = report.ratios({by.OURS: usage(3), by.LIMIT: usage(2)})
    assert found[by.LIMIT]["cpu"] == 1.5


def test_sparks_source_is_held_against_ours_inside_spark() -> None:
    found = report.ratios({by.OURS: usage(1), by.OURS_IN_SPARK: usage(2), by.SPARK: usage(8)})
    assert found == {by.SPARK: {"wall": 1.0, "cpu": 4.0}}


def test_a_cold_job_counts_by_what_it_takes_beyond_an_empty_one() -> None:
    found = report.ratios(
        {
            by.COLD_EMPTY: usage(10, 5),
            by.COLD_OURS: usage(12, 6),
            by.COLD_OURS_FIRST: usage(15, 8),
            by.COLD_SPARK: usage(22, 9),
        }
    )
    assert found == {by.COLD_SPARK: {"wall": 4.0, "cpu": 6.0}}


@pytest.mark.parametrize(
    ("peer", "told"),
    [
        (usage(6.2), []),
        (usage(5.8), ["200 B, zstd, confluent-kafka: >= 3: it is 2.9"]),
    ],
)
def test_a_bar_that_does_not_hold_is_named_with_what_was_measured(peer: Usage, told: list[str]) -> None:
    medians = {ZSTD.name: {by.OURS: usage(2), by.CONFLUENT: peer, by.LIMIT: usage(2)}}
    assert list(report.missed(medians)) == told


def test_a_loader_that_failed_does_not_pass_its_bar() -> None:
    medians = {COLD.name: {by.COLD_OURS: usage(2)}}
    assert list(report.missed(medians)) == [f"{COLD.title}, {by.COLD_SPARK}: >= 5: not measured"]


def test_cases_that_did_not_run_have_no_bars() -> None:
    assert list(report.missed({})) == []


def test_the_results_hold_ratios_and_limit_of_the_zstd_case(tmp_path: Path) -> None:
    medians = {
        ZSTD.name: {by.OURS: usage(2), by.CONFLUENT: usage(7), by.LIMIT: usage(1.6)},
        NONE.name: {by.OURS: usage(1), by.CONFLUENT: usage(9)},
    }
    report.write(tmp_path / "results.json", medians, 5)
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["ratios"] == {by.CONFLUENT: {"wall": 1.0, "cpu": 3.5}}
    assert written["limit"] == {"wall": 1.0, "cpu": 1.25}
    assert written["cases"][NONE.name]["ratios"] == {by.CONFLUENT: {"wall": 1.0, "cpu": 9.0}}
    assert written["rounds"] == 5


def test_the_table_tells_costs_by_million_of_records() -> None:
    [_, _, ours, peer] = report.table(ALL, {NONE.name: {by.OURS: usage(1, 2), by.CONFLUENT: usage(5, 4)}}).splitlines()
    assert ours == "| 200 B, no codec | ours | 2.00 | 1.00 | 1,000 | 0.50 |  | 100 |"
    assert peer == "| 200 B, no codec | confluent-kafka | 4.00 | 5.00 | 500 | 2.50 | 5.0 | 100 |"


def test_the_readme_keeps_all_but_the_table(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nbehind\n")
    report.write_readme(readme, "| new |")
    assert readme.read_text() == f"before\n{report.BEGIN}\n| new |\n{report.END}\nbehind\n"


def test_a_readme_without_a_place_is_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n")
    with pytest.raises(ValueError, match="no place"):
        report.write_readme(readme, "| new |")
    assert readme.read_text() == "before\n"


def test_ours_has_a_place() -> None:
    text = (Path(__file__).parent.parent.parent / "README.md").read_text()
    assert -1 < text.find(report.BEGIN) < text.find(report.END)
