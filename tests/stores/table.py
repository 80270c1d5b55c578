"""The table of stores in docs/object-stores.md: `make stores` runs the tests in each store and writes their results.

The `stores` mark of a test names its column, and the store is its row.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

from tests.stores import programs

PAGE = Path(__file__).parents[2] / "docs" / "object-stores.md"
ASKED = "PENSTOCK_TEST_STORES"
"""The variable with the names of the stores, separated by commas."""
HAS_HTTP = ("moto", "versitygw", "Azurite")
COLUMNS = (
    "load",
    "rewind",
    "replay",
    "clean",
    "two loads",
    "kill -9",
    "lost answers",
    "late answers",
    "503 storm",
    "late listings",
    "wrong secret",
)
_STANDS_FOR = {
    "moto": "S3",
    "versitygw": "S3",
    "Azurite": "Azure Blob Storage",
    "HDFS": "HDFS",
}
_VERSIONS = {"versitygw": programs.VERSITYGW, "Azurite": programs.AZURITE, "HDFS": programs.HADOOP}
_BEGIN, _END = "<!-- stores: written by `make stores` -->\n", "<!-- /stores -->\n"
Results = Mapping[tuple[str, str], bool]


def render(results: Results, versions: Mapping[str, str], before: str = "") -> str:
    """The table in Markdown; `-` marks what a store does not have.

    A store without results keeps its row in the table `before`.
    """
    rows = {line.split()[1]: line for line in before.splitlines(keepends=True)}
    for name in {name for name, _ in results}:
        rows[name] = _row(f"{name} {versions[name]}", _STANDS_FOR[name], *_cells(name, results))
    head = _row("store", "stands for", *COLUMNS) + _row(*["---"] * (2 + len(COLUMNS)))
    return head + "".join(rows.get(name, "") for name in _STANDS_FOR)


def table_of(page: str) -> str:
    """The table in the text of the page."""
    return page.partition(_BEGIN)[2].partition(_END)[0]


def with_table(page: str, table: str) -> str:
    """The text of the page with its table replaced."""
    before, _, after = page.partition(_BEGIN)
    return before + _BEGIN + table + _END + after.partition(_END)[2]


def versions() -> Mapping[str, str]:
    """The version of each store."""
    return {"moto": version("moto"), **_VERSIONS}


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cells(name: str, results: Results) -> Iterable[str]:
    words = {True: "yes", False: "NO", None: "-"}
    return (words[results.get((name, column))] for column in COLUMNS)
