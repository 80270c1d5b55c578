"""Event time in the ledger: up to which time a table is complete, and what proves it. All times are ms since 1970.

A broker that answers "my log ends here" at a time T proves that nothing else was appended before T. When the cursor
has reached that end, the table holds every record that was appended before T. Before the cursor has reached the end,
the largest event time so far is the best proof: what follows in the log was appended later.

A record is appended at most the allowed lateness after its event time. So a table is complete up to the lowest of these
times minus the allowed lateness: its valid-through. Without a proof for each partition it stays where it was.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import NamedTuple, Self

from kafka_io.model import BrokerPartition
from kafka_io.typed_json import JsonObject, convert, convert_exact, convert_exact_values

MAX_LATE_HOURS = 48
"""The maximum number of hours for which an entry counts late rows."""
OLDER = "older"
"""Stands for all hours before those."""
LateRows = Mapping[str, int]
"""Numbers of late rows by hour, for example `2026-11-22T07`, in UTC."""


class LogAnswer(NamedTuple):
    """The answer of a broker about the end of a log.

    Args:
        end: the end of the log; with committed records only, the last stable offset.
        held_back: the number of offsets after it that an open transaction holds back.
        asked_ms: a time before the broker was asked.
    """

    end: int
    held_back: int
    asked_ms: int

    def is_reached(self, cursor: int) -> bool:
        """Whether a table with this cursor holds everything that the broker had. Held-back records are not there."""
        return cursor >= self.end + self.held_back


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTime:
    """The event time of one partition.

    `end`, `held_back` and `asked_ms` are the newest answer of a broker (see LogAnswer).
    """

    end: int | None = None
    """The end of the log when the broker was asked last; None before its first answer."""
    held_back: int = 0
    """The number of offsets that an open transaction held back then."""
    asked_ms: int | None = None
    at_end: bool = False
    """Whether the cursor reached the end."""
    max_ms: int | None = None
    """The largest event time of the rows so far. Times after the load that read them do not count."""
    proven_ms: int | None = None
    """All records that were appended before this time are in the table; None without a proof."""

    def after(self, answers: Sequence[LogAnswer], cursor: int, max_ms: int | None) -> Self:
        """The event time after a commit that leaves this cursor.

        Args:
            answers: the answers to the load, oldest first; none if the partition did not answer.
            cursor: the cursor after the commit.
            max_ms: the largest event time of the commit's rows.
        """
        max_ms = latest(self.max_ms, max_ms)
        if not answers:
            return replace(self, max_ms=max_ms)
        # A transaction that was open at an earlier answer may have ended since. A load that began earlier may commit
        # later, and then the answer that the table has is the newest one.
        known = sorted((*self._earlier_answer, *answers), key=lambda answer: answer.asked_ms)
        asked = [answer.asked_ms for answer in known if answer.is_reached(cursor)]
        newest = known[-1]
        return replace(
            self,
            end=newest.end,
            held_back=newest.held_back,
            asked_ms=newest.asked_ms,
            at_end=newest.is_reached(cursor),
            max_ms=max_ms,
            proven_ms=latest(self.proven_ms, max_ms, *asked),
        )

    @property
    def _earlier_answer(self) -> Sequence[LogAnswer]:
        if self.asked_ms is None:
            return ()
        assert self.end is not None
        return (LogAnswer(self.end, self.held_back, self.asked_ms),)


NO_PROOF = PartitionTime()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """The event time of a table after a commit.

    Args:
        column: where the event time is: "timestamp" for the record's own, or a column of a typed table.
        lateness_ms: the allowed lateness.
        valid_through_ms: the table has all rows with an earlier event time, except late ones; None if nothing proves
            any time.
        partitions: the event time of each partition of the topic.
        late: the rows of this commit whose event time is before the valid-through that was known when they were read.
        moved_back_by: what moved the valid-through back in this commit, such as "rewind"; empty if nothing did.
    """

    column: str
    lateness_ms: int
    valid_through_ms: int | None = None
    partitions: Mapping[BrokerPartition, PartitionTime] = field(default_factory=dict)
    late: LateRows = field(default_factory=dict)
    moved_back_by: str = ""

    @property
    def carried(self) -> Self:
        """The same for the next commit, which has other rows."""
        return replace(self, late={}, moved_back_by="")

    @property
    def proven_ms(self) -> int | None:
        """The valid-through that all partitions prove together; None if one of them has no proof."""
        proven = [partition.proven_ms for partition in self.partitions.values()]
        known = [time_ms for time_ms in proven if time_ms is not None]
        return min(known) - self.lateness_ms if known and len(known) == len(proven) else None

    @property
    def asked_ms(self) -> int | None:
        """When a broker was asked last; None if no broker has answered."""
        return latest(*(partition.asked_ms for partition in self.partitions.values()))

    @property
    def advanced(self) -> Self:
        """The event time with the valid-through that the partitions prove. It never goes back here."""
        return replace(self, valid_through_ms=latest(self.valid_through_ms, self.proven_ms))

    def as_dict(self) -> JsonObject:
        """The form in which the ledger stores it, and in which `penstock history --json` prints it."""
        stored = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**stored, "partitions": {str(id_): asdict(time) for id_, time in self.partitions.items()}}

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """The inverse of `as_dict`.

        Raises:
            KeyError, ValueError: a field is missing, unknown, or does not fit its type.
        """
        by_text = convert_exact_values(convert(stored["partitions"], dict[str, JsonObject]), PartitionTime)
        partitions = {BrokerPartition.parse(text): time for text, time in by_text.items()}
        return replace(convert_exact({**stored, "partitions": {}}, cls), partitions=partitions)


def utc_text(time_ms: int) -> str:
    """The time as a text for people, to the second."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def latest(*times_ms: int | None) -> int | None:
    """The latest of the times that are not None; None if all are."""
    return max((time_ms for time_ms in times_ms if time_ms is not None), default=None)


def late_rows(counts: Iterable[LateRows]) -> LateRows:
    """The sums of the counts; the oldest hours are added up under OLDER if there are too many."""
    total: Counter[str] = sum(map(Counter, counts), Counter())
    older = total.pop(OLDER, 0)
    hours = sorted(total, reverse=True)
    older += sum(total[hour] for hour in hours[MAX_LATE_HOURS:])
    return {**{hour: total[hour] for hour in reversed(hours[:MAX_LATE_HOURS])}, **({OLDER: older} if older else {})}
