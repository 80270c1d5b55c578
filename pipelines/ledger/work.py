"""The report of a worker about its slice, and the part that the ledger keeps: facts, committed ranges, failures."""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import msgspec

from kafka_io.errors import LocatedError, Where
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from kafka_io.typed_json import convert
from pipelines.ledger.slice_times import SliceTimes
from resources.errors import sentence_of
from resources.explanations.codes import code_of, code_of_kind, coded
from resources.printed import HIDDEN, PrintedError, printed_property
from resources.quantities import run_time

EXPIRED = "expired"
"""The cause of a gap whose records expired before a load could read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFailure:
    """An error as data: why a slice was not fetched, or a topic not loaded. It crosses from a worker to the driver.

    A `retriable` failure may not happen again at another attempt. `code` is what `penstock explain` takes; without one,
    such as in files of earlier versions, it is that of the kind.
    """

    kind: str
    reason: str
    where: Mapping[str, Any] = field(default_factory=dict)
    trace: str = ""
    retriable: bool = False
    code: str = ""

    def __post_init__(self) -> None:
        """Complete the code."""
        if not self.code:
            object.__setattr__(self, "code", code_of_kind(self.kind))

    @classmethod
    def of(cls, error: BaseException, where: Where) -> Self:
        """The failure for `error`; `where` completes the place that the error itself knows.

        The texts of other programs, which caused the error, are only in the stack trace (fault U11).
        """
        retriable = False
        if isinstance(error, LocatedError):
            where, retriable = error.where.within(where), error.retriable
        trace = traceback.format_exception(error) if error.__traceback__ else ()
        return cls(
            kind=type(error).__name__,
            reason=_encodable(sentence_of(error)),
            where=where.as_dict(),
            trace=_encodable("".join(trace)),
            retriable=retriable,
            code=code_of(type(error)),
        )

    def printed(self) -> PrintedError:
        """The error object of every command's `--json`: its code, its sentence, and its place as far as it is known."""
        partition = self.where.get("partition")
        place = {**self.where, "partition": None if partition is None else str(partition)}
        return PrintedError(code=self.code, kind=self.kind, message=self.reason, retriable=self.retriable, **place)

    def __str__(self) -> str:
        location = str(Where(**self.where))
        return coded(f"{self.kind}: {self.reason}" + (f" [{location}]" if location else ""), self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failable:
    """A result that has the error that ended the work, if one did."""

    failure: SliceFailure | None = field(default=None, metadata=HIDDEN)

    @printed_property
    def errors(self) -> tuple[SliceFailure, ...]:
        """The error, if there is one."""
        return (self.failure,) if self.failure else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRange:
    """Offsets of one partition as the ledger records them: each of them has a row, or is in a gap.

    Args:
        offsets: the offsets.
        rows: the number of rows.
        bytes: the bytes that were read: of the log in 0.7; of columns later, where a slice may cut through records
            that are compressed together.
        loaded_at_us: the rows' `loaded_at`, in microseconds since 1970.
        gaps: the number of offsets without a row, by cause.
        path: the file with the rows, relative to the table; None without rows.
        more_paths: further files with the rows, in a table with a file for each day of a slice.
        source: the broker that served the last read, `id@host:port`; empty if no broker served the range.
        isolation: the setting with which transactions were read, "committed" or "uncommitted"; empty in 0.7 and if it
            is not known.
    """

    offsets: OffsetRange
    rows: int = 0
    bytes: int = 0
    loaded_at_us: int = 0
    gaps: Mapping[str, int] = field(default_factory=dict)
    path: str | None = None
    more_paths: tuple[str, ...] = ()
    source: str = ""
    isolation: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All files with the rows."""
        return (self.path, *self.more_paths) if self.path else ()

    @property
    def partition(self) -> BrokerPartition:
        """The partition of the range."""
        return self.offsets.partition

    def __str__(self) -> str:
        return str(self.offsets)

    @classmethod
    def of(cls, facts: "SliceFacts") -> Self:
        """The range of a slice that a worker fetched, without what the ledger does not record."""
        return cls(**{name.name: getattr(facts, name.name) for name in fields(cls)})

    def as_dict(self) -> dict[str, Any]:
        """The range as the ledger and `penstock history --json` show it: `broker`, `partition`, `start`, `stop`, ..."""
        stored = msgspec.to_builtins(self)
        offsets = stored.pop("offsets")
        if not self.more_paths:
            del stored["more_paths"]
        return {**offsets.pop("partition"), **offsets, **stored}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        partition = {"broker": stored["broker"], "partition": stored["partition"]}
        offsets = {"partition": partition, "start": stored["start"], "stop": stored["stop"]}
        return convert({**stored, "offsets": offsets}, cls)


@dataclass(frozen=True, slots=True)
class LoadedRange:
    """Offsets of one partition whose rows have the same loading time, in microseconds since 1970.

    Partition, offset and loading time identify the rows of a table, also if it holds several incarnations of the topic.
    """

    offsets: OffsetRange
    loaded_at_us: int

    def __str__(self) -> str:
        return str(self.offsets)

    @classmethod
    def of(cls, committed: CommittedRange) -> Self:
        """The rows of a committed range."""
        return cls(committed.offsets, committed.loaded_at_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedOffsets:
    """Offsets without rows because their records cannot be read, and the user chose to skip them.

    Args:
        setting: the choice.
        offsets: the offsets.
        reason: why they cannot be read.
        path: the file with the bytes that the broker gave for them, relative to the table; None if it gave none.
    """

    setting: str
    offsets: OffsetRange
    reason: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record whose value does not decode, and why."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file: its path, its size in bytes, its number of rows, and the statistics as in SliceFacts."""

    path: str
    size: int
    rows: int
    stats: Mapping[str, Any] = field(default_factory=dict)


def described(files: Sequence[DataFile]) -> dict[str, Any]:
    """The fields of SliceFacts for the files of a slice."""
    if not files:
        return {}
    first, *more = files
    paths = tuple(file.path for file in more)
    return {
        "path": first.path,
        "size": first.size,
        "stats": first.stats,
        "more_files": tuple(more),
        "more_paths": paths,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFacts(CommittedRange):
    """The result of one slice: the range that a commit would record, and its file, or its failure.

    A slice with a record that cannot be read has two: the range before the record, and the rest with the failure.

    Args:
        size: the size of the file in bytes; that of the first one if there are several.
        stats: the statistics of that file's columns, as Delta's log stores them.
        more_files: the files of `more_paths`.
        odd_times: the number of rows whose `timestamp` is null because a table cannot hold it (see `timestampRaw`).
        unknown_schemas: ids of schemas of the values that the plan does not have; without them nothing is decoded, and
            the slice has no rows yet.
        new_fields: fields of the values for which the plan has no columns, as an Arrow IPC message; empty if there are
            none. With them the slice has no rows yet, as with unknown schemas.
        unknown_key_schemas: as `unknown_schemas`, for the keys.
        new_key_fields: as `new_fields`, for the keys.
        bad: the number of rows whose value or key does not decode.
        bad_examples: the first of these records.
        skipped: the offsets that were skipped by choice; they are in the gaps too.
        last: the last message of the slice; None without rows.
        seconds: how long the fetch took.
        holes: from the start of the first hole to the end of the last one, if compaction does not explain the holes, or
            if that is not known yet.
        holes_reason: why compaction does not explain them; empty if that is not known yet.
        failure: why the slice was not fetched.
        times: the event times of the rows; None if the settings do not ask for them.
    """

    size: int = 0
    stats: Mapping[str, Any] = field(default_factory=dict)
    more_files: tuple[DataFile, ...] = ()
    odd_times: int = 0
    unknown_schemas: tuple[int, ...] = ()
    new_fields: bytes = b""
    unknown_key_schemas: tuple[int, ...] = ()
    new_key_fields: bytes = b""
    bad: int = 0
    bad_examples: tuple[BadRecord, ...] = ()
    skipped: tuple[SkippedOffsets, ...] = ()
    last: LastMessage | None = None
    seconds: float = 0.0
    holes: OffsetRange | None = None
    holes_reason: str = ""
    failure: SliceFailure | None = None
    times: SliceTimes | None = None

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files of the slice."""
        if self.path is None:
            return ()
        first_rows = self.rows - sum(file.rows for file in self.more_files)
        first = DataFile(path=self.path, size=self.size, rows=first_rows, stats=self.stats)
        return (first, *self.more_files)

    @property
    def is_undecoded(self) -> bool:
        """Whether the slice must be fetched again with a plan that has what its values need."""
        return bool(self.unknown_schemas or self.new_fields or self.unknown_key_schemas or self.new_key_fields)

    def __str__(self) -> str:
        return f"{self.offsets}: {self.rows} rows in {run_time(self.seconds)}"

    def printed(self) -> "SlowestSlice":
        """See SlowestSlice."""
        id_, start, stop = self.partition, self.offsets.start, self.offsets.stop
        seconds = round(self.seconds, 3)
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
    """How many rows a run has, how many of their records do not decode, and the first of these."""

    rows: int = 0
    bad: int = 0
    first: tuple[BrokerPartition, BadRecord] | None = None

    def plus(self, facts: Sequence[SliceFacts]) -> Self:
        """The counts with those of more slices."""
        examples = ((part.partition, part.bad_examples[0]) for part in facts if part.bad)
        return replace(
            self,
            rows=self.rows + sum(part.rows for part in facts),
            bad=self.bad + sum(part.bad for part in facts),
            first=self.first or next(examples, None),
        )


NOTHING_DECODED = DecodedCounts()


def _encodable(text: str) -> str:
    # Names of files may hold bytes that are not UTF-8; Python keeps them as lone surrogates, which JSON refuses.
    return text.encode(errors="backslashreplace").decode()
