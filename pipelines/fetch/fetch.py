"""The worker's part of a load: fetch a group of slices, and write each as one Parquet file.

It runs in Spark's Python workers through `mapInArrow`. An error in one slice comes back as that slice's failure, so
that the other slices of the task are not lost. If a worker process dies, or a folder of new files cannot be forced to
disk, the task fails and Spark starts it again; no commit will name the files of the attempt that failed.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from kafka_io.errors import LocatedError
from kafka_io.model import Broker, OffsetRange
from kafka_io.reader.kept_readers import KeptReaders
from kafka_io.reader.reader import Reader
from kafka_io.reader.source import Source
from kafka_io.reader.unreadable import is_unreadable
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.last_message import LastMessage
from pipelines.fetch.day_files import DayFiles
from pipelines.fetch.fetch_task import FetchTask, decode_task, to_json
from pipelines.fetch.left_out import LeftOut, SkippedRecords
from pipelines.fetch.slice_file import SliceFile
from pipelines.fetch.typed_rows import IncompletePlan, TypedRows, merged_needs
from pipelines.fetch.unreadable import SkipByChoice, readable_batches
from pipelines.layout.columns import NO_COLUMNS
from pipelines.layout.layout import RAW
from pipelines.layout.rows import RAW_TIME_COLUMN, table_rows
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.slice_facts import DecodingNeeds, Observations, SliceFacts
from pipelines.ledger.slice_times import TimesOfRows
from pipelines.rules.row_rules import RowRules
from pipelines.rules.skip_condition import RecordMask, SkipCondition
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.table_files import table_errors

TASK_SCHEMA = pa.schema([("spark_task", pa.int32()), ("fetch_task", pa.string())])
FACTS_SCHEMA = "facts string"
COMMITTED = "committed"
"""The isolation that leaves out the records of open and aborted transactions."""


def fetch_slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for `mapInArrow`: for each row of TASK_SCHEMA it gives one row of FACTS_SCHEMA."""
    with KeptReaders() as readers:
        yield from fetch_through(readers, batches)


def fetch_through(readers: KeptReaders, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, through readers that other fetches share."""
    failpoint("fetch began")
    tasks = [decode_task(text) for batch in batches for text in batch.column("fetch_task").to_pylist()]
    # Slices of one source come one after the other, so that they share a reader, its connections and its requests: a
    # small slice costs no request of its own (decision D21).
    by_source = sorted(tasks, key=lambda task: (task.source.brokers, task.offsets))
    for source, group in groupby(by_source, key=lambda task: task.source):
        for facts in _fetch_group(source, list(group), readers):
            yield pa.RecordBatch.from_pydict({"facts": [to_json(facts)]})
            failpoint("facts sent")


def _fetch_group(source: Source, tasks: Sequence[FetchTask], readers: KeptReaders) -> Iterator[SliceFacts]:
    """The facts of slices that have one source, read through one reader.

    At the end, the folders of all new files are forced to disk. Until then nobody may rely on the facts.
    """
    unforced: set[Path] = set()
    with readers.lent(source) as reader:
        for task, batches in zip(tasks, reader.read([task.planned for task in tasks]), strict=True):
            began = time.monotonic()
            # A task that raises begins again with all its slices, and after its last attempt Spark drops the results of
            # the whole job (decision D05). So the failure of a slice is a value (fault S07).
            try:
                facts = _fetch_slice(task, reader, batches, began, unforced)
            except Exception as error:  # noqa: BLE001 - whatever fails belongs to this slice and is reported with it
                facts = [_failed(task.offsets, task, error)]
            for part in facts:
                yield part if part.failure else _from(reader.serving(task.planned), part)
    # Once for all slices, because each folder takes milliseconds (decision D43). An error here must end the task:
    # without the entry in its folder, a file is lost when the power fails (fault L10).
    with table_errors(tasks[0].table_uri):
        for folder in unforced:
            durable.sync(folder)


def _failed(offsets: OffsetRange, task: FetchTask, error: Exception) -> SliceFacts:
    return SliceFacts(range=CommittedRange(offsets=offsets), failure=SliceFailure.of(error, task.where))


def _from(broker: Broker | None, facts: SliceFacts) -> SliceFacts:
    """The facts with the broker that served the slice."""
    source = f"{broker.id}@{broker.address}" if broker else ""
    return replace(facts, range=replace(facts.range, source=source))


def _isolation(source: Source) -> str:
    """The setting `isolation` with which the source is read."""
    return COMMITTED if source.read_settings.committed else "uncommitted"


def _fetch_slice(
    task: FetchTask, reader: Reader, batches: Iterator[DecodedBatch], began: float, unforced: set[Path]
) -> Sequence[SliceFacts]:
    """Write the slice's rows to its file. If a record cannot be read, the facts of what is before it come first."""
    rows = _SliceRows(task)
    skip = SkipByChoice(task)
    failed: list[SliceFacts] = []
    with SliceFile(task, unforced) if task.folder else DayFiles(task, unforced) as output:
        try:
            for decoded in readable_batches(reader, task.planned, batches, skip):
                failpoint("batch fetched")
                rows.add(decoded, output)
                del decoded  # its columns are free before the next batch is decoded, which fills them again
        except LocatedError as error:
            # Only an error about a record says up to where the rows before it are right (faults N03, N04). After any
            # other error the whole slice is fetched again.
            if rows.next_offset == task.offsets.start or not is_unreadable(error):
                raise
            failed = [_failed(replace(task.offsets, start=rows.next_offset), task, error)]
    if rows.needs:
        skip.discard()
        return [SliceFacts(range=CommittedRange(offsets=task.offsets), needs=merged_needs(rows.needs))]
    partition = task.offsets.partition
    # Not the planned end: a record that cannot be read ends the slice earlier, and in 0.7 the last slice of a cap ends
    # later, after its message (fault U02).
    offsets = replace(task.offsets, stop=rows.next_offset)
    skipped_gaps, skipped_sets = rows.skipped.stored()
    fetched = CommittedRange(
        offsets=offsets,
        rows=output.rows,
        bytes=rows.column_bytes if partition.broker is None else offsets.size,
        gaps=rows.gaps | rows.left_out.counts(offsets) | skipped_gaps,
        isolation=_isolation(task.source) if partition.broker is None else "",
        loaded_at_us=task.loaded_at_us,
        exact={**rows.left_out.stored(offsets), **skipped_sets},
    )
    observed = Observations(
        seconds=time.monotonic() - began,
        last=rows.last_message,
        odd_times=rows.odd_times,
        bad=rows.typed.bad if rows.typed else 0,
        bad_examples=tuple(rows.typed.examples) if rows.typed else (),
        rounded=rows.typed.rounded if rows.typed else 0,
        first_rounded=rows.typed.first_rounded if rows.typed else None,
        skipped=tuple(skip.skipped),
        holes=OffsetRange(partition, *rows.holes) if rows.holes else None,
        times=rows.times.result if rows.times else None,
    )
    return [SliceFacts(range=fetched, files=output.files, observed=observed), *failed]


class _SliceRows:
    """Turns decoded batches into rows of a file, and counts what the facts report.

    Attributes:
        needs: what the plan lacks. With it, nothing of this attempt will be used.
    """

    def __init__(self, task: FetchTask) -> None:
        partition = task.offsets.partition
        self._constants: dict[str, object] = {
            "topic": task.planned.topic,
            "broker": partition.broker,
            "partition": partition.partition,
            "loaded_at": task.loaded_at_us,
        }
        self.left_out, self.skipped = LeftOut(task), SkippedRecords(task)
        self.typed = TypedRows(task.decode) if task.decode else None
        self._as_rows = self.typed or _RawRows(task.rules)
        self.times = TimesOfRows(task.times, before_ms=task.loaded_at_us // 1000) if task.times else None
        self.needs: list[DecodingNeeds] = []
        self._raw_time_column = task.layout.name(RAW_TIME_COLUMN)
        self.offsets, self.next_offset = task.offsets, task.offsets.start
        self.gaps: Counter[str] = Counter()
        self.holes: tuple[int, int] | None = None
        self.column_bytes = 0
        self.odd_times = 0
        self.last_message: LastMessage | None = None

    def add(self, decoded: DecodedBatch, output: SliceFile | DayFiles) -> None:
        """Write the batch's rows."""
        covered = replace(self.offsets, start=self.next_offset, stop=decoded.next_offset)
        batch, gaps = self.left_out.apply(decoded, covered)
        self.next_offset = decoded.next_offset
        self.gaps.update(gaps)
        if decoded.holes:
            self.holes = (self.holes or decoded.holes)[0], decoded.holes[1]
        self.column_bytes += batch.nbytes
        if decoded.batch.num_rows:
            self.last_message = LastMessage.of(decoded.batch)  # a row that is kept would keep the columns of its batch
        if batch.num_rows:
            try:
                rows, skipped = self._as_rows.rows_to_skip(batch, self._constants)
            except IncompletePlan as missing:
                self.needs.append(missing.needs)
            else:
                self.odd_times += rows.num_rows - rows.column(self._raw_time_column).null_count
                if self.times:
                    self.times.add(rows)
                # Event times above are also those of skipped records: otherwise an hour is never complete.
                if not self.needs and (kept := self.skipped.without(rows, skipped)).num_rows:
                    output.write(kept)


class _RawRows:
    """Turns records into rows of a raw table, as TypedRows does it for a typed one."""

    def __init__(self, rules: RowRules) -> None:
        self._rules = rules
        self._skips = SkipCondition(rules.skip, RAW, NO_COLUMNS) if rules.skip else None

    def rows_to_skip(
        self, records: pa.RecordBatch, constants: Mapping[str, object]
    ) -> tuple[pa.RecordBatch, RecordMask | None]:
        """The rows, and for which of them the condition `skip` is true; None for no condition."""
        rows = table_rows(records, dict(constants))
        return self._rules.applied(rows, RAW), self._skips.is_true(rows, {}) if self._skips else None
