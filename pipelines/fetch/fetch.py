"""The worker's part of a load: fetch a group of slices, and write each as one Parquet file.

It runs in Spark's Python workers through `mapInArrow`. An error in one slice comes back as that slice's failure, so
that the other slices of the task are not lost. If a worker process dies, or a folder of new files cannot be forced to
disk, the task fails and Spark starts it again; no commit will name the files of the attempt that failed.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
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
from pipelines.layout.layout import RAW, TYPED
from pipelines.layout.rows import RAW_TIME_COLUMN, table_rows
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import RecordedChoice
from pipelines.ledger.slice_facts import DecodingNeeds, Observations, SliceFacts
from pipelines.ledger.slice_times import TimesOfRows
from pipelines.routes.router import MAIN_ROUTE, RoutesOfRows
from pipelines.rules.row_rules import RowRules
from pipelines.rules.skip_condition import RecordMask, SkipCondition
from pipelines.schemas.schema_names import SchemaUse
from pipelines.table.exact_sets import ExactSets
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
    """Write the slice's rows to files of its tables. If a record cannot be read, what is before it comes first."""
    tasks = task.routes.tasks if task.routes else {MAIN_ROUTE: task}
    skip = SkipByChoice(task)
    failed: list[SliceFacts] = []
    unnamed: set[SchemaUse] = set()
    with ExitStack() as open_files:
        tables = [_SliceRows(own, route, open_files, unforced) for route, own in tasks.items()]
        try:
            for decoded in readable_batches(reader, task.planned, batches, skip):
                failpoint("batch fetched")
                routes = task.routes.router.of_rows(decoded.batch) if task.routes and decoded.batch.num_rows else None
                unnamed.update(routes.unnamed if routes else ())
                for table in tables:
                    table.add(decoded, routes)
                del decoded  # its columns are free before the next batch is decoded, which fills them again
        except LocatedError as error:
            # Only an error about a record says up to where the rows before it are right (faults N03, N04). After any
            # other error the whole slice is fetched again.
            if tables[0].next_offset == task.offsets.start or not is_unreadable(error):
                raise
            failed = [_failed(replace(task.offsets, start=tables[0].next_offset), task, error)]
    if unnamed:
        tables[0].needs.append(DecodingNeeds(routes=tuple(sorted(unnamed, key=str))))
    if lacking := [table.lacking for table in tables if table.needs]:
        skip.discard()
        return lacking
    seconds, (first, *others) = time.monotonic() - began, tables
    # The bytes of what was skipped are in the folder of one table, and only its ledger names them.
    receipts = [replace(choice, path=None) for choice in skip.skipped]
    return [first.facts(seconds, skip.skipped), *(table.facts(seconds, receipts) for table in others), *failed]


class _SliceRows:
    """Turns decoded batches into rows of a file of one table, and counts what the facts report.

    Attributes:
        needs: what the plan lacks. With it, nothing of this attempt will be used.

    Args:
        task: the slice and the table.
        route: the route of the table.
        open_files: closes the files.
        unforced: see SliceFile.
    """

    def __init__(self, task: FetchTask, route: str, open_files: ExitStack, unforced: set[Path]) -> None:
        self._task, self._route = task, route
        self._output = SliceFile(task, unforced) if task.folder else DayFiles(task, unforced)
        open_files.enter_context(self._output)
        self.left_out = LeftOut(task, ExactSets.at(task.table_uri, task.options))
        self.skipped = SkippedRecords(task, ExactCause.FILTERED, task.layout)
        self.routed = SkippedRecords(task, ExactCause.ROUTED, RAW)
        self._as_rows = TypedRows(task.decode) if task.decode else _RawRows(task.rules)
        self.times = TimesOfRows(task.times, before_ms=task.loaded_at_us // 1000) if task.times else None
        self.needs: list[DecodingNeeds] = []
        self.next_offset = task.offsets.start
        self.gaps: Counter[str] = Counter()
        self.holes: tuple[int, int] | None = None
        self.column_bytes = 0
        self.odd_times = 0
        self.last_message: LastMessage | None = None

    @property
    def _constants(self) -> dict[str, object]:
        """The values of columns that are the same in all rows."""
        task, partition = self._task, self._task.offsets.partition
        of_partition = {"broker": partition.broker, "partition": partition.partition}
        return {"topic": task.planned.topic, **of_partition, "loaded_at": task.loaded_at_us}

    def add(self, decoded: DecodedBatch, routes: RoutesOfRows | None) -> None:
        """Write the batch's rows, or those of the table's route."""
        covered = replace(self._task.offsets, start=self.next_offset, stop=decoded.next_offset)
        own = self.routed.without(decoded.batch, ~routes.are(self._route)) if routes else decoded.batch
        batch, gaps = self.left_out.apply(replace(decoded, batch=own), covered)
        self.next_offset = decoded.next_offset
        self.gaps.update(gaps)
        if decoded.holes:
            self.holes = (self.holes or decoded.holes)[0], decoded.holes[1]
        self.column_bytes += decoded.batch.nbytes
        if decoded.batch.num_rows:
            self.last_message = LastMessage.of(decoded.batch)  # a row that is kept would keep the columns of its batch
        if batch.num_rows:
            try:
                rows, skipped = self._as_rows.rows_to_skip(batch, self._constants)
            except IncompletePlan as missing:
                self.needs.append(missing.needs)
            else:
                layout = TYPED if self._task.decode else RAW
                self.odd_times += rows.num_rows - rows.column(layout.name(RAW_TIME_COLUMN)).null_count
                if self.times:
                    self.times.add(rows)
                # Event times above are also those of skipped records: otherwise an hour is never complete.
                if not self.needs and (kept := self.skipped.without(rows, skipped)).num_rows:
                    self._output.write(kept)

    @property
    def lacking(self) -> SliceFacts:
        """The facts of a slice that must be fetched again."""
        needs = merged_needs(self.needs)
        return SliceFacts(range=CommittedRange(offsets=self._task.offsets), needs=needs, route=self._route)

    def facts(self, seconds: float, skipped: Iterable[RecordedChoice]) -> SliceFacts:
        """The facts of the slice, after its files are complete; `skipped` are the choices that left records out."""
        partition = self._task.offsets.partition
        typed = self._as_rows if isinstance(self._as_rows, TypedRows) else None
        # Not the planned end: a record that cannot be read ends the slice earlier, and in 0.7 the last slice of a cap
        # ends later, after its message (fault U02).
        offsets = replace(self._task.offsets, stop=self.next_offset)
        (filtered, filtered_sets), (routed, routed_sets) = self.skipped.stored(), self.routed.stored()
        fetched = CommittedRange(
            offsets=offsets,
            rows=self._output.rows,
            bytes=self.column_bytes if partition.broker is None else offsets.size,
            gaps=self.gaps | self.left_out.counts(offsets) | filtered | routed,
            isolation=_isolation(self._task.source) if partition.broker is None else "",
            loaded_at_us=self._task.loaded_at_us,
            exact={**self.left_out.stored(offsets), **filtered_sets, **routed_sets},
        )
        observed = Observations(
            seconds=seconds,
            last=self.last_message,
            odd_times=self.odd_times,
            bad=typed.bad if typed else 0,
            bad_examples=tuple(typed.examples) if typed else (),
            rounded=typed.rounded if typed else 0,
            first_rounded=typed.first_rounded if typed else None,
            skipped=tuple(skipped),
            holes=OffsetRange(partition, *self.holes) if self.holes else None,
            times=self.times.result if self.times else None,
        )
        return SliceFacts(range=fetched, files=self._output.files, observed=observed, route=self._route)


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
