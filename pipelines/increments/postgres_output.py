"""A table in a Postgres database as the output of increments: rows and progress are in one transaction.

The progress is a row. An increment moves it with one statement, on condition that it is still the one that was read, as
the first step of its transaction. Of two processes of a consumer, the second waits for the lock of that row, and then
finds another progress, also at the level READ COMMITTED. So this needs neither SERIALIZABLE, which would refuse
increments of other consumers, nor advisory locks, which other programs do not know. Different consumers do not wait for
each other, unless one creates the table or adds columns.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from pipelines.increments.output import OutputChange, WatchedRows, is_spark_frame
from pipelines.increments.postgres_columns import csv_rows, sql_types
from pipelines.increments.source import NOTHING, ConsumerProgress
from pipelines.increments.sql_output import OutputTable, quoted
from pipelines.reports.lineage_events import DatasetName
from resources.errors import (
    CommitUnknown,
    IncrementOvertaken,
    LakeUnavailable,
    LoadError,
    OutputBusy,
    OutputRefused,
)
from resources.failpoints import failpoint

# A session whose other end has vanished ends after a minute. Until then it holds the lock of the progress.
_KEEPALIVES = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
_ERRORS: tuple[tuple[type[psycopg.Error], type[LoadError], str], ...] = (
    (errors.LockNotAvailable, OutputBusy, "another process holds a lock on the output"),
    (psycopg.OperationalError, LakeUnavailable, "Postgres does not answer, or cannot continue"),
    (psycopg.Error, OutputRefused, "Postgres does not accept the increment"),
)
# `create table if not exists` looks for the table before it writes to the catalog. Another process that creates the
# table may commit between both: then the name is taken in pg_class, in pg_type, or in the unique index of one of them.
_CREATION_RACES = (errors.DuplicateTable, errors.DuplicateObject, errors.UniqueViolation)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOutput:
    """A table in a Postgres database that increments fill.

    Args:
        dsn: the connection string of libpq. What it leaves out comes from libpq's variables (PGHOST, PGPASSWORD) and
            files.
        table: the table's name. The first increment creates it with the columns of its rows; later ones may bring new
            columns.
        schema: the schema of the table, which must exist. The table with the progress is in the same schema.
        timeout_s: how long to wait for a connection, and for the lock of another process.
    """

    dsn: str = field(default="", repr=False)
    table: str
    schema: str = "public"
    timeout_s: float = 60

    def begin(self, consumer: str, source: str) -> "PostgresWriter":
        """Read the progress of a consumer in the database, for one increment."""
        table = OutputTable(schema=self.schema, name=self.table, consumer=consumer, source=source)
        with self.open() as connection:
            return PostgresWriter(output=self, table=table, progress=table.progress(connection))

    @property
    def place(self) -> str:
        """The schema and the table. The address of the server may contain a secret."""
        return f"{self.schema} {self.table}"

    def dataset(self) -> DatasetName:
        """Host, port and database may come from variables, so the open connection is asked."""
        with self.open() as connection:
            server = connection.info
            return DatasetName(
                namespace=f"postgres://{server.host}:{server.port}", name=f"{server.dbname}.{self.schema}.{self.table}"
            )

    @contextmanager
    def open(self) -> Iterator[psycopg.Connection]:
        """A connection outside of a transaction.

        Raises:
            OutputBusy: another process holds a lock for too long.
            LakeUnavailable: Postgres does not answer, or cannot continue.
            OutputRefused: Postgres does not accept a statement.
        """
        settings = {"connect_timeout": str(max(2, int(self.timeout_s))), "client_encoding": "utf8", **_KEEPALIVES}
        try:
            dsn = make_conninfo(self.dsn, **settings)
            with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                yield connection
        except psycopg.Error as error:
            kind, what = next((kind, what) for family, kind, what in _ERRORS if isinstance(error, family))
            raise kind(f"{what}: {_reason(error)} (the table {self.table} in the schema {self.schema})") from error

    @property
    def transaction_settings(self) -> Mapping[str, str]:
        """Settings of Postgres for a transaction."""
        return {
            "lock_timeout": f"{int(self.timeout_s * 1000)}ms",
            "standard_conforming_strings": "on",  # the conditions on rows have texts of standard SQL
            **{f"tcp_{name}": value for name, value in _KEEPALIVES.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresWriter:
    """A consumer's table in a Postgres database: it lands rows and progress in one transaction."""

    output: PostgresOutput
    table: OutputTable
    progress: ConsumerProgress = NOTHING

    def commit(self, change: OutputChange) -> None:
        """Write the rows and the progress. An error inside the transaction takes everything back."""
        rows = WatchedRows(change.rows.toArrow() if is_spark_frame(change.rows) else change.rows)
        types, own_id = sql_types(rows.schema), None
        with rows.own_error(), self.output.open() as connection:
            failpoint("before output transaction")
            try:
                with self._transaction(connection):
                    self._prepare(connection, change.progress, types)
                    self.table.remove(connection, change.removed)
                    failpoint("rows removed")
                    self._copy(connection, rows)
                    [own_id] = connection.execute("select txid_current()").fetchone() or [None]
                    failpoint("rows inserted")
                failpoint("output transaction committed")
            except psycopg.OperationalError as error:
                if not connection.closed:  # the transaction has ended without effect
                    raise
                self._settle(change.progress, own_id, error)
        failpoint("after output transaction")

    @contextmanager
    def _transaction(self, connection: psycopg.Connection, *, rollback: bool = False) -> Iterator[None]:
        with connection.transaction(force_rollback=rollback):
            for name, value in self.output.transaction_settings.items():
                connection.execute("select set_config($1, $2, true)", [name, value])
            yield

    def _prepare(self, connection: psycopg.Connection, progress: ConsumerProgress, types: Mapping[str, str]) -> None:
        """Move the progress, and give the table all columns.

        Raises:
            IncrementOvertaken: the progress is another one now.
            OutputBusy: another process creates the same table, or a type has the name of the table.
        """
        try:
            self.table.prepare(connection, self.progress, progress, types)
        except _CREATION_RACES as error:
            raise OutputBusy(
                f"another process creates the table {self.table.name}, or the one with its progress: {_reason(error)}; "
                "run again"
            ) from error

    def _copy(self, connection: psycopg.Connection, rows: WatchedRows) -> None:
        columns = ", ".join(map(quoted, rows.schema.names))
        statement = f"copy {self.table.sql_name} ({columns}) from stdin (format csv)"
        with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for batch in rows.reader():
                copy.write(csv_rows(batch))

    def _settle(self, progress: ConsumerProgress, own_id: int | None, error: psycopg.Error) -> None:
        """Find out whether a transaction whose connection broke has landed.

        The same move of the progress is tried and taken back. It waits for the lost session, which may still be at work
        on its COMMIT. If the move succeeds, the lost session has ended without effect. Otherwise the id of the
        transaction tells whether it has moved the progress, because another process may have committed the same
        increment (fault E19). Without an id, COMMIT was not sent.

        Raises:
            IncrementOvertaken: another process has committed an increment.
            CommitUnknown: Postgres does not answer.
            LakeUnavailable: the transaction did not land.
        """
        try:
            with self.output.open() as connection:
                try:
                    with self._transaction(connection, rollback=True):
                        self.table.move_progress(connection, self.progress, progress)
                except IncrementOvertaken:
                    status = own_id and connection.execute("select txid_status($1::bigint)", [own_id]).fetchone()
                    if status == ("committed",):
                        return
                    raise
        except (LakeUnavailable, OutputBusy, OutputRefused) as unreadable:
            raise CommitUnknown(
                "the connection broke, and Postgres does not tell whether the increment landed in the table "
                f"{self.table.name}; run again"
            ) from unreadable
        raise LakeUnavailable("the connection to Postgres broke; nothing of the increment has landed") from error


def _reason(error: psycopg.Error) -> str:
    """The first line of an error of Postgres, without its hints."""
    return str(error).partition("\n")[0]
