"""A table in a DuckDB file as the output of increments: rows and progress are in one transaction.

DuckDB lets one process open a file at a time. So the file is only open while the progress is read and while the rows
are committed, and not while they are computed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.increments.output import OutputChange, WatchedRows, is_spark_frame
from pipelines.increments.source import NOTHING, ConsumerProgress
from pipelines.increments.sql_output import OutputTable
from pipelines.reports.lineage_events import DatasetName
from resources.errors import LakeUnavailable, OutputBusy, OutputRefused
from resources.extras import check_extra
from resources.failpoints import failpoint
from resources.machines.duckdb_connections import connect_duckdb
from resources.quantities import duration

if TYPE_CHECKING:  # it is an extra
    import duckdb

_SCHEMA = "main"
_ROWS = "penstock_rows"
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBOutput:
    """A table in a DuckDB file that increments fill.

    Args:
        path: the file. The first increment creates it.
        table: the table's name. The first increment creates it with the columns of its rows; later ones may bring new
            columns.
        timeout_s: how long to wait for another process that has the file open.
    """

    path: str | Path
    table: str
    timeout_s: float = 60

    def begin(self, consumer: str, source: str) -> "DuckDBWriter":
        """Read the progress of a consumer in the file, for one increment."""
        table = OutputTable(schema=_SCHEMA, name=self.table, consumer=consumer, source=source)
        if not Path(self.path).exists():
            return DuckDBWriter(output=self, table=table)
        with self.open() as connection:
            return DuckDBWriter(output=self, table=table, progress=table.progress(connection))

    @property
    def place(self) -> str:
        """The path of the database, and the table."""
        return f"{self.path} {self.table}"

    def dataset(self) -> DatasetName:
        """DuckDB names the database by its file."""
        path = Path(self.path).absolute()
        return DatasetName(namespace=f"duckdb://{path}", name=f"{path.stem}.{_SCHEMA}.{self.table}")

    @contextmanager
    def open(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        """A connection to the file.

        Raises:
            OutputBusy: another process has it open.
            LakeUnavailable: DuckDB cannot read or write the file.
            ExtraMissing: DuckDB is not installed.
        """
        check_extra("duckdb", "a DuckDBOutput")
        import duckdb  # noqa: PLC0415 - it is an extra

        try:
            with self._connection() as connection:
                yield connection
        except duckdb.IOException as error:
            raise LakeUnavailable(f"DuckDB cannot read or write {self.path}") from error

    def _connection(self) -> "duckdb.DuckDBPyConnection":
        import duckdb  # noqa: PLC0415 - it is an extra

        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return connect_duckdb(self.path)
            except duckdb.IOException as error:
                if "lock" not in str(error).lower():
                    raise
                if time.monotonic() > deadline:
                    raise OutputBusy(
                        f"another process has {self.path} open for more than {duration(self.timeout_s)}"
                    ) from error
            time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBWriter:
    """A consumer's table in a DuckDB file: it lands rows and progress in one transaction."""

    output: DuckDBOutput
    table: OutputTable
    progress: ConsumerProgress = NOTHING

    def commit(self, change: OutputChange) -> None:
        """Write the rows and the progress. An error inside the transaction takes everything back."""
        import duckdb  # noqa: PLC0415 - it is an extra

        rows = WatchedRows(change.rows.toArrow() if is_spark_frame(change.rows) else change.rows)
        with rows.own_error(), self.output.open() as connection:
            failpoint("before output transaction")
            try:
                with _transaction(connection):
                    self.table.prepare(connection, self.progress, change.progress, _sql_types(connection, rows))
                    self.table.remove(connection, change.removed)
                    failpoint("rows removed")
                    self._insert(connection, rows)
                    failpoint("rows inserted")
                failpoint("output transaction committed")
            except duckdb.TransactionException as error:
                raise self.table.overtaken() from error
            except duckdb.IOException:
                raise
            except duckdb.Error as error:
                raise OutputRefused(
                    f"DuckDB does not accept the rows for the table {self.output.table} of {self.output.path}; the "
                    "cause of this error says why"
                ) from error
        failpoint("after output transaction")

    def _insert(self, connection: "duckdb.DuckDBPyConnection", rows: WatchedRows) -> None:
        connection.register(_ROWS, rows.reader())
        connection.execute(f"insert into {self.table.sql_name} by name from {_ROWS}")
        connection.unregister(_ROWS)


@contextmanager
def _transaction(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _sql_types(connection: "duckdb.DuckDBPyConnection", rows: WatchedRows) -> dict[str, str]:
    """The SQL type of each column of the rows."""
    connection.register(_ROWS, pa.Table.from_batches([], rows.schema))
    described = connection.execute(f"describe from {_ROWS}").fetchall()
    connection.unregister(_ROWS)
    return {name: kind for name, kind, *_ in described}
