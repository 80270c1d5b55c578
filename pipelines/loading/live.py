"""What a table's ledger says that the table holds now: its entries folded into the ranges that count.

An entry's ranges stand for all earlier ones that they overlap (a replay); what lies beyond the cursor it left is gone
(a cut); a rewind makes the entries between it and its target count no more.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Entry, Kind, Range, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One incarnation of the topic: its ranges in order of partition and offset, and what of them cannot be right."""

    topic: Topic
    ranges: tuple[Range, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Pieces:
    """Ranges of one partition, none over another, in order; `limit` is where the table ends."""

    starts: list[int] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    limit: int | None = None

    def overlapped(self, one: Range) -> Sequence[Range]:
        first = bisect_left(self.starts, one.start)
        if first and self.ranges[first - 1].stop > one.start:
            first -= 1
        last = bisect_left(self.starts, one.stop)
        return self.ranges[first:last]

    def insert(self, one: Range) -> None:
        at = bisect_left(self.starts, one.start)
        # An empty range says where a partition begins: it comes before what is loaded there later.
        self.starts.insert(at, one.start)
        self.ranges.insert(at, one)


def effective(entries: Iterable[tuple[int, Entry]]) -> Iterator[tuple[int, Entry]]:
    """Of `entries`, newest first, those that count: behind a rewind, what its target had."""
    below: int | None = None
    for version, entry in entries:
        if below is not None and version > below:
            continue
        below = entry.target if entry.kind is Kind.REWIND else None
        yield version, entry


def lives(entries: Iterable[tuple[int, Entry]]) -> list[Life]:
    """What the table holds, life by life, the newest first; `entries` are all of its log, newest first."""
    pieces: dict[Topic, dict[BrokerPartition, _Pieces]] = {}
    problems: dict[Topic, list[str]] = defaultdict(list)
    for _, entry in effective(entries):
        mine = pieces.setdefault(entry.topic, defaultdict(_Pieces))
        for one in entry.ranges:
            problems[entry.topic] += _placed(mine[one.id], one)
        for id_, (_, cursor) in entry.covered.items():
            held = mine[id_]
            held.limit = cursor if held.limit is None else min(held.limit, cursor)
    return [
        Life(
            topic=topic,
            ranges=tuple(one for _, held in sorted(mine.items(), key=lambda item: item[0]) for one in held.ranges),
            problems=tuple(problems[topic]),
        )
        for topic, mine in pieces.items()
    ]


def _placed(held: _Pieces, one: Range) -> Iterator[str]:
    """Put an older range beside newer ones. Where they overlap it, they stand for it, and must do so for all of it."""
    if one.stop < one.start:
        yield f"{one} ends before it begins"
        return
    over = held.overlapped(one)
    gone = held.limit is not None and one.stop > held.limit
    if not over and not gone:
        held.insert(one)
    elif not _covers(over, one, held.limit):
        yield f"{one} is covered in part by a later commit"


def _covers(over: Sequence[Range], one: Range, limit: int | None) -> bool:
    """Whether newer ranges, one after the other, stand for all of `one` that lies below the limit."""
    at, stop = one.start, one.stop if limit is None else min(one.stop, limit)
    for newer in over:
        if newer.start > at:
            return False
        at = max(at, newer.stop)
    return at >= stop
