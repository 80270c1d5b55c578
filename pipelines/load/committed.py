"""The last stage of a load: the files and the offsets that they cover are visible in the table."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import CommitResult, LoadChange, commit, committable
from pipelines.fetch.slice_fetcher import microseconds
from pipelines.layout.columns import NO_COLUMNS
from pipelines.ledger.coverage import begun_earlier, common
from pipelines.ledger.ledger import Coverage, RecordedChoice
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.discovered import TopicTable
from pipelines.load.fetched import Fetched
from pipelines.load.planned import Planned
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.plan.plan import RunTarget
from pipelines.plan.valid_through import TimesOfLoad, log_answers
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import LakeUnavailable
from resources.failpoints import failpoint
from resources.stores.store_errors import is_full


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTable:
    """The result of the commit of a step to one table.

    Args:
        table: the table before the commit.
        change: what the step wanted to commit.
        result: what was committed.
    """

    table: TopicTable
    change: LoadChange
    result: CommitResult

    @property
    def covered(self) -> Coverage:
        """What the table covers now."""
        return self.result.covered_after(self.change.state)

    @property
    def overtaken(self) -> set[BrokerPartition]:
        """The partitions with slices that were not committed, because another run was first."""
        committed = {facts.offsets for facts in self.result.committed}
        return {facts.partition for facts in self.change.facts if facts.offsets not in committed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Stage):
    """The results of the commits of a step.

    Args:
        fetched: the fourth stage.
        tables: the result for each table of the topic. Its own table is the last one.
        left: the number of offsets that the topic's own table did not get, because other tables did not get them.
    """

    fetched: Fetched
    tables: tuple[CommittedTable, ...]
    left: int

    @property
    def change(self) -> LoadChange:
        """The change that the step wanted for the topic's own table."""
        return self.tables[-1].change

    @property
    def result(self) -> CommitResult:
        """The result of the commit to the topic's own table."""
        return self.tables[-1].result

    @property
    def covered(self) -> Coverage:
        """The offsets that all tables of the topic cover now."""
        own = self.tables[-1].covered
        return common([table.covered for table in self.tables]) if self.tables[1:] else own

    def next_target(self, failed: Collection[BrokerPartition]) -> RunTarget:
        """What is left for the next steps of the run, which load no partition that has `failed` (fault N07)."""
        planned, change = self.fetched.planned, self.change
        again = self.fetched.led_by_others
        # Offsets of these partitions that were not even fetched: the next step asks the new leader for its bounds.
        fetched = {slice_facts.offsets for slice_facts in change.facts}
        of_others = (offsets for offsets in planned.step.slices if offsets.partition in again)
        left = [offsets.size for offsets in of_others if offsets not in fetched]
        before = planned.reconciled.state.covered
        begun = begun_earlier(change.fetched_ranges, before, self.covered, planned.target.window.ends)
        target = replace(planned.target, changes=planned.target.changes + bool(again))
        overtaken = self.result.overtaken(change.facts) + sum(left) + self.left
        return target.after(planned.step, overtaken=overtaken, more=sum(begun), failed=set(failed) - again)


def commit_step(run: Run, fetched: Fetched) -> Committed:
    """Commit the slices of a step that adjoin what the tables cover: first to other tables, then to the topic's own.

    If another run was first in one table, the other tables do not get these partitions either: the next step compares
    the logs with all of them, and loads what one of them lacks.

    Raises:
        LoadError: see `commit`.
    """
    reconciled = fetched.planned.reconciled
    done: list[CommittedTable] = []
    overtaken: set[BrokerPartition] = set()
    left = 0
    # The topic's own table is the last one. A run that is killed in between leaves tables that are ahead, and the next
    # run plans from the offset that all of them have reached (fault P23).
    for table in reconciled.tables:
        change = _change(run, fetched, table)
        wanted = tuple(facts for facts in change.facts if facts.partition not in overtaken)
        left = sum(facts.offsets.size for facts in change.facts) - sum(facts.offsets.size for facts in wanted)
        change = replace(change, facts=wanted)
        done.append(CommittedTable(table=table, change=change, result=_committed(fetched, table, change)))
        overtaken |= done[-1].overtaken
    failpoint("loaded")
    own = done[-1]
    is_overtaken = own.result.overtaken_by and own.change.facts
    warnings = [f"run {own.result.overtaken_by} committed the same offsets first"] if is_overtaken else []
    for each in done:
        decoding = fetched.decodings[each.table.route]
        warnings += [*decoding.event_time_warnings(), *map(str, each.change.choices)]
    return Committed(fetched=fetched, tables=tuple(done), left=left, warnings=tuple(warnings))


def _committed(fetched: Fetched, table: TopicTable, change: LoadChange) -> CommitResult:
    """Commit a change to its table, if there is one.

    Raises:
        LoadError: see `commit`.
    """
    # Without slices an entry is written only for what must not be forgotten: an adopted topic, a later event time.
    if change.facts or change.state.findings.adopted or change.times.is_due(change.state):
        result = _commit(table.table, table.snapshot, change)
    else:
        result = CommitResult(version=table.snapshot.version)
    # Slices behind a failed one are in no commit (fault E21). Files that another run made superfluous stay for `clean`.
    if fetched.failed:
        named = {file.path for facts in result.committed for file in facts.files}
        unnamed = [
            facts for facts in fetched.facts_of(table.route) if named.isdisjoint(file.path for file in facts.files)
        ]
        table.table.discard(unnamed)
    return result


def _commit(table: TableStore, snapshot: TableSnapshot, change: LoadChange) -> CommitResult:
    """Commit the change. If the disk is full, so that nothing can have landed, its files are deleted (fault E21).

    Raises:
        LoadError: see `commit`.
    """
    try:
        return commit(table, snapshot, change)
    except LakeUnavailable as error:
        if is_full(error):
            table.discard(change.facts)  # after any other failure the commit may have landed, and names the files
        raise


def _change(run: Run, fetched: Fetched, table: TopicTable) -> LoadChange:
    """The commit of the facts of a table that adjoin what it covers."""
    planned, decoding = fetched.planned, fetched.decodings[table.route]
    state, bounds = table.state, planned.reconciled.bounds
    ready = committable(fetched.facts_of(table.route), state.covered)
    loaded = {slice_facts.offsets.partition for slice_facts in ready if slice_facts.offsets.size}
    # Where a slice is committed, no empty one has to record where the partition begins.
    committed = tuple(part for part in ready if part.offsets.size or part.offsets.partition not in loaded)
    partitions = {slice_facts.offsets.partition for slice_facts in committed}
    times = times_of(run, planned, state.topic.name)
    window = planned.target.window
    # The first offset of these partitions is not known. The ledger stores the time that the user chose as their start,
    # because the next run may have no `--from` (fault P02).
    unknown = [id_ for id_ in times.partitions if id_ not in window.begins or id_ in planned.step.errors]
    return LoadChange(
        state=state,
        facts=committed,
        epochs={partition: bounds[partition].epoch for partition in partitions if bounds[partition].epoch >= 0},
        start_times=window.start_times(unknown),
        choices=(*planned.step.choices(state), *_missing_choices(committed), *_skip_choices(committed)),
        run=run.id,
        columns=decoding.plan.stored if decoding.plan else NO_COLUMNS,
        schemas=decoding.schema_ids,
        rules=decoding.rules.recorded(),
        times=times,
    )


def times_of(run: Run, planned: Planned, name: str) -> TimesOfLoad:
    """The answers from which this step computes the event time of the table of this name.

    They count as given when the step began, before the first question: records that came later are not in them.
    """
    reconciled, step = planned.reconciled, planned.step
    answers = log_answers(reconciled.bounds, microseconds(reconciled.discovered.began) // 1000)
    without = {*step.errors, *(offsets.partition for offsets in step.skipped)}
    partitions, format_ = reconciled.topic.partitions, run.topics.format_of(name)
    return TimesOfLoad.of(format_, partitions, planned.target.answers, answers, without=without)


def _skip_choices(committed: Sequence[SliceFacts]) -> Iterator[RecordedChoice]:
    """The choices by which records that cannot be read are skipped."""
    return (choice for slice_facts in committed for choice in slice_facts.observed.skipped)


def _missing_choices(committed: Sequence[SliceFacts]) -> Iterator[RecordedChoice]:
    """The choices by which missing offsets are skipped."""
    for slice_facts in committed:
        if slice_facts.observed.holes:
            yield RecordedChoice.of("on_missing", "skip", slice_facts.observed.holes)
