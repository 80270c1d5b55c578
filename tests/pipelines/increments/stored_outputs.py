"""The outputs that tests fill and read: a Delta table, a table in a DuckDB file, and one in a Postgres database."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.output import IncrementOutput
from pipelines.increments.postgres_output import PostgresOutput
from pipelines.increments.source_columns import SOURCE_COLUMNS
from tests.pipelines.increments.table_histories import SourceRow

TABLE = "my rows"
KINDS = ["delta", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres)]
"""The kinds of outputs, as parameters of tests."""


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """An output of a kind. `place` is its URI, path, or connection string."""

    kind: str
    place: str

    def output(self) -> IncrementOutput:
        """The output, for increments."""
        return _OUTPUTS[self.kind](self.place)

    def table(self) -> pa.Table | None:
        """The rows; None if there is no table."""
        return _TABLES[self.kind](self.place)

    def remove(self) -> None:
        """Remove the table with the rows. In a database the progress of its consumers stays."""
        _REMOVALS[self.kind](self.place)


def rows_of(table: pa.Table) -> list[SourceRow]:
    """The place and the loading time of the source of each row."""
    _, *names = SOURCE_COLUMNS.names
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _delta_table(place: str) -> pa.Table | None:
    return DeltaTable(place).to_pyarrow_table() if Path(place).exists() else None


def _duckdb_table(place: str) -> pa.Table | None:
    if not Path(place).exists():
        return None
    with duckdb.connect(place) as connection:
        if not connection.execute("from duckdb_tables() where table_name = $1", [TABLE]).fetchall():
            return None
        return connection.sql(f'from "{TABLE}"').to_arrow_table()


def _postgres_table(place: str) -> pa.Table | None:
    with psycopg.connect(place) as connection:
        try:
            cursor = connection.execute(f'select * from "{TABLE}"'.encode())
        except psycopg.errors.UndefinedTable:
            return None
        names = [column.name for column in cursor.description or ()]
        columns = [list(column) for column in zip(*cursor.fetchall(), strict=True)] or [[] for _ in names]
        return pa.table(columns, names)


def _remove_from_duckdb(place: str) -> None:
    with duckdb.connect(place) as connection:
        connection.execute(f'drop table if exists "{TABLE}"')


def _remove_from_postgres(place: str) -> None:
    with psycopg.connect(place) as connection:
        connection.execute(f'drop table if exists "{TABLE}"'.encode())


_OUTPUTS: Mapping[str, Callable[[str], IncrementOutput]] = {
    "delta": lambda place: DeltaOutput(uri=place),
    "duckdb": lambda place: DuckDBOutput(path=place, table=TABLE),
    "postgres": lambda place: PostgresOutput(dsn=place, table=TABLE),
}
_TABLES: Mapping[str, Callable[[str], pa.Table | None]] = {
    "delta": _delta_table,
    "duckdb": _duckdb_table,
    "postgres": _postgres_table,
}
_REMOVALS: Mapping[str, Callable[[str], None]] = {
    "delta": lambda place: shutil.rmtree(place, ignore_errors=True),
    "duckdb": _remove_from_duckdb,
    "postgres": _remove_from_postgres,
}
