"""The two tables of an output in DuckDB or Postgres: one has the rows, the other the progress of its consumers.

The statements are SQL that both databases understand; both take parameters as `$1`. A connection is one of `duckdb`, or
one of `psycopg` with raw cursors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.increments.source import NOTHING, ConsumerProgress
from resources.errors import IncrementOvertaken
from resources.failpoints import failpoint

_PROGRESS = "penstock_increments"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTable:
    """A table in a schema of a database, as one consumer of one source sees it."""

    schema: str
    name: str
    consumer: str
    source: str

    @property
    def sql_name(self) -> str:
        """The name of the table in SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def progress(self, connection: Any) -> ConsumerProgress:
        """The progress of the consumer; NOTHING if the table does not exist, because its rows are not there either."""
        if not self._exists(connection) or not self._columns(connection, _PROGRESS):
            return NOTHING
        rows = connection.execute(
            f"select version, fingerprint from {self._progress_table} "  # noqa: S608 - a quoted name
            "where table_name = $1 and consumer = $2 and source = $3",
            [self.name, self.consumer, self.source],
        ).fetchall()
        return ConsumerProgress(version=rows[0][0], fingerprint=rows[0][1]) if rows else NOTHING

    def prepare(
        self, connection: Any, since: ConsumerProgress, progress: ConsumerProgress, types: Mapping[str, str]
    ) -> None:
        """Begin a transaction with rows of these columns: see `move_progress` and `add_columns`."""
        self.move_progress(connection, since, progress)
        failpoint("progress moved")
        self.add_columns(connection, types)
        failpoint("output columns added")

    def move_progress(self, connection: Any, since: ConsumerProgress, progress: ConsumerProgress) -> None:
        """Move the progress of the consumer, in a transaction.

        If the table was removed, the progress of all its consumers is removed first: they build it again.

        Raises:
            IncrementOvertaken: the progress is not `since`.
        """
        if not self._columns(connection, _PROGRESS):
            connection.execute(
                f"create table if not exists {self._progress_table} (table_name text, consumer text, source text, "
                "version bigint, fingerprint bigint, primary key (table_name, consumer, source))"
            )
        elif not self._exists(connection):
            connection.execute(f"delete from {self._progress_table} where table_name = $1", [self.name])  # noqa: S608
        if not self._put(connection, since, progress):
            raise self.overtaken()

    def _put(self, connection: Any, since: ConsumerProgress, progress: ConsumerProgress) -> bool:
        """Put the progress in the place of `since` in one statement; returns whether it was there.

        The primary key and `where` exclude that two processes of a consumer both do it.
        """
        row = [self.name, self.consumer, self.source, progress.version, progress.fingerprint]
        if since == NOTHING:
            statement = "insert into {} values ($1, $2, $3, $4, $5) on conflict do nothing returning version"
        else:
            statement = (
                "update {} set version = $4, fingerprint = $5 where table_name = $1 and consumer = $2 and source = $3 "
                "and version = $6 and fingerprint = $7 returning version"
            )
            row += [since.version, since.fingerprint]
        return bool(connection.execute(statement.format(self._progress_table), row).fetchall())

    def add_columns(self, connection: Any, types: Mapping[str, str]) -> None:
        """Create the table with these columns, or add those that it lacks. `types` are names of SQL types."""
        if not self._exists(connection):
            columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
            connection.execute(f"create table if not exists {self.sql_name} ({columns})")
        stored = self._columns(connection, self.name)
        for name, kind in types.items():
            if name not in stored:
                connection.execute(f"alter table {self.sql_name} add column if not exists {quoted(name)} {kind}")

    def remove(self, connection: Any, condition: str) -> None:
        """Delete the rows that match an SQL condition; an empty one matches none."""
        if condition:
            connection.execute(f"delete from {self.sql_name} where {condition}")  # noqa: S608 - ours, or the user's

    def overtaken(self) -> IncrementOvertaken:
        """The error for a consumer that finds another progress."""
        return IncrementOvertaken(
            f"another process of the consumer {self.consumer} has committed an increment of {self.source} to the table "
            f"{self.name} first; run again"
        )

    @property
    def _progress_table(self) -> str:
        return f"{quoted(self.schema)}.{_PROGRESS}"

    def _exists(self, connection: Any) -> bool:
        return bool(self._columns(connection, self.name))

    def _columns(self, connection: Any, table: str) -> set[str]:
        """The names of a table's columns; empty if there is no such table."""
        query = "select column_name from information_schema.columns where table_schema = $1 and table_name = $2"
        return {row[0] for row in connection.execute(query, [self.schema, table]).fetchall()}


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
