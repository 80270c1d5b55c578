"""Increments of a topic's table, each with exactly one effect on an output.

    with increments("lake/main/clicks", consumer="sizes", into=DeltaOutput(uri="sizes")) as increment:
        increment.commit(transform(increment.arrow()))

The increment leads from the version of the source that is in the output to the newest one. Its rows are read at exactly
that version, and the version becomes the progress in the same commit as the rows. If a process is killed, or two
processes of a consumer run at once, the rows of an increment are in the output once or not at all.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from pipelines.formats.tables import table_at
from pipelines.increments.attempts import MAX_ATTEMPTS, with_attempts
from pipelines.increments.difference import LedgerDifference, Spans
from pipelines.increments.output import IncrementOutput, OutputChange, OutputWriter, PlacedOutput
from pipelines.increments.rows import SpanRows, all_rows
from pipelines.increments.source import NOTHING, SourceVersion
from pipelines.increments.source_columns import SOURCE_COLUMNS, of_source_rows
from pipelines.reports.table_notes import SeenConsumer, TableNotes, now
from pipelines.table.lake_table import LakeTable
from resources.errors import LakeUnavailable, LogTorn, OutputRefused, RowsReplaced, RowsRetired, SourceFilesCleaned
from resources.failpoints import failpoint

if TYPE_CHECKING:  # Spark is imported by those who have a session
    import pyarrow.dataset as pads
    from pyspark.sql import DataFrame, SparkSession

WriterT = TypeVar("WriterT", bound=OutputWriter)
OnReplaced = Literal["apply", "fail", "ignore"]
"""The choice for rows that a consumer has seen, and that the source has replaced or removed since."""
OnRetired = Literal["fail", "ignore"]
"""The choice for rows that were retired before the consumer has seen them."""


@dataclass(slots=True, kw_only=True)
class Increment:
    """The difference between a source and an output. `commit` brings the effect of this difference into the output.

    Args:
        source: the version of the source that the increment leads to.
        writer: the output, as it was when the increment began.
        consumer: the consumer's name.
        on_replaced: what happens with replaced and removed rows.
        on_retired: what happens if rows are gone that the consumer has not seen.
        removing: gives the SQL condition for the rows of the output to replace; None: those of the removed source rows.
        difference: what is different from the version that the output has, and matters to the consumer.
    """

    source: SourceVersion
    writer: OutputWriter
    consumer: str
    on_replaced: OnReplaced
    on_retired: OnRetired = "fail"
    removing: "Callable[[Increment], str] | None" = None
    difference: LedgerDifference = field(default_factory=LedgerDifference)
    committed: bool = False

    def __bool__(self) -> bool:
        return bool(self.difference.added or self.difference.removed)

    @property
    def since(self) -> int:
        """The version of the source that is in the output; -1 for a new consumer."""
        return self.writer.progress.version

    @property
    def version(self) -> int:
        """The version of the source that the increment leads to."""
        return self.source.snapshot.version

    def arrow(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The new rows, and those that are there in place of others, in batches.

        They have the columns of the table, or only `columns`, and those of SOURCE_COLUMNS.
        """
        return self._rows(self.difference.added).reader(columns)

    def spark(self, session: "SparkSession", columns: Sequence[str] | None = None) -> "DataFrame":
        """The same rows as a DataFrame. Its rows are read when Spark runs a job."""
        from pipelines.increments.spark_frames import spark_frame  # noqa: PLC0415 - only those with Spark need it

        return spark_frame(self._rows(self.difference.added), session, columns)

    def removed(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The rows of the old version that are not in the new one, for transforms that take back their effect.

        They have the columns of the new version, unless a raw table became a typed one since.

        Raises:
            SourceFilesCleaned: housekeeping has deleted files of the old version.
        """
        rows = self._rows(self.difference.removed)
        if self.difference.removed:
            rows = self._as_of_since(rows)
        schema = rows.reader(columns).schema
        return pa.RecordBatchReader.from_batches(schema, self._removed_batches(rows, columns))

    def _as_of_since(self, rows: SpanRows) -> SpanRows:
        """The same rows in the old version of the table."""
        try:
            opened = self.source.table.opened_at(self.since)
        except LogTorn as error:  # its snapshot has expired
            raise self._source_cleaned() from error
        newer = rows.opened if opened.layout.is_typed == rows.layout.is_typed else None
        return replace(rows, opened=opened, layout=opened.layout, newer=newer)

    def _removed_batches(self, rows: SpanRows, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        try:
            yield from rows.reader(columns)
        except LakeUnavailable as error:
            # Only a missing file is the work of housekeeping (fault N46). Any other error of a store may pass.
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise self._source_cleaned() from error

    def _source_cleaned(self) -> SourceFilesCleaned:
        return SourceFilesCleaned(
            f"version {self.since} of the table {self.source.table.uri} has lost files, so its removed rows cannot "
            "be read: `penstock clean` keeps them for some time, and the increment comes after that time",
            self.source.table.where,
        )

    def dataset(self) -> "pads.Dataset":
        """All rows of the source at the version of the increment, for transforms that compute groups of rows again."""
        snapshot = self.source.snapshot
        options = self.source.table.lake.options
        return all_rows(snapshot.opened, options, snapshot.layout.partition_column)

    def commit(self, rows: Any) -> None:
        """Commit the rows of the transform as the effect of the increment. An empty increment changes nothing.

        Args:
            rows: a table, a batch or a stream of Arrow, whatever Arrow can read as a stream (Polars, DuckDB), or a
                DataFrame of Spark.

        Raises:
            IncrementOvertaken: another process of the consumer was first; run again.
            OutputRefused: the output does not accept the rows, for example without the columns of SOURCE_COLUMNS.
            LoadError: the source cannot be read, or the output cannot be written.
        """
        if self.committed:
            raise ValueError("the increment is committed already; begin another one")
        if not self:
            return
        removed, scope = self._conditions()
        # Now, and not when rows are replaced some day: then they are in the output and nobody can find them
        # (fault N43).
        if (self.on_replaced == "apply" or self.difference.erased) and self.removing is None:
            _check_has_source_columns(rows)
        change = OutputChange(
            rows=rows,
            removed=removed,
            scope=scope,
            progress=self.source.progress,
            summary=self.summary(),
            personal=self.source.snapshot.layout.personal,
        )
        self.writer.commit(change)
        self.committed = True

    def _conditions(self) -> tuple[str, str]:
        """The conditions for the rows of the output to remove, and for those that are removed or added."""
        if self.removing is not None:
            condition = self.removing(self)
            return condition, condition
        if not self.difference.removed:
            return "", ""
        removed = of_source_rows(self.source.name, self.difference.removed)
        both = (*self.difference.removed, *self.difference.added)
        return removed, of_source_rows(self.source.name, both)

    def summary(self) -> Mapping[str, Any]:
        """The versions of the source, and how many offsets are new, restarted, replaced, taken back and erased."""
        kinds = ("new", "restarted", "replaced", "taken_back", "erased")
        return {
            "consumer": self.consumer,
            "source": self.source.name if self.source.snapshot.entry else None,
            "since": self.since,
            "version": self.version,
            **{kind: sum(span.offsets.size for span in getattr(self.difference, kind)) for kind in kinds},
        }

    def _rows(self, spans: Spans) -> SpanRows:
        snapshot = self.source.snapshot
        return SpanRows(
            lake=self.source.table.lake,
            opened=snapshot.opened,
            layout=snapshot.layout,
            source=self.source.name if spans else "",
            spans=spans,
        )


@contextmanager
def increments(
    table: LakeTable | str,
    *,
    consumer: str,
    into: IncrementOutput,
    on_replaced: OnReplaced = "apply",
    on_retired: OnRetired = "fail",
    removing: Callable[[Increment], str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Iterator[Increment]:
    """The increment of a table that a consumer has not committed yet. If it is not committed, it comes again.

    Args:
        table: the table of a topic, or its URI.
        consumer: a name of the consumer, which its progress gets in the output.
        into: the output.
        on_replaced: what happens if rows that the consumer has seen were replaced or removed. `apply` removes their
            effect and delivers the rows that replace them. `fail` raises RowsReplaced. `ignore` delivers new rows only.
            Rows that were erased are removed in any case.
        on_retired: what happens if rows were retired that the consumer has not seen yet. `fail` raises RowsRetired.
            `ignore` delivers the rows that are there. Results of retired rows that it has seen stay in the output.
        removing: gives the SQL condition for the rows of the output that the rows of the transform replace; an empty
            one if it replaces no rows. Without it, rows need the columns of SOURCE_COLUMNS.
        options: the options of the source's store, if `table` is a URI.

    Raises:
        TableMissing: there is no table.
        RowsReplaced: see `on_replaced`.
        RowsRetired: see `on_retired`.
        SourceChanged: the rows in the output come from another table, or from a newer version of it.
        SourceLogCleaned: the log of the source lacks entries that are needed.
        OutputRefused: the progress in the output cannot be trusted.
        LoadError: source or output cannot be read.
    """
    source, writer = read_both(table_at(table, dict(options or {})), consumer, into.begin)
    increment = Increment(
        source=source,
        writer=writer,
        consumer=consumer,
        on_replaced=on_replaced,
        on_retired=on_retired,
        removing=removing,
    )
    if source.snapshot.entry is not None:
        increment.difference = _wanted(source.difference(writer.progress), increment)
    failpoint("increment known")
    yield increment
    if increment.committed or (not increment and source.snapshot.entry and increment.since < increment.version):
        _note_consumer(increment, into)


def _note_consumer(increment: Increment, output: IncrementOutput) -> None:
    """Leave a note in the folder of the source that the output has the version of the increment."""
    table = increment.source.table
    kind = type(output).__name__
    note = SeenConsumer(
        consumer=increment.consumer,
        kind=kind,
        output=output.place if isinstance(output, PlacedOutput) else kind,
        version=increment.version,
        time=now(),
    )
    TableNotes(table.uri, table.lake.options, SeenConsumer).write(f"{note.consumer} {note.output}", note)


def read_both(table: LakeTable, consumer: str, begin: Callable[[str, str], WriterT]) -> tuple[SourceVersion, WriterT]:
    """The newest version of the source, and the output with its progress; `begin` is that of IncrementOutput.

    The output keeps the progress under the name of the source, which the ledger knows. So the source is read first, and
    again if another process has committed a newer version since.
    """
    source = SourceVersion.newest(table)
    failpoint("source read")
    writer = begin(consumer, source.name if source.snapshot.entry else "")
    failpoint("increment begun")
    if writer.progress.version > source.snapshot.version:
        source = SourceVersion.newest(table)
        failpoint("source read again")
    return source, writer


def _wanted(difference: LedgerDifference, increment: Increment) -> LedgerDifference:
    """The part of the difference that matters to the consumer.

    Raises:
        RowsReplaced, RowsRetired: the consumer chose to fail.
    """
    # A new consumer has seen no rows, so none of them can have been replaced for it.
    if increment.writer.progress == NOTHING:
        return difference
    if difference.retired and increment.on_retired == "fail":
        raise RowsRetired(
            f"the consumer {increment.consumer} has not seen all rows of {difference.retired[0]} and "
            f"{len(difference.retired) - 1} more ranges, and old rows of them are retired: run once with `on_retired` "
            "= ignore to continue with the rows that are there, or build the output again",
            increment.source.table.where,
        )
    if increment.on_replaced == "apply":
        return difference
    if increment.on_replaced == "ignore":
        return replace(difference, replaced=(), withdrawn=(), taken_back=())
    # What was erased must go whatever the consumer chose, so it is no reason to fail.
    changed = (*difference.withdrawn, *difference.taken_back, *difference.restarted)
    if changed:
        raise RowsReplaced(
            f"the source has other rows than the consumer {increment.consumer} has seen: {changed[0]} and "
            f"{len(changed) - 1} more; run once with `on_replaced` = apply or ignore",
            increment.source.table.where,
        )
    return difference


def _check_has_source_columns(rows: Any) -> None:
    """Check that rows can be removed later.

    Raises:
        OutputRefused: they lack columns of SOURCE_COLUMNS.
    """
    schema = getattr(rows, "schema", None)
    names = schema.names if isinstance(schema, pa.Schema) else getattr(rows, "columns", ())
    missing = [name for name in SOURCE_COLUMNS.names if name not in names]
    if missing:
        raise OutputRefused(
            f"the rows have no column {missing[0]}, so they could not be removed when the source replaces theirs: keep "
            f"the columns {', '.join(SOURCE_COLUMNS.names)}, pass `removing`, or choose another `on_replaced`"
        )


Transform = Callable[[Increment], Any]


def apply_increment(
    table: LakeTable | str,
    transform: Transform,
    *,
    consumer: str,
    into: IncrementOutput,
    attempts: int = MAX_ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
    **options: Any,
) -> Mapping[str, Any] | None:
    """Compute and commit the next increment. If another process was first, or the store fails for a time, do it again.

    Args:
        table: the table of a topic, or its URI.
        transform: gives the rows for the output, for example `lambda increment: sizes(increment.arrow())`. It runs
            again at each attempt, and not at all if nothing is new.
        consumer: see `increments`.
        into: see `increments`.
        attempts: how often to try.
        sleep: waits between attempts.
        options: the others of `increments`.

    Returns:
        The facts about the increment; None if there was nothing to do.

    Raises:
        LoadError: see `increments` and `Increment.commit`.
    """

    def attempt() -> Mapping[str, Any] | None:
        with increments(table, consumer=consumer, into=into, **options) as increment:
            if not increment:
                return None
            increment.commit(transform(increment))
            return increment.summary()

    return with_attempts(attempt, attempts, sleep=sleep)
