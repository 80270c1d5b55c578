"""A Delta table as the output of increments: rows and progress are in one entry of its log.

The progress is the version of a `txn` whose appId names consumer and source. deltalake refuses an entry with a `txn` if
a newer entry, which its handle has not seen, has the same appId. So the entry is written on the handle from which the
progress was read, and that handle is never refreshed: of two processes of a consumer one lands. A fresh handle would
accept any version, also a lower one.

A further `txn` has a number of the writer's own. If the answer to a write is lost, this number finds the commit. The
progress does not: another process may have committed the same increment (fault E19).
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, SchemaMismatchError

from kafka_io.errors import Where, system_reason
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.delta.open_version import DeltaVersion
from pipelines.delta.write_options import WRITING
from pipelines.delta.writes import grow_maps
from pipelines.increments.output import OutputChange, TableWrite, WatchedRows, is_spark_frame
from pipelines.increments.source import NOTHING, ConsumerProgress
from pipelines.increments.spark_frames import SparkFiles
from pipelines.ledger.ledger import SEQUENCE
from pipelines.table.grown_maps import have_other_maps, with_all_members, with_maps_of
from pipelines.table.open_table import OpenTable
from resources.errors import CommitUnknown, IncrementOvertaken, LakeRefused, LakeUnavailable, LogTorn, OutputRefused
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.lake import Lake, lake_errors
from resources.stores.store_errors import is_refusal, reason_of

SUMMARY = "penstock.increment"
"""The key of an increment's facts in the commit info of the output."""
_TXN_EXPIRY = "delta.setTransactionRetentionDuration"
_RESTORE = "RESTORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOutput:
    """A Delta table that increments fill.

    Args:
        uri: the table. The first increment creates it with the columns of its rows; later ones may bring new columns.
        options: the options of the table's store.
        partition_by: the partition columns, if the table is created.
        configuration: the properties of the table, if it is created.
        personal: columns with personal values, of which the log has no bounds. So has a column with the name of a
            personal one of the source.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    personal: Sequence[str] = ()

    def begin(self, consumer: str, source: str) -> "DeltaWriter":
        """Read the progress of a consumer in the table, for one increment."""
        writer = DeltaWriter(output=self, consumer=consumer, source=source, handle=self.open())
        return replace(writer, progress=writer.stored(writer.handle))

    def open(self) -> DeltaTable | None:
        """The newest version of the table; None if there is no table.

        Raises:
            LakeUnavailable: the store does not answer, or the log is damaged.
        """
        return self.lake.open(self.uri)

    @property
    def place(self) -> str:
        """The URI of the table."""
        return self.uri

    @property
    def lake(self) -> Lake:
        """The store of the table."""
        return Lake.of_table(self.uri, self.options)

    @property
    def table(self) -> DeltaLakeTable:
        """The table, for all that needs no progress."""
        return DeltaLakeTable(lake=self.lake, uri=self.uri, where=Where())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaWriter:
    """Writes into a Delta table. The progress was read from the version `handle`; None if there was no table."""

    output: DeltaOutput
    consumer: str
    source: str
    handle: DeltaTable | None
    progress: ConsumerProgress = NOTHING
    number: int = field(default_factory=lambda: secrets.randbits(63))

    @property
    def opened(self) -> OpenTable | None:
        """The version from which the progress was read, open; None if there was no table."""
        return None if self.handle is None else DeltaVersion.of_handle(self.handle)

    @property
    def app_id(self) -> str:
        """The appId of the progress."""
        return f"penstock/increments/{self.consumer}/{self.source}"

    def stored(self, handle: DeltaTable | None) -> ConsumerProgress:
        """The progress in a version of the table.

        Raises:
            OutputRefused: somebody restored an old version, so the rows of the progress may be lost.
        """
        if handle is None:
            return NOTHING
        self._check_keeps_progress(handle)
        version = handle.transaction_version(self.app_id)
        if version is None:
            return NOTHING
        self._check_not_restored(handle)
        return ConsumerProgress(version=version, fingerprint=handle.transaction_version(f"{self.app_id}/commit") or 0)

    def _check_keeps_progress(self, handle: DeltaTable) -> None:
        if handle.transaction_version(SEQUENCE) is not None:
            raise OutputRefused(f"the table {self.output.uri} belongs to a topic, whose loads fill it")
        expiry = handle.metadata().configuration.get(_TXN_EXPIRY)
        if expiry:
            raise OutputRefused(
                f"the table {self.output.uri} sets {_TXN_EXPIRY} = {expiry}, so the progress in it would expire; "
                "remove the property"
            )

    def _check_not_restored(self, handle: DeltaTable) -> None:
        """Check that no RESTORE is newer than the last increment. It takes back rows, but not the progress."""
        try:
            for commit in self.output.table.commits(handle.version()):
                if self.app_id in commit.transactions:
                    return
                if commit.operation == _RESTORE:
                    raise OutputRefused(
                        f"version {commit.version} of the table {self.output.uri} restored an old version of its rows, "
                        f"but not the progress of the consumer {self.consumer}; restore the version before it, or "
                        "build the output again"
                    )
        except LogTorn:
            # Delta has deleted old entries. The last increment was before them, and so was every RESTORE among them.
            return

    def commit(self, change: OutputChange) -> None:
        """Write the rows and the progress in one commit of the table."""
        write = self._write_of(change)
        before = -1 if self.handle is None else self.handle.version()  # a write moves the handle on
        try:
            with lake_errors(self.output.uri):
                handle = self._handle(write.schema())
            failpoint("before increment entry")
            write.write(handle, self.properties(change))
            failpoint("after increment entry")
        except (DeltaError, OSError, LakeUnavailable, OutputRefused) as error:
            if write.failure is not None:  # the transform, or the source, failed: nothing was written
                raise write.failure from write.failure.__cause__
            if isinstance(error, OutputRefused):
                raise
            self._settle(error, before)
        # The commit before this one has bounds of personal columns, or wrong ones, if its writer was killed here.
        self.output.table.scrub({*self.output.personal, *change.personal}, after=before - 1)
        self._sync(after=before)

    def _write_of(self, change: OutputChange) -> TableWrite:
        if isinstance(change.rows, TableWrite):
            return change.rows
        return _SparkWrite(self, change) if is_spark_frame(change.rows) else _ArrowWrite(self, change)

    def mark(self, name: str) -> int | None:
        """The number that the newest increment has left under this name."""
        return None if self.handle is None else self.handle.transaction_version(f"{self.app_id}/{name}")

    def _handle(self, schema: Any) -> DeltaTable:
        """The handle to write on. A table that does not exist is created.

        Raises:
            IncrementOvertaken: another process has created it and committed.
        """
        handle = self.handle
        if handle is None:
            handle = self.output.lake.create(
                self.output.uri,
                schema,
                partition_by=list(self.output.partition_by),
                configuration=self.output.configuration,
            )
            failpoint("output created")
        self.check_unchanged(handle)
        return handle

    def check_unchanged(self, handle: DeltaTable) -> None:
        """Check that the progress is what it was, after another change of the table.

        Raises:
            IncrementOvertaken: it is not.
        """
        if self.stored(handle) != self.progress:
            raise self._overtaken()

    def grow_maps(self, handle: DeltaTable, columns: pa.Schema) -> None:
        """Give the table these columns, and write files again that deltalake could not read; see grown_maps.py.

        Raises:
            IncrementOvertaken: another process has committed an increment.
        """
        present = pa.schema(handle.schema().to_arrow())
        if have_other_maps(present, columns):
            handle.alter.add_columns([Field.from_arrow(column) for column in columns])
            failpoint("output columns added")
            self.check_unchanged(handle)
        grow_maps(handle, self.output.options)

    def properties(self, change: OutputChange) -> CommitProperties:
        """The progress and the facts, for the entry of the change."""
        progress = change.progress
        return CommitProperties(
            custom_metadata={SUMMARY: json.dumps(dict(change.summary))},
            app_transactions=[
                Transaction(self.app_id, progress.version),
                Transaction(f"{self.app_id}/commit", progress.fingerprint),
                Transaction(f"{self.app_id}/writer", self.number),
                *(Transaction(f"{self.app_id}/{name}", number) for name, number in change.marks.items()),
            ],
        )

    def _settle(self, error: Exception, before: int) -> None:
        """Find out whether a write that failed has landed after all; it may have, if its answer was lost.

        Raises:
            IncrementOvertaken: another process has committed an increment.
            CommitUnknown: the output does not answer.
            LakeUnavailable: the write did not land.
        """
        failpoint("increment write failed")
        try:
            newest = self.output.open()
            if newest is not None and self._has_landed(newest, before):
                return
            stored = self.stored(newest)
        except LakeUnavailable as unreadable:
            raise CommitUnknown(
                f"the commit failed ({reason_of(error)}), and the output {self.output.uri} cannot be read to see "
                "whether it landed; run again"
            ) from unreadable
        if stored != self.progress or isinstance(error, CommitFailedError):
            raise self._overtaken() from error
        if isinstance(error, LakeUnavailable):
            raise error
        refused = isinstance(error, SchemaMismatchError | DeltaProtocolError) or is_refusal(error)
        kind = LakeRefused if refused else LakeUnavailable
        raise kind(f"the output {self.output.uri} cannot be written: {reason_of(error)}") from error

    def _has_landed(self, newest: DeltaTable, before: int) -> bool:
        """Whether one of the commits after a version is the writer's own."""
        commits = self.output.table.commits(newest.version(), after=before)
        return any(commit.transactions.get(f"{self.app_id}/writer") == self.number for commit in commits)

    def _overtaken(self) -> IncrementOvertaken:
        return IncrementOvertaken(
            f"another writer of the output {self.output.uri} was first, for example another process of the consumer "
            f"{self.consumer}; run again"
        )

    def _sync(self, *, after: int) -> None:
        """Force the files of the newest commits to disk, so that a loss of power does not undo a reported increment.

        Raises:
            CommitUnknown: that failed.
        """
        handle = self.output.open()
        if durable.local_path(self.output.uri) is None or handle is None:
            return
        try:
            for commit in self.output.table.commits(handle.version(), after=after):
                for path in commit.added:
                    durable.sync_file(self.output.uri, path)
        except OSError as error:
            raise CommitUnknown(
                f"the increment landed, but could not be forced to disk: {system_reason(error)}"
            ) from error
        failpoint("increment files synced")
        self.output.table.sync(after=after)
        failpoint("increment synced")


class _ArrowWrite:
    """Writes a stream of Arrow batches."""

    def __init__(self, writer: DeltaWriter, change: OutputChange) -> None:
        self._writer, self._change, self._rows = writer, change, WatchedRows(change.rows)

    @property
    def failure(self) -> BaseException | None:
        """The error of the stream itself."""
        return self._rows.failure

    def schema(self) -> Any:
        """The columns of the rows."""
        return self._rows.schema

    def write(self, handle: DeltaTable, properties: CommitProperties) -> None:
        """Append the rows, or put them in place of those that match the scope."""
        write_rows(self._writer, handle, self._rows.reader(), self._change, properties)


def write_rows(
    writer: DeltaWriter,
    handle: DeltaTable,
    rows: pa.RecordBatchReader,
    change: OutputChange,
    properties: CommitProperties,
) -> None:
    """Write a stream of rows in one commit: append it, or replace the rows that match the scope of the change.

    Raises:
        OutputRefused: rows do not match the scope.
        DeltaError: the commit was refused, or failed.
    """
    columns = with_all_members(pa.schema(handle.schema().to_arrow()), rows.schema)
    if change.removed:
        writer.grow_maps(handle, columns)
    rows = with_maps_of(rows, columns)
    replacing: dict[str, Any] = {"mode": "overwrite", "predicate": change.scope} if change.removed else {}
    try:
        write_deltalake(
            handle,
            rows,
            schema_mode="merge",
            writer_properties=WRITING,
            commit_properties=properties,
            **(replacing or {"mode": "append"}),
        )
    except DeltaError as error:
        if "failed validation check" in str(error):
            raise OutputRefused(
                "the transform gave rows that do not match the condition of the removed rows: with `removing`, an "
                "increment replaces all rows that match the condition, and only those"
            ) from error
        raise
    except Exception as error:
        if type(error) is not Exception:
            raise
        # deltalake has no type of its own for values that it cannot cast to the column of the table.
        raise OutputRefused(
            "a column of the rows has another type than in the output, and its values do not fit"
        ) from error


class _SparkWrite:
    """Lets Spark write files. The driver adds them to the table, or copies their rows in place of removed ones."""

    failure: BaseException | None = None

    def __init__(self, writer: DeltaWriter, change: OutputChange) -> None:
        self._writer, self._change = writer, change
        self._files = SparkFiles(frame=change.rows, uri=writer.output.uri, options=writer.output.options)

    def schema(self) -> Any:
        """The columns of the DataFrame."""
        return self._files.schema()

    def write(self, handle: DeltaTable, properties: CommitProperties) -> None:
        """Write the rows of a Spark DataFrame.

        Raises:
            OutputRefused: a column has another type than in the table. deltalake does not look into the files.
        """
        missing = self._files.missing_columns(handle)
        if missing:
            handle.alter.add_columns(missing)
            failpoint("output columns added")
            self._writer.check_unchanged(handle)
        if self._change.removed:
            with self._files.staged() as rows:
                write_rows(self._writer, handle, rows, self._change, properties)
                failpoint("staged rows committed")
            return
        columns = list(handle.metadata().partition_columns)
        handle.create_write_transaction(
            self._files.write(columns),
            mode="append",
            schema=handle.schema(),
            partition_by=columns,
            commit_properties=properties,
        )
