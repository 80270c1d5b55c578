"""Connections of DuckDB that print nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resources.extras import check_extra

if TYPE_CHECKING:  # processes of Dagster that ask no database import this module too
    import duckdb


def connect_duckdb(
    path: str | Path = ":memory:", config: Mapping[str, Any] | None = None
) -> "duckdb.DuckDBPyConnection":
    """Open a database without a progress bar.

    In a process without a main file, such as a worker of multiprocessing or `python -c`, DuckDB takes itself for
    interactive. Then it prints a bar for every query above two seconds to the standard output, among results in JSON.

    Raises:
        ExtraMissing: DuckDB is not installed.
        duckdb.Error: the database cannot be opened.
    """
    check_extra("duckdb", "a state table, an audit or a DuckDBOutput")
    import duckdb  # noqa: PLC0415 - see TYPE_CHECKING

    connection = duckdb.connect(path, config=dict(config or {}))
    connection.execute("set enable_progress_bar = false")
    return connection
