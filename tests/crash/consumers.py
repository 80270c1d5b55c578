"""Consumers of a table under test: each brings increments into its own output, in processes that a test can kill.

The table has a random history. After any kill, the output must equal a full recomputation from the table.
"""

import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.increments.increment import Increment, Transform, apply_increment
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from resources.printed import printed
from resources.stores.lake import Lake
from tests.crash.drivers import Driver
from tests.failpoints import OF_ALL_INCREMENTS, OF_DELTA_ENTRIES, OF_SPARK_ROWS, OF_SQL_OUTPUTS
from tests.failpoints import STATE_FAILPOINTS as OF_STATE
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory
from tests.pipelines.increments.stored_outputs import StoredOutput, rows_of
from tests.pipelines.increments.table_histories import TableHistory

_ATTEMPTS = 20

FAILPOINTS_OF = {
    "delta": (*OF_ALL_INCREMENTS, *OF_DELTA_ENTRIES),
    "duckdb": (*OF_ALL_INCREMENTS, *OF_SQL_OUTPUTS),
    "postgres": (*OF_ALL_INCREMENTS, *OF_SQL_OUTPUTS),
    "state": (*OF_ALL_INCREMENTS, *OF_STATE, *OF_DELTA_ENTRIES),
    "spark": ("source read", "increment known", "attempt failed", *OF_SPARK_ROWS, *OF_DELTA_ENTRIES),
}
"""The failpoints that a consumer of each kind passes."""


class Consumer(ABC):
    """One consumer of the table `history`. Its processes have their files in the folder `home`."""

    def __init__(self, history: TableHistory, home: Path) -> None:
        self.history, self.home = history, home

    @abstractmethod
    def start(self, kill_at: str = "") -> Driver:
        """Start a process that commits one increment, and ends or stops at `kill_at`. It prints what it did."""

    @abstractmethod
    def complete(self) -> None:
        """Commit one increment in this process."""

    @abstractmethod
    def rows(self) -> list[Any]:
        """The rows of the output, in a fixed order; none if there is no table."""

    @abstractmethod
    def expected(self) -> list[Any]:
        """The rows that the output must have: a full recomputation from the table."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the output, so that the next increment begins with everything."""

    def add_column(self) -> None:
        """Let later rows have one column more, if the consumer writes with Spark: others add columns in each commit."""
        return

    def _new_home(self) -> Path:
        return Path(mkdtemp(prefix="consumer-", dir=self.home))


def values(increment: Increment) -> Any:
    """A transform that keeps the rows as they are."""
    return increment.arrow(["value"])


def consume(source: str, stored: StoredOutput, transform: Transform = values) -> None:
    """Commit one increment, and print what was done."""
    done = apply_increment(source, transform, consumer="c", into=stored.output(), attempts=_ATTEMPTS)
    sys.stdout.write(json.dumps(done))


class RowConsumer(Consumer):
    """Copies the rows of the table into an output."""

    def __init__(self, history: TableHistory, home: Path, stored: StoredOutput) -> None:
        super().__init__(history, home)
        self.stored = stored

    def start(self, kill_at: str = "") -> Driver:
        """See Consumer."""
        return Driver.calling(self._new_home(), consume, (self.history.uri, self.stored), kill_at=kill_at)

    def complete(self) -> None:
        """See Consumer."""
        apply_increment(self.history.table, values, consumer="c", into=self.stored.output())

    def rows(self) -> list[Any]:
        """See Consumer."""
        table = self.stored.table()
        return [] if table is None else rows_of(table)

    def expected(self) -> list[Any]:
        """See Consumer."""
        return self.history.source_rows()

    def remove(self) -> None:
        """See Consumer. A database keeps the table with the progress."""
        self.stored.remove()


def update(lake: Path) -> None:
    """Update the state table, and print what was done."""
    table = DeltaLakeTable.of(Lake(root=str(lake)), "main", "clicks")
    sys.stdout.write(json.dumps(printed(update_state(table, BY_KEY, attempts=_ATTEMPTS))))


class StateConsumer(Consumer):
    """Updates the state table of the table."""

    history: KeyedHistory

    def start(self, kill_at: str = "") -> Driver:
        """See Consumer."""
        return Driver.calling(self._new_home(), update, (Path(self.history.lake.root),), kill_at=kill_at)

    def complete(self) -> None:
        """See Consumer."""
        update_state(self.history.table, BY_KEY)

    def rows(self) -> list[Any]:
        """See Consumer."""
        return self.history.state()

    def expected(self) -> list[Any]:
        """See Consumer."""
        return self.history.expected()

    def remove(self) -> None:
        """See Consumer."""
        shutil.rmtree(state_output(self.history.table).uri, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The JVM of a Spark session of another process. Programs such as Zeppelin share a JVM in the same way."""

    port: int
    token: str

    @classmethod
    def of(cls, session: SparkSession) -> "Gateway":
        """The JVM of this session."""
        parameters = session.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr] # there is a JVM
        return cls(parameters.port, parameters.auth_token)

    def session(self) -> SparkSession:
        """A session of this process in that JVM, with options of its own."""
        from pyspark import SparkContext  # noqa: PLC0415 - imported in the process that is forked
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

        os.environ.update(PYSPARK_GATEWAY_PORT=str(self.port), PYSPARK_GATEWAY_SECRET=self.token)
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
        jvm: Any = gateway.jvm
        context = jvm.org.apache.spark.api.java.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
        return SparkSession(SparkContext(gateway=gateway, jsc=context)).newSession()


@dataclass(frozen=True, slots=True)
class SparkRows:
    """A transform that gives the rows as a DataFrame, with some more columns."""

    session: SparkSession
    columns: Sequence[str]

    def __call__(self, increment: Increment) -> Any:
        """The DataFrame."""
        return increment.spark(self.session, ["value"]).withColumns({name: sf.lit(name) for name in self.columns})


def consume_with_spark(source: str, stored: StoredOutput, gateway: Gateway, columns: Sequence[str]) -> None:
    """Commit one increment whose files Spark writes, and print what was done."""
    consume(source, stored, SparkRows(gateway.session(), columns))


class SparkConsumer(RowConsumer):
    """Copies the rows of the table into a Delta table with Spark. All processes share the JVM of `session`."""

    def __init__(self, history: TableHistory, home: Path, stored: StoredOutput, session: SparkSession) -> None:
        super().__init__(history, home, stored)
        self._session = session
        self._columns: list[str] = []

    def start(self, kill_at: str = "") -> Driver:
        """See Consumer."""
        arguments = (self.history.uri, self.stored, Gateway.of(self._session), list(self._columns))
        return Driver.calling(self._new_home(), consume_with_spark, arguments, kill_at=kill_at)

    def complete(self) -> None:
        """See Consumer."""
        rows = SparkRows(self._session, self._columns)
        apply_increment(self.history.table, rows, consumer="c", into=self.stored.output())

    def add_column(self) -> None:
        """See Consumer."""
        self._columns.append(f"extra_{len(self._columns)}")


def consumer_of(
    kind: str, home: Path, random: Random, *, dsn: str = "", session: SparkSession | None = None
) -> Consumer:
    """A consumer of a kind of FAILPOINTS_OF, whose table is empty. `dsn` is a database, and `session` is for Spark."""
    home.mkdir(parents=True, exist_ok=True)
    lake = home / "lake"
    if kind == "state":
        return StateConsumer(KeyedHistory(lake, random), home)
    history = TableHistory(lake, random)
    if kind == "spark":
        assert session is not None
        return SparkConsumer(history, home, StoredOutput("delta", str(home / "output")), session)
    return RowConsumer(history, home, StoredOutput(kind, dsn if kind == "postgres" else str(home / "output")))
