"""Commit: files and offsets become visible together, in one commit of the table, or not at all.

This module decides and has no store. A change is built on a snapshot and written on top of exactly that snapshot. If
another commit was first, or the store gave no answer, the table is read again. Its newer entries show which case it is:

- the commit is there after all (found by its own id, fault L03);
- another run has already committed the same offsets (fault L05);
- the change can be rebased on the newer entries and written again;
- the change is refused.

So a cursor is always compared on the snapshot that the commit is built on, and never moves back (fault L06).
Nothing here deletes a file (fault L04); see `load.committed` for full disks.
"""

import random
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import ClassVar, Self

import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.layout.columns import NO_COLUMNS, ColumnConflict, missing_columns
from pipelines.layout.delta_schema import DeltaField, delta_fields
from pipelines.layout.personal import with_changed_marks
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.coverage import NotAdjoining, extended, is_backfill, is_covered
from pipelines.ledger.ledger import (
    CommitKind,
    Coverage,
    LastMessages,
    LeaderEpochs,
    LedgerEntry,
    RecordedChoice,
    StartTimes,
    TableState,
    TopicFindings,
)
from pipelines.ledger.schema_ids import NO_SCHEMAS, SchemaIds
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_rules import NO_RULES, TableRules
from pipelines.plan.valid_through import NO_TIMES, TimesOfLoad
from pipelines.rules.changes import rules_conflict
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown, TableSnapshot, TableStore
from resources.errors import CommitRefused, CommitUnknown, LakeRefused, LakeUnavailable, LoadError, TableReplaced
from resources.failpoints import failpoint

_FOLLOWS_SKIP = {CommitKind.LOAD, CommitKind.REPLAY}
"""The changes that leave records out by the condition `skip`. No other one removes rows for it."""
_MAX_CONFLICTS = 20
_MAX_UNKNOWN_OUTCOMES = 3
_MAX_WAIT_S = 2.0
_FIRST_WAIT_S = 0.01


def committable(facts: Sequence[SliceFacts], covered: Coverage) -> list[SliceFacts]:
    """The slices that can be committed: no failed slice is between them and what is covered.

    Above the cursor these are the slices before a partition's first failure. Below its start (a backfill) they are the
    slices after its last failure. `facts` are in order of partition and offset.
    """
    older = [slice_facts for slice_facts in facts if is_backfill(slice_facts.offsets, covered)]
    newer = [slice_facts for slice_facts in facts if not is_backfill(slice_facts.offsets, covered)]
    return [*reversed(list(_until_failure(reversed(older)))), *_until_failure(newer)]


def _until_failure(facts: Iterable[SliceFacts]) -> Iterator[SliceFacts]:
    failed = set()
    for slice_facts in facts:
        if slice_facts.failure:
            failed.add(slice_facts.partition)
        elif slice_facts.partition not in failed:
            yield slice_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(ABC):
    """A change that a commit makes to a table, as a value that can be written on top of any snapshot.

    Args:
        kind: what the commit does.
        state: the table's state before the change; for a rewind, the state that it restores.
        facts: the slices with the new rows.
        choices: the user's choices that the change follows.
        run: the run that makes the change.
        commit: the commit's own id.
        schemas: the ids of the schemas of the new rows.
        rules: what is kept of the records of new rows; None if the change makes no rows of records.

    `repairs` says whether the change may be written on top of a change by another program.
    """

    repairs: ClassVar[bool] = False

    kind: CommitKind
    state: TableState
    facts: tuple[SliceFacts, ...] = ()
    choices: tuple[RecordedChoice, ...] = ()
    run: str
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)
    schemas: SchemaIds = NO_SCHEMAS
    rules: TableRules | None = None

    @property
    def fetched_ranges(self) -> list[OffsetRange]:
        """The offsets of the slices."""
        return [slice_facts.offsets for slice_facts in self.facts]

    @abstractmethod
    def rebased(self, newest: TableSnapshot) -> Self | None:
        """The rest of the change on top of other commits; None if nothing is left of it.

        Raises:
            CommitRefused: the change is no longer possible.
        """

    @abstractmethod
    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The entry with what the change does to the table, and the ranges whose rows it replaces.

        The given `entry` changes nothing: it covers what the state covers, and has no ranges.
        """

    def write(self, table: TableStore, snapshot: TableSnapshot) -> int:
        """Write the change on top of `snapshot`; returns the version. Raises what `TableStore.write` raises.

        Raises:
            TableNotProven: another program has changed rows, and the change does not repair that.
            CommitRefused: the change is not possible on the snapshot.
        """
        if not self.repairs:
            snapshot.check_unchanged(self.state.topic.where)
        event_time = self.state.event_time.carried if self.state.event_time else None
        seen = snapshot.entry.schemas if snapshot.entry else NO_SCHEMAS
        if (id_ := seen.conflict(self.schemas)) is not None:
            raise CommitRefused(
                f"another run committed first, with another schema under the id {id_}; run again",
                self.state.topic.where,
            )
        unchanged = LedgerEntry(
            commit=self.commit,
            run=self.run,
            kind=self.kind,
            sequence=snapshot.next_sequence,
            table=snapshot.table_id,
            ranges=(),
            state=replace(
                self.state, event_time=event_time, rules=self._rules_after(snapshot), findings=TopicFindings()
            ),
            choices=self.choices,
            schemas=seen.with_ids(self.schemas, now_ms=time.time_ns() // 1_000_000),
            planned_on=snapshot.digest,
        )
        entry, replaced = self.complete(unchanged, table, snapshot)
        entry = replace(entry, state=replace(entry.state, last_messages=_before_cursors(entry.state)))
        failpoint(f"before {self.kind} entry")
        version = table.write(snapshot, entry, self.facts, replaced)
        failpoint(f"after {self.kind} entry")
        return version

    def _rules_after(self, snapshot: TableSnapshot) -> TableRules:
        """The rules of the table after the change.

        Raises:
            CommitRefused: another run has stored rows by other rules since the change was planned.
        """
        present = snapshot.entry.state.rules if snapshot.entry else NO_RULES
        if self.rules is None:
            return self.state.rules
        if snapshot.entry and rules_conflict(present, self.rules, snapshot.layout.values):
            raise CommitRefused("another run committed first, with other rules; run again", self.state.topic.where)
        planned = self.rules if self.kind in _FOLLOWS_SKIP else replace(self.rules, skip=self.state.rules.skip)
        return self.state.rules.followed_by(planned, snapshot.next_sequence if snapshot.entry else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """The result of a commit: the change that was written, or the run that committed first, so that nothing is left.

    In the second case `covered` is what the table covers then.
    """

    version: int
    change: Change | None = None
    overtaken_by: str | None = None
    covered: Coverage | None = None

    @property
    def committed(self) -> Sequence[SliceFacts]:
        """The slices that were committed."""
        return self.change.facts if self.change else ()

    def covered_after(self, state: TableState) -> Coverage:
        """What the table covers after the commit, which was planned on `state`; other runs may have committed too."""
        if self.change is not None:
            return extended(self.change.state.covered, self.change.fetched_ranges)
        return state.covered if self.covered is None else self.covered

    def overtaken(self, fetched: Sequence[SliceFacts]) -> int:
        """The number of fetched offsets that were not committed, because another run was first."""
        ranges = {facts.offsets for facts in self.committed}
        loadable = (facts.offsets for facts in fetched if EXPIRED not in facts.range.gaps)
        return sum(offsets.size for offsets in loadable if offsets not in ranges)


def commit(
    table: TableStore, snapshot: TableSnapshot, change: Change, *, sleep: Callable[[float], None] = time.sleep
) -> CommitResult:
    """Write `change` on top of `snapshot`, or of the entries that other runs have written since.

    Raises:
        CommitRefused: another run has committed something that makes the change impossible.
        TableReplaced: the table was removed since `snapshot`, or another table is in its place (fault P07).
        CommitUnknown: the write failed, and nobody can see whether it landed; or it landed, but a loss of power may
            undo it.
        LakeUnavailable: the change did not land. It is LakeRefused if the store refused it.
    """
    result = _write_until_known(table, snapshot, change, sleep)
    failpoint("log entry found")
    table.sync(after=snapshot.version)
    failpoint("log entry synced")
    return result


def _write_until_known(
    table: TableStore, snapshot: TableSnapshot, change: Change, sleep: Callable[[float], None]
) -> CommitResult:
    """Write, and after a failure read the table to learn what happened; repeat until the result is known."""
    planned_on, conflicts, unknown_outcomes = snapshot, 0, 0
    failure: Exception
    while True:
        try:
            return CommitResult(version=change.write(table, snapshot), change=change)
        except CommitConflict as error:
            conflicts, failure = conflicts + 1, error
            failpoint("conflict seen")
        except CommitOutcomeUnknown as error:
            unknown_outcomes, failure = unknown_outcomes + 1, error
        except LakeUnavailable as unreadable:
            if not unknown_outcomes:
                raise
            # An earlier write may have landed after the table was searched for it.
            raise _unknown(failure, unreadable) from unreadable
        # Also after a conflict: the store's client may have repeated a write whose answer was lost, and the conflict
        # is then with our own entry (fault L03).
        written_on = snapshot.version
        snapshot, version = _find_commit(table, planned_on, change.commit, failure)
        if version is not None:
            return CommitResult(version=version, change=change)
        planned_on.check_layout(snapshot, change.state.topic.where)
        rebased = change if snapshot.version == written_on else change.rebased(snapshot)
        if rebased is None:
            assert snapshot.entry is not None
            newest = snapshot.entry
            return CommitResult(version=snapshot.version, overtaken_by=newest.run, covered=newest.covered)
        if isinstance(failure, CommitOutcomeUnknown) and failure.refused:
            raise LakeRefused(f"the commit did not land: {failure}") from failure
        if conflicts == _MAX_CONFLICTS or unknown_outcomes == _MAX_UNKNOWN_OUTCOMES:
            raise LakeUnavailable(f"the commit did not land: {failure}") from failure
        change = rebased
        failpoint("rebased")
        # Waits of different lengths keep runs that write to one table from colliding again.
        sleep(min(_MAX_WAIT_S, _FIRST_WAIT_S * 2 ** (conflicts + unknown_outcomes)) * random.uniform(0.5, 1))  # noqa: S311 - jitter, not a secret


def _find_commit(
    table: TableStore, planned_on: TableSnapshot, commit_id: str, failure: Exception
) -> tuple[TableSnapshot, int | None]:
    """The newest snapshot of the table, and the version of the commit if it is newer than `planned_on`.

    Raises:
        TableReplaced: the table is gone, and so is a commit that landed in it.
        CommitUnknown: the table does not answer, or another program has made it one that Penstock refuses.
    """
    try:
        newest = table.newer(planned_on)
        entries = table.entries(newest, after=planned_on.version)
        return newest, next((version for version, entry in entries if entry.commit == commit_id), None)
    except TableReplaced:
        raise
    except LoadError as unreadable:
        raise _unknown(failure, unreadable) from unreadable


def _unknown(failure: Exception, unreadable: LoadError) -> CommitUnknown:
    return CommitUnknown(
        f"the commit failed ({failure}), and the table cannot be read to see whether it landed: {unreadable.reason}",
        unreadable.where,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChange(Change):
    """The change of a load: slices above the table's cursors, or below its starts.

    Args:
        epochs: the leader epochs under which the run read the bounds of these partitions.
        start_times: in the first commit of a table, the start of partitions that could not be asked.
        columns: the columns for fields that the files have.
        times: what the run knows of the event time of the topic.
    """

    kind: CommitKind = CommitKind.LOAD
    epochs: LeaderEpochs = field(default_factory=dict)
    start_times: StartTimes = field(default_factory=dict)
    columns: pa.Schema = NO_COLUMNS
    times: TimesOfLoad = NO_TIMES

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry. The data files are checked first. The snapshot shows which columns the table lacks."""
        columns = columns_to_add(self.state, snapshot, self.columns)
        table.check(self.facts)
        failpoint("files checked")
        covered = extended(self.state.covered, self.fetched_ranges)
        state = replace(
            entry.state,
            covered=covered,
            epochs={**self.state.epochs, **self._new_epochs(covered)},
            last_messages=self._new_last_messages(),
            start_times=self._start_times_after(covered),
            event_time=self.times.after(self.state, covered, self.facts),
        )
        ranges = tuple(facts.committed for facts in self.facts)
        return replace(entry, state=state, ranges=ranges, columns=columns), ()

    def _start_times_after(self, covered: Coverage) -> StartTimes:
        """The start of partitions that the table still does not cover. The first commit of a table decides it."""
        start_times = self.state.start_times if self.state.covered else self.start_times
        return {partition: time_ms for partition, time_ms in start_times.items() if partition not in covered}

    def _new_last_messages(self) -> LastMessages:
        """The last message of each partition. A topic id names a topic, and not the content of its logs (fault A02)."""
        newest = dict(self.state.last_messages)
        for facts in self.facts:
            newest_message, last = newest.get(facts.partition), facts.observed.last
            if last is not None and (newest_message is None or newest_message.offset < last.offset):
                newest[facts.partition] = last
        return newest

    def _new_epochs(self, covered: Coverage) -> LeaderEpochs:
        """The epochs of partitions whose cursor moves; a backfill says nothing about the log at the cursor."""
        before = self.state.covered
        return {
            partition: epoch
            for partition, epoch in self.epochs.items()
            if partition in covered and (partition not in before or covered[partition][1] != before[partition][1])
        }

    def rebased(self, newest: TableSnapshot) -> Self | None:
        """The change without the slices that another run has committed or overlapped; the others must still adjoin."""
        # The slices were planned on an older snapshot. They are still correct if no commit took their partition back
        # below them, if they adjoin what the table covers now, and if no log was truncated between the fetches of this
        # run and of the other. Brokers report no truncation directly: another leader epoch stands for a possible one.
        state = self._state_in(newest)
        remaining = self._remaining(state)
        if not remaining and not state.findings.adopted:
            return None
        partitions = {facts.partition for facts in remaining}
        for partition in sorted(partitions & (self.state.covered.keys() - state.covered.keys())):
            # A rewind went to a version before the partition's first load. The partition must not begin at the cursor
            # of this load, with a hole before it.
            raise self._refused(newest, f"partition {partition} was taken back")
        if remaining and self.state.covered and not state.covered:
            # The first commit of a table decides where its partitions begin. This run may have left that to the
            # commits which are undone now.
            raise self._refused(newest, "all rows were taken back")
        # This run begins a new partition at offset 0, because its table had begun when the run was planned. If a rewind
        # has emptied the table since, another run may have begun it again, without an answer about this partition. Then
        # the partition begins at the start that the user of that run chose.
        starts = state.start_times.keys() - self.state.start_times.keys() if self.state.begun else set()
        for partition in sorted(partitions & starts):
            raise self._refused(newest, f"partition {partition} begins at a time now")
        self._check_epochs(state, newest, [facts.offsets for facts in remaining])
        self._check_last_messages(state, newest)
        try:
            extended(state.covered, [facts.offsets for facts in remaining])
        except NotAdjoining as error:
            raise self._refused(newest, str(error)) from error
        return replace(self, state=state, facts=remaining)

    def _check_last_messages(self, state: TableState, newest: TableSnapshot) -> None:
        """Check that other runs, which committed a part of the slices, have read the same messages (fault P11)."""
        for facts in self.facts:
            stored, last = state.last_messages.get(facts.partition), facts.observed.last
            if stored and last and stored.offset == last.offset and stored.digest != last.digest:
                raise self._refused(newest, f"partition {facts.partition} has another log since")

    def _remaining(self, state: TableState) -> tuple[SliceFacts, ...]:
        """The slices that a table in this state does not hold yet.

        Partitions are left out that another run has loaded into the middle of a slice, or that begin at offset 0 since
        another run began the table, or a rewind restored it. The next step of this run plans them again (fault U05).
        """
        covered = state.covered
        new = sorted(
            (facts for facts in self.facts if not is_covered(facts.offsets, covered)), key=lambda facts: facts.offsets
        )
        remaining: list[SliceFacts] = []
        for partition, slices in groupby(new, key=lambda facts: facts.partition):
            of_partition = list(slices)
            ranges = [facts.offsets for facts in of_partition]
            if partition in covered:
                is_overtaken = self._is_overtaken(covered, ranges)
            else:
                begins_at_0 = bool(covered) and partition not in {*self.state.covered, *state.start_times}
                is_overtaken = begins_at_0 and ranges[0].start > 0
            if not is_overtaken:
                remaining += of_partition
        return tuple(remaining)

    def _is_overtaken(self, covered: Coverage, ranges: Sequence[OffsetRange]) -> bool:
        """Whether another run loaded a partition so that this run's ranges of it no longer adjoin."""
        partition = ranges[0].partition
        if partition not in self.state.covered:  # the other run began it, perhaps at another offset
            return not _adjoin(ranges, covered[partition])
        return any(offsets.start < edge < offsets.stop for offsets in ranges for edge in covered[partition])

    def _check_epochs(self, state: TableState, newest: TableSnapshot, ranges: Sequence[OffsetRange]) -> None:
        """Check that other commits have not moved a cursor under another leader.

        The epoch in the ledger stands for all offsets up to the cursor. If this run and the other read the log under
        two leaders, neither epoch does, and a truncation between the two would not be noticed (fault B04).
        """
        for partition in sorted({offsets.partition for offsets in ranges if not is_backfill(offsets, state.covered)}):
            moved = _cursor_and_epoch(state, partition) != _cursor_and_epoch(self.state, partition)
            if moved and state.epochs.get(partition) != self.epochs.get(partition):
                raise self._refused(newest, f"partition {partition} has another leader since")

    def _state_in(self, newest: TableSnapshot) -> TableState:
        entry = newest.entry
        if entry is None or entry.topic.incarnation == self.state.findings.replaced:
            return self.state
        if entry.topic != self.state.topic:
            raise self._refused(newest, f"the table holds incarnation {entry.topic.incarnation} now")
        if not entry.state.routes.continued_by(self.state.routes):
            raise self._refused(newest, "with other routes")
        return replace(state_after(entry, self.state), routes=self.state.routes)

    def _refused(self, newest: TableSnapshot, why: str) -> LoadError:
        rival = f"run {newest.entry.run}" if newest.entry else "another writer"
        return CommitRefused(f"{rival} committed first ({why}); run again", self.state.topic.where)


def columns_to_add(state: TableState, snapshot: TableSnapshot, of_files: pa.Schema) -> tuple[DeltaField, ...]:
    """The columns that a change's files have, and that the table of the snapshot lacks, or marks otherwise.

    Raises:
        CommitRefused: another run has added a different column of the same name.
    """
    layout = snapshot.layout
    try:
        missing = missing_columns(layout.values, of_files, layout.taken)
    except ColumnConflict as conflict:
        rival = f"run {snapshot.entry.run}" if snapshot.entry else "another writer"
        raise CommitRefused(f"{rival} committed first ({conflict}); run again", state.topic.where) from conflict
    return tuple(delta_fields(with_changed_marks(missing, layout.values, of_files)))


def state_after(entry: LedgerEntry, state: TableState) -> TableState:
    """The state that another run's entry left, with the ids that this run knows; `state` is the one of its plan.

    A topic id that the entry lacks is left out: this run has not compared the logs with what the other run left.

    Raises:
        CommitRefused: the other run has loaded another incarnation of the topic.
    """
    now, findings = entry.state, state.findings
    if findings.adopted is not None and now.ids == findings.adopted:
        if "on_recreated" in findings.followed:
            # The epochs and messages of the former topic say nothing about the new one, so the plan dropped them.
            return replace(state, covered=now.covered)
        ids = replace(state.ids, topic_id=now.ids.topic_id)
        return replace(state, ids=ids, covered=now.covered, epochs=now.epochs, last_messages=now.last_messages)
    difference = state.ids.difference(now.ids)
    if difference:
        raise CommitRefused(f"run {entry.run} loaded another topic ({difference}); run again", state.topic.where)
    return replace(now, ids=now.ids.learned_except_topic_id(state.ids))


def _before_cursors(state: TableState) -> LastMessages:
    """The last messages that are still in the table."""
    return {
        partition: message
        for partition, message in state.last_messages.items()
        if partition in state.covered and message.offset < state.covered[partition][1]
    }


def _cursor_and_epoch(state: TableState, partition: BrokerPartition) -> tuple[int | None, int | None]:
    return state.covered[partition][1] if partition in state.covered else None, state.epochs.get(partition)


def _adjoin(ranges: Sequence[OffsetRange], covered: tuple[int, int]) -> bool:
    """Whether the ranges of one partition extend what is covered of it without a hole."""
    try:
        extended({ranges[0].partition: covered}, ranges)
    except NotAdjoining:
        return False
    return True
