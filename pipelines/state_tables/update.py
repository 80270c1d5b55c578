"""Brings the state table of a topic up to date, in one commit with its progress.

An increment that only appends to the ends of partitions is merged: each of its rows is newer than what the state knows
of its partition. Every other increment, for example one with a replay or a backfill, changes the past of keys. Then the
keys of its rows, and of the rows that are not there any more, are computed again from the topic's table. If the files
with the old rows were deleted, all keys are.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipelines.increments.attempts import MAX_ATTEMPTS, with_attempts
from pipelines.increments.delta_output import DeltaWriter
from pipelines.increments.difference import LedgerDifference
from pipelines.increments.increment import Increment, read_both
from pipelines.increments.output import OutputChange
from pipelines.increments.source import NOTHING
from pipelines.ledger.incarnations import effective_entries
from pipelines.ledger.ledger import Coverage, LedgerEntry
from pipelines.state_tables.changes import KeyComparison
from pipelines.state_tables.files import StateFiles
from pipelines.state_tables.merge import ProgressWrite, StateMerge
from pipelines.state_tables.older_cells import OlderCells
from pipelines.state_tables.state_table import StateDefinition, state_output
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import SourceFilesCleaned
from resources.failpoints import failpoint
from resources.settings.topic_options import TopicOptions

CONSUMER = "state"
DEFINITION, INCARNATIONS, UNAVAILABLE = "definition", "incarnations", "unavailable"
"""The numbers that the state table keeps with its progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdate:
    """A result of `penstock state`. `since` and `version` are versions of the topic's table; -1 if there was none.

    Without a change, `since` and `version` are the same.

    Args:
        topic: the topic.
        table: the URI of the state table.
        since: the version of the topic's table that the state table had.
        version: the version that it has now.
        rebuilt: whether all keys were computed from the topic's table.
        recomputed: whether the keys that changed were.
        changed: how many keys have another row than before.
        added: how many of these are new.
    """

    topic: str
    table: str
    since: int
    version: int
    rebuilt: bool = False
    recomputed: bool = False
    changed: int = 0
    added: int = 0
    removed: int = 0
    """The numbers of keys: those with another row than before, those of them that are new, those without a row now."""


def update_state(
    table: LakeTable,
    topic: TopicOptions,
    *,
    rebuild: bool = False,
    attempts: int = MAX_ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
) -> StateUpdate:
    """Bring the state table up to date. If another process was first, or the store fails for a time, do it again.

    Args:
        table: the topic's table.
        topic: the settings of the topic, which have a state table.
        rebuild: compute all keys again.
        attempts: how often to try.
        sleep: waits between attempts.

    Raises:
        TableMissing: the topic has no table.
        SourceChanged: the state table was made from another table of the topic; build it again.
        OutputRefused: the topic's table cannot have this state table, or the memory is not enough.
        LoadError: a table cannot be read or written.
    """

    def attempt() -> StateUpdate:
        try:
            return _run(table, topic, rebuild=rebuild)
        except SourceFilesCleaned:
            failpoint("state rebuild begun")
            return _run(table, topic, rebuild=True)

    return with_attempts(attempt, attempts, sleep=sleep)


def _run(table: LakeTable, topic: TopicOptions, *, rebuild: bool) -> StateUpdate:
    """Try once to bring the state table up to date."""
    source, writer = read_both(table, CONSUMER, state_output(table).begin)
    since = writer.progress.version
    result = StateUpdate(topic=table.where.topic or "", table=writer.output.uri, since=since, version=since)
    if source.snapshot.entry is None:
        return result
    definition = StateDefinition.of(topic, source.snapshot)
    rebuild = rebuild or writer.progress == NOTHING or writer.mark(DEFINITION) != definition.number
    increment = Increment(source=source, writer=writer, consumer=CONSUMER, on_replaced="apply")
    increment.difference = source.difference(NOTHING if rebuild else writer.progress)
    failpoint("increment known")
    if not (increment or rebuild):
        return _without_change(result, increment, writer)
    update = _Update(increment=increment, writer=writer, topic=topic, definition=definition, rebuild=rebuild)
    return replace(result, version=source.snapshot.version, rebuilt=rebuild, **update.run())


def _without_change(result: StateUpdate, increment: Increment, writer: DeltaWriter) -> StateUpdate:
    """The result of an increment without rows. The progress moves on over compactions.

    Otherwise housekeeping would delete the files of the version that the state table has (fault E04).
    """
    progress = increment.source.progress
    if progress != writer.progress:
        summary = increment.summary()
        writer.commit(OutputChange(rows=ProgressWrite(), removed="", scope="", progress=progress, summary=summary))
    return replace(result, since=progress.version, version=progress.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Update:
    """One attempt: an increment, and the state table as it was when the increment began."""

    increment: Increment
    writer: DeltaWriter
    topic: TopicOptions
    definition: StateDefinition
    rebuild: bool

    def run(self) -> Mapping[str, Any]:
        """Commit the state that follows from the increment; returns facts about the commit."""
        before = None if self.rebuild else self._entry_before()
        if before is not None and only_appends(self.increment.difference, before.covered):
            facts = self._updated(before)
            if facts is not None:
                return facts
        facts = self._updated(None)
        assert facts is not None
        return facts

    def _updated(self, before: LedgerEntry | None) -> Mapping[str, Any] | None:
        """The same with the newest entry that the state table knows, or with all rows of the topic's table.

        None if the rows of the state table are not enough.
        """
        appends, numbers = before is not None, self._incarnations(before)
        assert self.topic.state is not None
        with KeyComparison(self.definition, numbers, self.topic.state.memory_mib) as comparison:
            files = StateFiles.of(self.writer.output.uri, self.writer.output.options, self.writer.opened)
            source, present = self._source(complete=not appends), replace(files, files=()) if self.rebuild else files
            self._compare(comparison, source, present, appends=appends)
            cells = OlderCells(comparison=comparison)
            seen_before = not self.rebuild and self.writer.mark(UNAVAILABLE) == 1
            if appends and cells.need_history(seen_before=seen_before):
                return None
            merge = StateMerge(
                definition=self.definition,
                comparison=comparison,
                cells=cells,
                rows=source.arrow,
                present=present,
                replaces_all=self.rebuild or self._has_new_columns(),
            )
            marks = {INCARNATIONS: len({0, *numbers.values()}), UNAVAILABLE: int(seen_before or cells.are_seen())}
            return {"recomputed": not (appends or self.rebuild), **self._commit(merge, marks)}

    def _commit(self, merge: StateMerge, marks: Mapping[str, int]) -> Mapping[str, Any]:
        counts = merge.comparison.counts()
        failpoint("state rows decided")
        progress = self.increment.source.progress
        summary = {**self.increment.summary(), **counts}
        marks = {DEFINITION: self.definition.number, **marks}
        personal = self.definition.layout.personal
        self.writer.commit(
            OutputChange(
                rows=merge, removed="", scope="", progress=progress, summary=summary, marks=marks, personal=personal
            )
        )
        return counts

    def _compare(self, comparison: KeyComparison, source: Increment, present: StateFiles, *, appends: bool) -> None:
        definition, increment = self.definition, self.increment
        recomputes = not (appends or self.rebuild)
        if recomputes:
            keys = list(definition.keys)
            comparison.take_touched(increment.arrow(keys), increment.removed(keys))
        comparison.take_rows(source.arrow(definition.compared_columns), only_touched=recomputes)
        failpoint("state rows read")
        comparison.take_present(present)
        comparison.decide(with_present=appends)

    def _source(self, *, complete: bool) -> Increment:
        """The increment, or one with all rows of the topic's table."""
        if not complete or self.rebuild:
            return self.increment
        return replace(self.increment, difference=self.increment.source.difference(NOTHING))

    def _entry_before(self) -> LedgerEntry | None:
        """The newest entry of the topic's table in the version from which the state table was made."""
        made_from = TableSnapshot(version=self.writer.progress.version, entry=None)
        return next((entry for _, entry in self.increment.source.table.entries(made_from)), None)

    def _incarnations(self, before: LedgerEntry | None) -> Mapping[int, int]:
        """The numbers of the incarnations by loading time; empty if all rows, since `before` too, have one."""
        source = self.increment.source
        newest = source.snapshot.entry
        if before and newest and before.topic == newest.topic and self.writer.mark(INCARNATIONS) == 1:
            return {}
        return incarnation_numbers(source.table.entries(source.snapshot))

    def _has_new_columns(self) -> bool:
        opened = self.writer.opened
        return opened is not None and not opened.schema().equals(self.definition.schema)


def only_appends(difference: LedgerDifference, covered: Coverage) -> bool:
    """Whether all offsets come after those that were there: no replay, no rewind, no cut and no backfill."""
    if difference.removed or difference.replaced:
        return False
    spans = (span.offsets for span in difference.new)
    return all(offsets.partition not in covered or offsets.start >= covered[offsets.partition][1] for offsets in spans)


def incarnation_numbers(entries: Iterable[tuple[int, LedgerEntry]]) -> dict[int, int]:
    """The number of the incarnation of the topic, by loading time: 0 for the newest, -1 for the one before it, ...

    The order of the entries decides, which are newest first, and not the loading times: clocks of loaders differ
    (fault A06). Loads see to it that no two incarnations have a loading time in common.
    """
    numbers, by_time = dict[str, int](), dict[int, int]()
    for _, entry in effective_entries(entries):
        number = numbers.setdefault(entry.topic.incarnation, -len(numbers))
        for committed in entry.ranges:
            by_time.setdefault(committed.loaded_at_us, number)
    return by_time
