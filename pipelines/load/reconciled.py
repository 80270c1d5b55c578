"""The second stage of a load: the topic and its table agree, or the user chose how to continue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_io.errors import LeaderMoved, LocatedError
from kafka_io.model import BrokerPartition, OffsetRange, TopicEntry
from pipelines.commit.replacement import CutChange
from pipelines.identity.divergence import DivergenceSearch
from pipelines.identity.identity import check_divergence, check_epochs, with_topic_id
from pipelines.identity.truncation import (
    LogComparison,
    check_incarnation,
    compare_logs,
    erased_again,
    erased_before,
    lost_offsets,
    take_back,
    vanished_partitions,
)
from pipelines.ledger.coverage import common
from pipelines.ledger.ledger import RecordedChoice, TableState
from pipelines.load.discovered import Discovered, TopicTable
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.plan.window import AllBounds
from pipelines.table.table_store import TableSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled(Stage):
    """The topic and its tables, which agree. The errors are those of partitions for which this is not known.

    Args:
        discovered: the first stage.
        topic: the topic, with the ids that the table knows.
        tables: the tables from which the load continues: after a cut, the versions with the cut. The topic's own table
            is the last one.
        known_bounds: the bounds of partitions whose log could be compared.
        bounds: those of partitions that can be loaded: their log is the one of the tables.
    """

    discovered: Discovered
    topic: TopicEntry
    tables: tuple[TopicTable, ...]
    known_bounds: AllBounds
    bounds: AllBounds

    @property
    def snapshot(self) -> TableSnapshot:
        """The version of the topic's own table from which the load continues."""
        return self.tables[-1].snapshot

    @property
    def state(self) -> TableState:
        """The state of the topic's own table, with what all tables of the topic cover."""
        state = self.tables[-1].state
        covered = common([table.state.covered for table in self.tables]) if self.tables[1:] else state.covered
        return replace(state, covered=covered)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """A table whose topic was compared with it.

    Args:
        table: the table, with its state after the comparison.
        topic: the topic, with the ids that the table knows.
        known: the bounds of partitions whose log could be compared.
        lost: the offsets that the logs have lost, and that are taken back.
        errors: the errors of brokers whose logs could not be compared.
        truncated: the errors of partitions whose logs have lost offsets, without a choice of the user.
        warnings: sentences for the user.
    """

    table: TopicTable
    topic: TopicEntry
    known: AllBounds
    lost: tuple[OffsetRange, ...]
    errors: Mapping[BrokerPartition, LocatedError]
    truncated: Mapping[BrokerPartition, LocatedError]
    warnings: Sequence[str]

    def lost_from(self, ends: Mapping[BrokerPartition, int]) -> tuple[OffsetRange, ...]:
        """The offsets of the table from these ends on."""
        covered = self.table.state.covered
        lost = (OffsetRange(id_, ends[id_], covered[id_][1]) for id_ in sorted(covered.keys() & ends.keys()))
        return tuple(offsets for offsets in lost if offsets.size > 0)


def reconcile(run: Run, discovered: Discovered) -> Reconciled:
    """Compare the topic with its tables. What logs have lost is taken back if the user chose so, in own commits.

    Raises:
        TopicRecreated: a log is another one, and the user made no choice.
        PartitionsVanished: partitions are gone, and the user made no choice.
        KafkaIOError: a log may be another one, and cannot be searched.
        LoadError: rows could not be taken back.
    """
    compared = [_compared(run, discovered, table) for table in discovered.tables]
    ends: dict[BrokerPartition, int] = {}
    for offsets in (offsets for each in compared for offsets in each.lost):
        ends[offsets.partition] = min(offsets.start, ends.get(offsets.partition, offsets.start))
    tables: list[TopicTable] = []
    taken_back: list[str] = []
    for each in compared:
        table, sentences = _without_lost(run, each, ends)
        tables.append(table)
        taken_back += sentences
    known = _without(discovered.bounds, {id_: None for each in compared for id_ in each.errors})
    truncated = {id_: error for each in compared for id_, error in each.truncated.items()}
    errors = {id_: error for each in compared for id_, error in each.errors.items()}
    return Reconciled(
        discovered=discovered,
        topic=compared[-1].topic,
        tables=tuple(tables),
        known_bounds=known,
        bounds=_without(known, truncated),
        errors={**errors, **truncated},
        warnings=(*(sentence for each in compared for sentence in each.warnings), *taken_back),
    )


def _compared(run: Run, discovered: Discovered, table: TopicTable) -> _Compared:
    """The table after the comparison of the logs with it.

    Raises:
        TopicRecreated, PartitionsVanished, KafkaIOError: see `reconcile`.
    """
    state, comparison = compare(run, discovered, table)
    topic = discovered.topic.with_ids(state.ids.learned(discovered.topic.ids))
    known = _without(discovered.bounds, comparison.errors)
    if state.findings.replaced:
        # Another run may have begun a newer incarnation since this run read the topic, or a broker has old metadata.
        check_incarnation(run.cluster, topic, known)
    warnings = vanished_partitions(state.covered, topic, run.choices)
    if state.findings.replaced:
        warnings += erased_before(table.table, table.snapshot)
    lost, truncated = lost_offsets(state, known, run.choices, comparison)
    # The logs of another incarnation are no reason to take rows back, and it is not a truncation (faults B05, B17).
    # From 3.1 on, its leader says that it has no topic with the former id.
    moved = {id_ for id_, error in comparison.errors.items() if isinstance(error, LeaderMoved)}
    if suspected := {*truncated, *moved, *(offsets.partition for offsets in lost)}:
        check_incarnation(run.cluster, topic, suspected)
    return _Compared(
        table=replace(table, state=replace(state, routes=table.state.routes)),  # also if it begins again
        topic=topic,
        known=known,
        lost=lost,
        errors=comparison.errors,
        truncated=truncated,
        warnings=warnings,
    )


def _without_lost(
    run: Run, compared: _Compared, ends: Mapping[BrokerPartition, int]
) -> tuple[TopicTable, Sequence[str]]:
    """The table without the offsets that the logs have lost, and sentences about what was taken back.

    All tables of the topic are cut at the same offsets: a record that the log has written again can belong to another
    of them than the former one.

    Raises:
        LoadError: rows could not be taken back.
    """
    table, lost = compared.table, compared.lost_from(ends)
    if not lost:
        return table, tuple(erased_again(table.table, table.snapshot))
    choices = tuple(RecordedChoice.of("on_truncated", run.choices.on_truncated, offsets) for offsets in lost)
    cut = CutChange(state=table.state, ranges=lost, run=run.id, choices=choices)
    snapshot, state = take_back(table.table, table.snapshot, cut)
    return replace(table, snapshot=snapshot, state=state), [*map(str, choices), *erased_again(table.table, snapshot)]


def compare(run: Run, discovered: Discovered, table: TopicTable) -> tuple[TableState, LogComparison]:
    """The state after the comparison of the logs with a table, and the comparison.

    Raises:
        TopicRecreated: a log is another one, and the user made no choice.
        KafkaIOError: a log may be another one, and cannot be searched.
    """
    snapshot, bounds = table.snapshot, discovered.bounds
    state = check_epochs(snapshot, table.state, bounds, run.choices)
    search = DivergenceSearch(cluster=run.cluster, table=table.table, snapshot=snapshot, state=state)
    # An idle log proves an event time only if it is the log of the table.
    with_idle = run.topics.format_of(state.topic.name).event_time is not None
    loads_older = run.window.since is not None
    comparison = compare_logs(search, bounds, run.choices, loads_older=loads_older, with_idle=with_idle)
    if comparison.all_same:
        state = with_topic_id(state, bounds)
    state = check_divergence(snapshot, state, comparison.divergences, run.choices)
    if "on_recreated" in state.findings.followed:
        # The rows of a former topic that was replaced or adopted by choice are no rows that this log has lost. The logs
        # of an adopted cluster are those of the table, so what they lack is lost (fault N17).
        comparison = replace(comparison, divergences={}, truncated={}, outdated=frozenset())
    return state, comparison


def _without(bounds: AllBounds, partitions: Mapping[BrokerPartition, object]) -> AllBounds:
    return {partition: bound for partition, bound in bounds.items() if partition not in partitions}
