"""The table in docs/object-stores.md shows every store and column, and no failed test."""

from tests.stores.servers import STORES
from tests.stores.table import COLUMNS, HAS_HTTP, PAGE, render, table_of, versions, with_table

_OF_HTTP = ("lost answers", "late answers", "503 storm", "late listings", "wrong secret")


def expected() -> dict[tuple[str, str], bool]:
    """All cells, passed. Stores without HTTP lack the columns that need the proxy."""
    cells = ((name, column) for name in STORES for column in COLUMNS)
    return dict.fromkeys([cell for cell in cells if cell[0] in HAS_HTTP or cell[1] not in _OF_HTTP], True)


def test_the_page_shows_every_store_and_no_failed_test() -> None:
    assert table_of(PAGE.read_text()) == render(expected(), versions())


def test_a_failed_test_is_shown_as_failed() -> None:
    assert "NO" not in render(expected(), versions())
    assert render({**expected(), ("Azurite", "load"): False}, versions()).count("NO") == 1


def test_a_store_that_did_not_run_keeps_its_row() -> None:
    whole = render(expected(), versions())
    of_hdfs = {cell: passed for cell, passed in expected().items() if cell[0] == "HDFS"}
    assert render(of_hdfs, versions(), whole) == whole
    changed = render({**of_hdfs, ("HDFS", "load"): False}, versions(), whole)
    assert changed.splitlines()[:-1] == whole.splitlines()[:-1]
    assert changed.count("NO") == 1


def test_only_the_table_is_replaced() -> None:
    text = PAGE.read_text()
    assert table_of(with_table(text, "| new |\n")) == "| new |\n"
    assert with_table(with_table(text, "| new |\n"), table_of(text)) == text
