"""Results become a JSON file and the tables of docs/speed.md."""

import json
from pathlib import Path

import pytest

from tests.bench import loaders as by
from tests.bench import report
from tests.bench.cases import ALL, NONE, ZSTD
from tests.bench.comparison import Comparison
from tests.bench.last_messages import LastMessageCost
from tests.bench.measure import Usage
from tests.bench.results import Round

COMPARED = Comparison(pairs=4, records=4_000_000, ours_cpu_s=2.5, limit_cpu_s=2, inside_cpu_s=2)


def usage(cpu_s: float, wall_s: float = 1.0) -> Usage:
    return Usage(wall_s=wall_s, cpu_s=cpu_s, peak_mb=100)


def test_the_results_contain_the_ratios_and_the_limit_of_the_zstd_case(tmp_path: Path) -> None:
    results = {
        ZSTD.name: [Round(usages={by.OURS: usage(2), by.CONFLUENT: usage(7)}, comparison=COMPARED)],
        NONE.name: [Round(usages={by.OURS: usage(1), by.CONFLUENT: usage(9)})],
    }
    report.write(tmp_path / "results.json", results, 5)
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["ratios"] == {by.CONFLUENT: {"wall": 1.0, "cpu": 3.5}}
    assert (written["limit"]["cpu"], written["limit"]["inside"]) == (1.25, 1.25)
    assert written["cases"][NONE.name]["ratios"] == {by.CONFLUENT: {"wall": 1.0, "cpu": 9.0}}
    assert written["cases"][NONE.name]["limit"] is None
    assert written["cases"][ZSTD.name]["rounds"][0]["usages"][by.CONFLUENT]["cpu_s"] == 7
    assert written["rounds"] == 5


def test_the_table_of_loaders_has_costs_per_million_records() -> None:
    rounds = [Round(usages={by.OURS: usage(1, 2), by.CONFLUENT: usage(5, 4)})]
    [_, _, ours, other] = report.loaders_table(ALL, {NONE.name: rounds}).splitlines()
    assert ours == "| 200 B, no codec | ours | 2.00 | 1.00 | 1,000 | 0.50 |  | 100 |"
    assert other == "| 200 B, no codec | confluent-kafka | 4.00 | 5.00 | 500 | 2.50 | 5.0 | 100 |"


def test_the_table_of_the_limit_has_the_sums_of_all_rounds() -> None:
    cost = LastMessageCost(load_cpu_s=2, compare_cpu_s=0.01)
    rounds = [Round(usages={}, comparison=COMPARED, last_messages=cost), Round(usages={}, comparison=COMPARED)]
    [_, _, row] = report.limit_table(ALL, {ZSTD.name: rounds}).splitlines()
    assert row == "| 200 B, zstd | 0.62 | 0.50 | 1.25 | 1.25 | 8 | 0.5% |"


def test_only_the_text_between_the_markers_changes(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write_page(page, "| new |")
    assert page.read_text() == f"before\n{report.BEGIN}\n| new |\n{report.END}\nafter\n"


def test_a_page_without_markers_does_not_change(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    page.write_text("before\n")
    with pytest.raises(ValueError, match="no place"):
        report.write_page(page, "| new |")
    assert page.read_text() == "before\n"


def test_the_speed_page_has_the_markers() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    assert -1 < text.find(report.BEGIN) < text.find(report.END)
