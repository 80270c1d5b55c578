"""Commit: files and offsets become visible together, in one entry of the table's log, or not at all.

The core decides and has no store: a change is built on a snapshot and written on top of that very one. Where another
commit was first, or no answer came, the table is read again and the newer entries say which it is: already landed
(found by the commit's own id, L03), already done by another run (L05), to be built anew on top, or lost. A cursor is
therefore compared on the snapshot that the commit is built on, and never moves back (L06).
No path through here deletes a file (L04).
"""

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol, Self

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Choice, Covered, Entry, Epochs, Kind, Range, Standing
from pipelines.loading.steps import step
from pipelines.loading.table_log import Clash, NoAnswer, Snapshot, TableLog
from pipelines.loading.work import Facts
from resources.errors import CommitRefused, CommitUnknown, LakeUnavailable, LoadError

_CLASHES = 20
_SILENCES = 3
_LONGEST_WAIT_S = 2.0
_FIRST_WAIT_S = 0.01


class NotAdjoining(ValueError):
    """Ranges that would leave a hole, or cover what is covered."""


def committable(facts: Sequence[Facts], covered: Covered) -> list[Facts]:
    """The slices that adjoin what is covered with no failed one between; `facts` are in order of partition and offset.

    Going on from the cursor, that is all before a partition's first failure; going back from its start (a backfill),
    all after the last.
    """
    older = [one for one in facts if _is_older(one, covered)]
    newer = [one for one in facts if not _is_older(one, covered)]
    return [*reversed(list(_until_failure(reversed(older)))), *_until_failure(newer)]


def _is_older(one: Facts, covered: Covered) -> bool:
    return one.id in covered and one.start < covered[one.id][0]


def _until_failure(facts: Iterable[Facts]) -> Iterator[Facts]:
    failed = set()
    for one in facts:
        if one.failure:
            failed.add(one.id)
        elif one.id not in failed:
            yield one


def extended(covered: Covered, facts: Iterable[Facts]) -> Covered:
    """What is covered once `facts` are committed: each partition's range grows at its ends, without a hole.

    Raises:
        NotAdjoining: it would not.
    """
    after = dict(covered)
    for id_, group in groupby(sorted(facts, key=lambda one: (one.id, one.start, one.stop)), key=lambda one: one.id):
        mine = list(group)
        older = [one for one in mine if _is_older(one, covered)]
        newer = mine[len(older) :]
        start, stop = covered.get(id_, (mine[0].start, mine[0].start))
        if older:
            _check_chain(older, older[0].start, start)
        if newer:
            _check_chain(newer, stop, newer[-1].stop)
        after[id_] = (min(start, mine[0].start), max(stop, mine[-1].stop))
    return after


def _check_chain(facts: Sequence[Facts], start: int, stop: int) -> None:
    ends = [start, *(one.stop for one in facts)]
    for one, end in zip(facts, ends, strict=False):
        if one.start != end:
            raise NotAdjoining(f"partition {one.id}: [{one.start}, {one.stop}) does not follow {end}")
    if ends[-1] != stop:
        raise NotAdjoining(f"partition {facts[0].id}: {ends[-1]} is not {stop}")


class Change(Protocol):
    """What a commit does to a table, as a value that can be built on any snapshot."""

    @property
    def commit(self) -> str:
        """The commit's own id."""
        ...

    def write(self, log: TableLog, at: Snapshot) -> int:
        """Write it on top of `at`; the version. Raises Clash or NoAnswer."""
        ...

    def onto(self, now: Snapshot) -> Self | None:
        """What is left to do on top of another's commit; None if that has done it all.

        Raises:
            CommitRefused: it cannot be done any more.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What became of a change: the version it landed as, or the run that had done it all before."""

    version: int
    change: Change | None = None
    done_by: str | None = None


def commit(log: TableLog, at: Snapshot, change: Change, *, rest: Callable[[float], None] = time.sleep) -> Committed:
    """Write `change` on top of `at`, or of what other runs put there meanwhile.

    Raises:
        CommitRefused: another run took what this one was about to take.
        CommitUnknown: the write failed, and so did every attempt to see whether it landed; or it landed, and the disk
            may not keep it.
        LakeUnavailable: it did not land.
    """
    done = _landed(log, at, change, rest)
    step("log entry found")
    log.sync(after=at.version)
    step("log entry synced")
    return done


def _landed(log: TableLog, at: Snapshot, change: Change, rest: Callable[[float], None]) -> Committed:
    base, clashes, silences = at.version, 0, 0
    failure: Exception
    while True:
        try:
            return Committed(version=change.write(log, at), change=change)
        except Clash as error:
            clashes, failure = clashes + 1, error
            step("clash seen")
        except NoAnswer as error:
            silences, failure = silences + 1, error
        except LakeUnavailable as blind:
            if not silences:
                raise
            raise _unknown(failure) from blind  # an earlier write may have landed since it was looked for
        at, version = _look(log, base, change.commit, failure)
        if version is not None:
            return Committed(version=version, change=change)
        left = change.onto(at)
        if left is None:
            assert at.entry is not None
            return Committed(version=at.version, done_by=at.entry.run)
        if clashes == _CLASHES or silences == _SILENCES:
            raise LakeUnavailable(f"the commit did not land: {failure}") from failure
        change = left
        step("built anew")
        rest(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (clashes + silences)) * random.uniform(0.5, 1))  # noqa: S311 - spreads rivals, guards nothing


def _look(log: TableLog, base: int, commit_id: str, failure: Exception) -> tuple[Snapshot, int | None]:
    """The table as it is now, and the version of the commit if it is there after all."""
    try:
        now = log.snapshot()
        return now, next((version for version, one in log.entries(now, after=base) if one.commit == commit_id), None)
    except LakeUnavailable as blind:
        raise _unknown(failure) from blind


def _unknown(failure: Exception) -> CommitUnknown:
    return CommitUnknown(f"the commit failed ({failure}) and the table cannot be read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The change of a load: ranges that go on where the table ends, or before it begins."""

    standing: Standing
    facts: tuple[Facts, ...]
    epochs: Epochs = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    run: str
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, log: TableLog, at: Snapshot) -> int:
        """Write it on top of `at`; the version."""
        log.check(self.facts)
        step("files checked")
        covered = extended(self.standing.covered, self.facts)
        entry = Entry(
            commit=self.commit,
            run=self.run,
            kind=Kind.LOAD,
            sequence=at.next_sequence,
            topic=self.standing.topic,
            ranges=tuple(Range.of(one) for one in self.facts),
            covered=covered,
            epochs={**self.standing.epochs, **self._epochs_of(covered)},
            choices=self.choices,
        )
        step("before log entry")
        version = log.append(at, entry, self.facts)
        step("after log entry")
        return version

    def _epochs_of(self, covered: Covered) -> Epochs:
        """Of the partitions whose cursor moves: older offsets say nothing of the log at the cursor."""
        before = self.standing.covered
        return {id_: one for id_, one in self.epochs.items() if id_ not in before or covered[id_][1] != before[id_][1]}

    def onto(self, now: Snapshot) -> Self | None:
        """Without the slices that another run has committed; the others must still adjoin."""
        standing = self._standing_of(now)
        left = tuple(one for one in self.facts if not _holds(standing.covered, one))
        if not left:
            return None
        gone = self.standing.covered.keys() - standing.covered.keys()
        back = next((one for one in left if one.id in gone), None)
        if back is not None:  # a rewind went to before its first load: it is not to begin anew where this one goes on
            raise self._lost(now, f"partition {back.id} was taken back")
        for id_ in sorted({one.id for one in left if not _is_older(one, standing.covered)}):
            mine = self.epochs.get(id_)
            if _end(standing, id_) != _end(self.standing, id_) and standing.epochs.get(id_) != mine:
                # Neither epoch is that of all offsets up to the cursor, so a log cut between them went unnoticed (B04).
                raise self._lost(now, f"partition {id_} has another leader since")
        try:
            extended(standing.covered, left)
        except NotAdjoining as error:
            raise self._lost(now, str(error)) from error
        return replace(self, standing=standing, facts=left)

    def _standing_of(self, now: Snapshot) -> Standing:
        mine, entry = self.standing, now.entry
        if entry is None or entry.topic.incarnation == mine.replaced:
            return mine
        if entry.topic != mine.topic:
            raise self._lost(now, f"the table holds incarnation {entry.topic.incarnation} now")
        return Standing.after(entry)

    def _lost(self, now: Snapshot, why: str) -> LoadError:
        rival = now.entry.run if now.entry else "another writer"
        return CommitRefused(f"run {rival} was first ({why}); run again", self.standing.topic.where)


def _end(standing: Standing, id_: BrokerPartition) -> tuple[int | None, int | None]:
    return standing.covered[id_][1] if id_ in standing.covered else None, standing.epochs.get(id_)


def _holds(covered: Covered, one: Facts) -> bool:
    return one.id in covered and covered[one.id][0] <= one.start and one.stop <= covered[one.id][1]
