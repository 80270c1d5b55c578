"""The messages between the driver and its workers: a fetch task goes out, the facts of its slice come back.

Both travel as JSON text in a column of a DataFrame. A task knows how to read, so this module imports the decoders,
which are large and slow to import. Code that only reads tables does not import it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from kafka_io.brokers.fetch_rate import UNLIMITED
from kafka_io.errors import Where
from kafka_io.model import OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.reader.source import Source
from pipelines.fetch.decode_plan import DecodePlan
from pipelines.layout.layout import LOADED, RAW, TableLayout
from pipelines.ledger.committed_range import ExactCause, StoredSet
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.slice_times import EventTimeColumn
from pipelines.routes.router import Router
from pipelines.rules.row_rules import NO_RULES, RowRules


@dataclass(frozen=True, slots=True)
class SliceRoutes:
    """The tables that get rows of a slice.

    Args:
        router: finds the route of each record.
        tasks: for each route the task with its table. All of them are about the same slice.
    """

    router: Router
    tasks: Mapping[str, "FetchTask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTask:
    """One slice to fetch, with all that a worker must know: nothing else of the driver reaches it.

    Args:
        spark_task: the number of the Spark task that fetches the slice; one Spark task may fetch several slices.
        source: the brokers to read from.
        planned: the slice.
        table_uri: the topic's table.
        folder: the folder inside the table for the slice's file; empty if the day of each row decides it.
        options: what the lake's store needs.
        parquet_codec: the compression of the file.
        loaded_at_us: the rows' `loaded_at`, in microseconds since 1970.
        skip: the choices by which records that cannot be read are skipped: `on_corrupt`, `on_too_large`.
        decode: how the values are decoded; None for a raw table.
        partition_by: the kind of date in the names of the table's folders (see TableLayout).
        times: where the event times of the rows are; None if nobody asks for them.
        exact: the exact sets of offsets that get no row, although the brokers may have their records.
        rules: what a raw table keeps of the records. The plan `decode` has the rules of a typed one.
        routes: the tables of the topic that get rows of the slice; None if it has only one table.
    """

    spark_task: int
    source: Source
    planned: PlannedRange
    table_uri: str
    folder: str
    options: Mapping[str, str]
    parquet_codec: str
    loaded_at_us: int
    skip: tuple[str, ...] = ()
    decode: DecodePlan | None = None
    partition_by: str = LOADED
    times: EventTimeColumn | None = None
    exact: Mapping[ExactCause, StoredSet] = field(default_factory=dict)
    rules: RowRules = NO_RULES
    routes: "SliceRoutes | None" = None

    @property
    def layout(self) -> TableLayout:
        """The columns of the file."""
        return self.decode.layout if self.decode else RAW.partitioned_by(self.partition_by)

    @property
    def offsets(self) -> OffsetRange:
        """The offsets to fetch."""
        return self.planned.offsets

    @property
    def file_name(self) -> str:
        """The first part of the name of the slice's file."""
        return f"{self.offsets.partition}-{self.offsets.start:020d}-{self.offsets.stop:020d}"

    @property
    def where(self) -> Where:
        """The start of the slice, for errors."""
        return Where(
            cluster=self.source.cluster,
            topic=self.planned.topic,
            partition=str(self.offsets.partition),
            offset=self.offsets.start,
        )


def to_json(message: FetchTask | SliceFacts) -> str:
    """The message as text. A task refers to secrets and contains none (see `Source`)."""
    return msgspec.json.encode(message).decode()


decode_task = msgspec.json.Decoder(FetchTask).decode
decode_facts = msgspec.json.Decoder(SliceFacts).decode


def with_shared_rate(tasks: Sequence[FetchTask], processes: Callable[[], int]) -> Sequence[FetchTask]:
    """The same tasks for processes that run at the same time: each has an equal share of the limits of the fetch rate.

    A task may read from every broker, so the limit for each broker is divided in the same way. `processes` returns
    their number, if there is a limit.
    """
    if all(task.source.read_settings.rate == UNLIMITED for task in tasks):
        return tasks
    count = processes()

    def shared(task: FetchTask) -> FetchTask:
        settings = task.source.read_settings
        settings = replace(settings, rate=settings.rate.share_of(count))
        return replace(task, source=replace(task.source, read_settings=settings))

    return [shared(task) for task in tasks]
