"""A table in a DuckDB file as the output of increments: rows and progress are in one transaction.

DuckDB lets one process open a file at a time. So the file is only open while the progress is read and while the rows
are committed, and not while they are computed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.increments.output import OutputChange, WatchedRows, is_spark_frame
from pipelines.increments.source import NOTHING, ConsumerProgress
from pipelines.loading.failpoints import failpoint
from resources.errors import IncrementOvertaken, LakeUnavailable, OutputBusy, OutputRefused

_PROGRESS = "penstock_increments"
_CREATE_PROGRESS = f"""create table if not exists {_PROGRESS} (
    consumer varchar, source varchar, version bigint, fingerprint bigint, primary key (consumer, source))"""
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
        """See IncrementOutput."""
        writer = DuckDBWriter(output=self, consumer=consumer, source=source)
        if not Path(self.path).exists():
            return writer
        with self.open() as connection:
            return replace(writer, progress=writer.stored(connection))

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the file.

        Raises:
            OutputBusy: another process has it open.
            LakeUnavailable: DuckDB cannot read or write the file.
        """
        try:
            with self._connection() as connection:
                yield connection
        except duckdb.IOException as error:
            raise LakeUnavailable(f"DuckDB cannot read or write {self.path}") from error

    def _connection(self) -> duckdb.DuckDBPyConnection:
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return duckdb.connect(self.path)
            except duckdb.IOException as error:
                if "lock" not in str(error).lower():
                    raise
                if time.monotonic() > deadline:
                    raise OutputBusy(
                        f"another process has {self.path} open for more than {self.timeout_s:.0f} s"
                    ) from error
            time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBWriter:
    """See OutputWriter."""

    output: DuckDBOutput
    consumer: str
    source: str
    progress: ConsumerProgress = NOTHING

    def stored(self, connection: duckdb.DuckDBPyConnection) -> ConsumerProgress:
        """The progress in the file."""
        connection.execute(_CREATE_PROGRESS)
        row = connection.execute(
            f"select version, fingerprint from {_PROGRESS} where consumer = ? and source = ?",  # noqa: S608 - a constant
            [self.consumer, self.source],
        ).fetchone()
        return ConsumerProgress(version=row[0], fingerprint=row[1]) if row else NOTHING

    def commit(self, change: OutputChange) -> None:
        """See OutputWriter. An error inside the transaction takes everything back."""
        rows = WatchedRows(change.rows.toArrow() if is_spark_frame(change.rows) else change.rows)
        with self.output.open() as connection:
            failpoint("before output transaction")
            try:
                with _transaction(connection):
                    self._move(connection, change.progress)
                    failpoint("progress moved")
                    self._write(connection, rows, change.removed)
                    failpoint("rows inserted")
            except (duckdb.TransactionException, duckdb.ConstraintException) as error:
                raise self._overtaken() from error
            except duckdb.Error as error:
                if rows.failure is not None:  # the transform, or the source, failed
                    raise rows.failure from rows.failure.__cause__
                if isinstance(error, duckdb.IOException):
                    raise
                raise OutputRefused(
                    f"DuckDB does not accept the rows for the table {self.output.table} of {self.output.path}; the "
                    "cause of this error says why"
                ) from error
        failpoint("after output transaction")

    def _move(self, connection: duckdb.DuckDBPyConnection, progress: ConsumerProgress) -> None:
        """Move the progress from the one that was read.

        Raises:
            IncrementOvertaken: it is another one now.
        """
        if self.stored(connection) != self.progress:
            raise self._overtaken()
        connection.execute(
            f"insert or replace into {_PROGRESS} values (?, ?, ?, ?)",  # noqa: S608 - a constant
            [self.consumer, self.source, progress.version, progress.fingerprint],
        )

    def _write(self, connection: duckdb.DuckDBPyConnection, rows: WatchedRows, removed: str) -> None:
        table, reader = _quoted(self.output.table), rows.reader()
        connection.register("penstock_rows", pa.Table.from_batches([], rows.schema))
        connection.execute(f"create table if not exists {table} as from penstock_rows")
        self._add_columns(connection, table)
        connection.unregister("penstock_rows")
        if removed:
            connection.execute(f"delete from {table} where {removed}")  # noqa: S608 - our condition, or the user's
        connection.register("penstock_rows", reader)
        connection.execute(f"insert into {table} by name from penstock_rows")
        connection.unregister("penstock_rows")

    def _add_columns(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        """Add the columns of the rows that the table lacks."""
        stored = {row[0] for row in connection.execute(f"describe {table}").fetchall()}
        for name, kind, *_ in connection.execute("describe from penstock_rows").fetchall():
            if name not in stored:
                connection.execute(f"alter table {table} add column {_quoted(name)} {kind}")

    def _overtaken(self) -> IncrementOvertaken:
        return IncrementOvertaken(
            f"another process of the consumer {self.consumer} has committed an increment of {self.source} to "
            f"{self.output.path} first; run again"
        )


@contextmanager
def _transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
