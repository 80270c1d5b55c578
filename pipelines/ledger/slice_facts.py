"""The report of a worker about its slice: what a commit would record, the new files, and what the rows have shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from kafka_io.typed_json import JsonObject
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import RecordedChoice
from pipelines.ledger.slice_times import SliceTimes
from resources.quantities import run_time


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record whose value does not decode, and why."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file: its path, its size in bytes, its number of rows, and the statistics as Delta's log stores them."""

    path: str
    size: int
    rows: int
    stats: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What a worker has seen in the records of a slice.

    Args:
        seconds: how long the fetch took.
        last: the last message of the slice; None without rows.
        odd_times: the number of rows whose `timestamp` is null because a table cannot hold it (see `timestampRaw`).
        bad: the number of rows whose value or key does not decode.
        bad_examples: the first of these records.
        rounded: the number of rows with a number that lost digits.
        first_rounded: the offset of the first of them.
        skipped: the choices by which records that cannot be read were skipped; their offsets are in the gaps too.
        holes: from the start of the first hole to the end of the last one, if compaction does not explain the holes, or
            if that is not known yet.
        holes_reason: why compaction does not explain them; empty if that is not known yet.
        times: the event times of the rows; None if the settings do not ask for them.
    """

    seconds: float = 0.0
    last: LastMessage | None = None
    odd_times: int = 0
    bad: int = 0
    bad_examples: tuple[BadRecord, ...] = ()
    rounded: int = 0
    first_rounded: int | None = None
    skipped: tuple[RecordedChoice, ...] = ()
    holes: OffsetRange | None = None
    holes_reason: str = ""
    times: SliceTimes | None = None


NOTHING_OBSERVED = Observations()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartNeeds:
    """The schemas and fields that the plan lacks to decode values, or keys.

    Args:
        schemas: the ids, or GUIDs, of their schemas that the plan does not have.
        fields: their fields for which the plan has no columns, as an Arrow IPC message; empty if there are none.
    """

    schemas: tuple[int | str, ...] = ()
    fields: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingNeeds:
    """The needs of records: what the plan lacks to decode them, and the schemas whose names the router lacks."""

    values: PartNeeds = PartNeeds()
    keys: PartNeeds = PartNeeds()
    routes: tuple[tuple[int | str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFacts:
    """The result of one slice.

    A slice with a record that cannot be read has two: the range before the record, and the rest with the failure.

    Args:
        range: what a commit would record, but without the files; see `committed`.
        files: the new files.
        observed: what the worker has seen in the records.
        needs: what the plan lacks. The slice has no rows yet, and must be fetched again with a plan that has it.
        failure: why the slice was not fetched.
        route: the route of the table with the rows. A failure concerns all tables of the topic.
    """

    range: CommittedRange
    files: tuple[DataFile, ...] = ()
    observed: Observations = NOTHING_OBSERVED
    needs: DecodingNeeds | None = None
    failure: SliceFailure | None = None
    route: str = ""

    @property
    def offsets(self) -> OffsetRange:
        """The offsets of the slice."""
        return self.range.offsets

    @property
    def partition(self) -> BrokerPartition:
        """The partition of the slice."""
        return self.range.partition

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.range.rows

    @property
    def committed(self) -> CommittedRange:
        """The range as the commit of a load records it: with the files."""
        return replace(self.range, paths=tuple(file.path for file in self.files))

    def __str__(self) -> str:
        return f"{self.offsets}: {self.rows} rows in {run_time(self.observed.seconds)}"

    def printed(self) -> "SlowestSlice":
        """The slice as `penstock load --json` prints it."""
        id_, start, stop = self.partition, self.offsets.start, self.offsets.stop
        seconds = round(self.observed.seconds, 3)
        return SlowestSlice(
            broker=id_.broker, partition=id_.partition, start=start, stop=stop, rows=self.rows, seconds=seconds
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestSlice:
    """The slice of a load that took the longest."""

    broker: int | None
    partition: int
    start: int
    stop: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedCounts:
    """How many rows a run has, how many of their records do not decode, and the first of these.

    `skipped` records have no row because the condition `skip` is true for them.
    """

    rows: int = 0
    bad: int = 0
    skipped: int = 0
    first: tuple[BrokerPartition, BadRecord] | None = None

    def plus(self, facts: Sequence[SliceFacts]) -> Self:
        """The counts with those of more slices."""
        examples = ((part.partition, part.observed.bad_examples[0]) for part in facts if part.observed.bad)
        return replace(
            self,
            rows=self.rows + sum(part.rows for part in facts),
            bad=self.bad + sum(part.observed.bad for part in facts),
            skipped=self.skipped + sum(part.range.gaps.get(ExactCause.FILTERED, 0) for part in facts),
            first=self.first or next(examples, None),
        )


NOTHING_DECODED = DecodedCounts()
