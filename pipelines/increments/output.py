"""The interface of outputs: progress that is read before an increment, and committed together with its rows."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from pipelines.increments.source import ConsumerProgress
from pipelines.reports.lineage_events import DatasetName
from resources.errors import OutputRefused
from resources.failpoints import failpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChange:
    """The effect of an increment on an output.

    Args:
        rows: the rows to add: anything that Arrow can read as a stream, a DataFrame of Spark, or a TableWrite.
        removed: the SQL condition for the rows to remove; empty if it removes no rows.
        scope: the SQL condition that all removed rows match, and all added ones; empty if it removes no rows.
        progress: the consumer's progress after the change.
        summary: facts about the increment for the log of the output.
        marks: numbers that a Delta output keeps with the progress, by name.
        personal: the personal columns of the source. A Delta output has no bounds of columns with these names.
    """

    rows: Any
    removed: str
    scope: str
    progress: ConsumerProgress
    summary: Mapping[str, Any]
    marks: Mapping[str, int] = field(default_factory=dict)
    personal: Collection[str] = ()


@runtime_checkable
class TableWrite(Protocol):
    """A way to write a change into a Delta table, in one commit."""

    @property
    def failure(self) -> BaseException | None:
        """The error of the rows themselves; then nothing was written."""

    def schema(self) -> Any:
        """The columns of the table, if it is created."""

    def write(self, handle: Any, properties: Any) -> None:
        """Write on top of the version of the handle, in a commit with these properties, or raise."""


class OutputWriter(Protocol):
    """An output from the moment on at which its progress was read. It lands one change on that progress, or none."""

    @property
    def progress(self) -> ConsumerProgress:
        """The consumer's progress, as it was read; NOTHING if the consumer is new."""

    def commit(self, change: OutputChange) -> None:
        """Commit rows and progress together.

        Raises:
            IncrementOvertaken: another process of the consumer committed first.
            CommitUnknown: nobody can see whether the change landed.
            LoadError: the output does not accept the change, or cannot be written.
        """


class IncrementOutput(Protocol):
    """A place for the rows of increments. It keeps the progress of each consumer with each source."""

    def begin(self, consumer: str, source: str) -> OutputWriter:
        """Read the progress of a consumer with a source.

        Raises:
            OutputRefused: the progress cannot be trusted, or the output cannot keep one.
            LoadError: the output cannot be read.
        """


@runtime_checkable
class NamedOutput(Protocol):
    """An output that lineage can name."""

    def dataset(self) -> DatasetName:
        """The name of the output as a dataset.

        Raises:
            LoadError: the output does not answer.
        """


@runtime_checkable
class PlacedOutput(Protocol):
    """An output that says where it is, for the note that its consumer leaves in the folder of the source."""

    @property
    def place(self) -> str:
        """The place of the output, without secrets."""


class WatchedRows:
    """Rows that an output reads as a stream. It keeps the error that ended the stream.

    Outputs turn an error of the stream into one of their own, with a text of several programs.
    """

    def __init__(self, rows: Any) -> None:
        self.failure: BaseException | None = None
        self._reader = _reader_of(rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._reader.schema

    def reader(self) -> pa.RecordBatchReader:
        """The rows, to be read once."""
        return pa.RecordBatchReader.from_batches(self.schema, self._watched())

    @contextmanager
    def own_error(self) -> Iterator[None]:
        """Raise the error that ended the stream in place of the one that an output made of it."""
        try:
            yield
        except Exception:
            if self.failure is not None:
                raise self.failure from self.failure.__cause__
            raise

    def _watched(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._reader:
                yield batch
                failpoint("increment batch written")
            failpoint("last increment batch written")
        except GeneratorExit:  # the output stopped reading, which is no error of the rows
            raise
        except BaseException as error:
            self.failure = error
            raise


def _reader_of(rows: Any) -> pa.RecordBatchReader:
    """The rows as a stream.

    Raises:
        OutputRefused: they are no rows.
    """
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows]).to_reader()
    if not hasattr(rows, "__arrow_c_stream__"):
        raise OutputRefused("the transform gave something that is neither rows of Arrow nor a DataFrame")
    return pa.RecordBatchReader.from_stream(rows)


def is_spark_frame(rows: Any) -> bool:
    """Whether the rows are a DataFrame of Spark, classic or Connect. Spark is not imported for that."""
    return hasattr(rows, "sparkSession") and hasattr(rows, "toArrow")
