"""Writes the table in docs/kafka-versions.md: `make matrix` runs the tests on real brokers and stores their results.

The `matrix` mark of a test names its columns; its parameter `version` is its row.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.brokers.releases import RELEASES

PAGE = Path(__file__).parents[2] / "docs" / "kafka-versions.md"
COLUMNS = (
    "load",
    "continue",
    "time bounds",
    "transactions",
    "TLS",
    "SASL",
    "leader moves",
    "recreated",
    "expired",
)
_BEGIN, _END = "<!-- matrix: written by `make matrix` -->\n", "<!-- /matrix -->\n"
_ADDRESS = {"zookeeper": "ZooKeeper", "kraft": "bootstrap"}
Results = Mapping[tuple[str, str], bool]


def render(results: Results) -> str:
    """The table in Markdown. A cell without a test is a feature that brokers of this version do not have."""
    rows: list[tuple[str, ...]] = [("Kafka", "found by", "codecs", *COLUMNS), ("---",) * (3 + len(COLUMNS))]
    for version, release in RELEASES.items():
        rows.append((version, _ADDRESS[release.modes[-1]], ", ".join(release.codecs), *_cells(version, results)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(version: str, results: Results) -> Iterable[str]:
    words = {True: "yes", False: "NO", None: "-"}
    return (words[results.get((version, column))] for column in COLUMNS)


def table_of(page: str) -> str:
    """The table in the text of the page."""
    return page.partition(_BEGIN)[2].partition(_END)[0]


def with_table(page: str, table: str) -> str:
    """The text of the page with its table replaced."""
    before, _, after = page.partition(_BEGIN)
    return before + _BEGIN + table + _END + after.partition(_END)[2]


class Collector:
    """A pytest plugin that collects for each cell whether all its tests passed.

    Args:
        mark: the mark of a test that names its columns.
        parameter: the parameter of a test that is its row.
    """

    def __init__(self, *, mark: str = "matrix", parameter: str = "version") -> None:
        self._mark, self._parameter = mark, parameter
        self.results: dict[tuple[str, str], bool] = {}
        self._cells: dict[str, list[tuple[str, str]]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Note to which cells each test belongs."""
        for item in items:
            columns = [column for mark in item.iter_markers(self._mark) for column in mark.args]
            self._cells[item.nodeid] = [(str(item.callspec.params[self._parameter]), column) for column in columns]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the result of one phase of a test. A failure in any phase or test makes the cell false."""
        for cell in self._cells[report.nodeid]:
            if report.failed:
                self.results[cell] = False
            elif report.when == "call":
                self.results.setdefault(cell, report.passed)


def main() -> int:
    """Run the tests and write the table of their results."""
    collector = Collector()
    code = pytest.main(["-q", "-m", "matrix", str(Path(__file__).parent)], plugins=[collector])
    if collector.results:
        PAGE.write_text(with_table(PAGE.read_text(), render(collector.results)))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
