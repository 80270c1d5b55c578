"""The change that takes rows out of a table, and puts others in their place: a replay, or a cut at the table's end."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from pipelines.loading.ledger import Choice, Covered, Entry, Kind, Range, Standing
from pipelines.loading.live import lives
from pipelines.loading.pieces import Carved, Interval, carve, counted
from pipelines.loading.steps import step
from pipelines.loading.table_log import Snapshot, TableLog
from pipelines.loading.work import Facts
from resources.errors import CommitRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """In the life of `standing`, the rows of `intervals` are replaced by those of `facts`, which cover them whole.

    `covers` tells from what the table covers before what it covers after; it raises CommitRefused where the intervals
    are not covered any more.
    """

    kind: Kind
    standing: Standing
    intervals: tuple[Interval, ...]
    covers: Callable[[Covered], Covered]
    facts: tuple[Facts, ...] = ()
    choices: tuple[Choice, ...] = ()
    run: str
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, log: TableLog, at: Snapshot) -> int:
        """Write it on top of `at`; the version."""
        life = next(one for one in lives(log.entries(at)) if one.topic == self.standing.topic)
        carved = carve(life.ranges, self.intervals)
        if self.kind is Kind.CUT:  # a replay is there to mend what has lost rows
            self._check_whole(log, at, carved)
        fetched = (Range.of(one) for one in self.facts)
        entry = Entry(
            commit=self.commit,
            run=self.run,
            kind=self.kind,
            sequence=at.next_sequence,
            topic=self.standing.topic,
            # Rows that are replaced are written anew: what they were read from or lay in says nothing any more.
            ranges=tuple(replace(one, path=None) for one in (*fetched, *counted(log, at, carved.left))),
            covered=self.covers(self.standing.covered),
            epochs=self.standing.epochs,
            choices=self.choices,
        )
        step(f"before {self.kind} entry")
        version = log.replace(at, entry, carved.inside, self.facts)
        step(f"after {self.kind} entry")
        return version

    def _check_whole(self, log: TableLog, at: Snapshot, carved: Carved) -> None:
        """What is left of a range is counted anew: rows that it had lost before would be told as a gap from then on."""
        wholes = [whole for _, whole in carved.left]
        for whole, rows in zip(wholes, log.held(at, wholes), strict=True):
            if rows != whole.rows:
                told = f"{whole} holds {rows} rows, its commit counted {whole.rows}: a replay mends that"
                raise CommitRefused(told, self.standing.topic.where)

    def onto(self, now: Snapshot) -> Self:
        """The same on top of another's commit, if the intervals are covered still."""
        entry = now.entry
        if entry is None or entry.topic != self.standing.topic:
            raise CommitRefused("the table holds another incarnation now; run again", self.standing.topic.where)
        standing = Standing.after(entry)
        for id_ in sorted({one.id for one in self.intervals}):
            if standing.epochs.get(id_) != self.standing.epochs.get(id_):  # it may have been cut and loaded anew (B04)
                told = f"partition {id_} was loaded from another leader since; run again"
                raise CommitRefused(told, self.standing.topic.where)
        self.covers(standing.covered)
        return replace(self, standing=standing)


def cut(standing: Standing, ends: Covered, *, run: str, choices: tuple[Choice, ...]) -> Replacing:
    """The change that takes back what lies beyond a partition's new end; `ends` are `[new end, cursor)`."""

    def covers(covered: Covered) -> Covered:
        for id_, (_, cursor) in ends.items():
            now = covered[id_][1] if id_ in covered else None  # a rewind may go to before its first load
            if now != cursor:
                told = f"partition {id_}: the cursor moved from {cursor} to {now}; run again"
                raise CommitRefused(told, standing.topic.where)
        return {**covered, **{id_: (min(covered[id_][0], end), end) for id_, (end, _) in ends.items()}}

    intervals = tuple(Interval(id=id_, start=end, stop=cursor) for id_, (end, cursor) in sorted(ends.items()))
    return Replacing(kind=Kind.CUT, standing=standing, intervals=intervals, covers=covers, choices=choices, run=run)
