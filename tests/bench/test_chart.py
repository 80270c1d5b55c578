"""The chart shows the numbers of the table."""

from xml.etree import ElementTree as ET

from tests.bench import chart, report
from tests.bench import loaders as by
from tests.bench.cases import ALL, NONE
from tests.bench.chart import Bar, recorded_bars, svg
from tests.bench.measure import Usage
from tests.bench.results import Round


def page_of(cpu_s: dict[str, float]) -> str:
    """A page with the table of these loaders, and with other tables and text that the chart must ignore."""
    usages = {name: Usage(wall_s=1, cpu_s=seconds, peak_mb=1) for name, seconds in cpu_s.items()}
    results = {NONE.name: [Round(usages=usages)]}
    tables = f"{report.loaders_table(ALL, results)}\n\n| scale | wall s |\n|---|---:|\n| 200 B, no codec | 1.0 |"
    return f"| 200 B, no codec | text |\n{report.BEGIN}\n{tables}\n{report.END}\n"


def test_bars_are_the_costs_in_the_table_cheapest_first() -> None:
    page = page_of({by.CONFLUENT: 6, by.OURS: 1.4})
    assert recorded_bars(page) == [Bar(loader=by.OURS, cpu_s=0.7), Bar(loader=by.CONFLUENT, cpu_s=3)]


def test_lengths_are_in_proportion_and_ours_has_its_own_color() -> None:
    root = ET.fromstring(svg([Bar(loader=by.OURS, cpu_s=1), Bar(loader=by.SPARK, cpu_s=4)]))
    [_, ours, other] = root.iter("{http://www.w3.org/2000/svg}rect")
    assert float(other.attrib["width"]) == 4 * float(ours.attrib["width"])
    assert ours.attrib["fill"] != other.attrib["fill"]
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-4:] == ["Penstock", "1.00", "Spark's Kafka source", "4.00"]


def test_the_chart_in_docs_shows_the_numbers_of_the_table_in_docs() -> None:
    assert chart.CHART.read_text(encoding="utf-8") == svg(recorded_bars(report.PAGE.read_text(encoding="utf-8")))
