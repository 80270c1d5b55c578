"""The second stage of a load: the topic and its table agree, or the user chose how to continue."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kafka_io.errors import LeaderMoved
from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.commit.replacement import CutChange
from pipelines.identity.divergence import DivergenceSearch
from pipelines.identity.identity import check_divergence, check_epochs, with_topic_id
from pipelines.identity.truncation import (
    LogComparison,
    check_incarnation,
    compare_logs,
    erased_again,
    lost_offsets,
    take_back,
    vanished_partitions,
)
from pipelines.ledger.ledger import RecordedChoice, TableState
from pipelines.load.discovered import Discovered
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.plan.window import AllBounds
from pipelines.table.table_store import TableSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled(Stage):
    """The topic and its table, which agree. The errors are those of partitions for which this is not known.

    Args:
        discovered: the first stage.
        topic: the topic, with the ids that the table knows.
        snapshot: the version of the table from which the load continues: after a cut, the version with the cut.
        state: the state of the table at this version.
        known_bounds: the bounds of partitions whose log could be compared.
        bounds: those of partitions that can be loaded: their log is the one of the table.
    """

    discovered: Discovered
    topic: TopicEntry
    snapshot: TableSnapshot
    state: TableState
    known_bounds: AllBounds
    bounds: AllBounds


def reconcile(run: Run, discovered: Discovered) -> Reconciled:
    """Compare the topic with its table. What logs have lost is taken back if the user chose so, in its own commit.

    Raises:
        TopicRecreated: a log is another one, and the user made no choice.
        PartitionsVanished: partitions are gone, and the user made no choice.
        KafkaIOError: a log may be another one, and cannot be searched.
        LoadError: rows could not be taken back.
    """
    state, compared = compare(run, discovered)
    snapshot = discovered.snapshot
    topic = discovered.topic.with_ids(state.ids.learned(discovered.topic.ids))
    known = _without(discovered.bounds, compared.errors)
    if state.findings.replaced:
        # Another run may have begun a newer incarnation since this run read the topic, or a broker has old metadata.
        check_incarnation(run.cluster, topic, known)
    warnings = vanished_partitions(state.covered, topic, run.choices)
    lost, truncated = lost_offsets(state, known, run.choices, compared)
    choices = tuple(RecordedChoice.of("on_truncated", run.choices.on_truncated, offsets) for offsets in lost)
    # The logs of another incarnation are no reason to take rows back, and it is not a truncation (faults B05, B17).
    # From 3.1 on, its leader says that it has no topic with the former id.
    moved = {id_ for id_, error in compared.errors.items() if isinstance(error, LeaderMoved)}
    if suspected := {*truncated, *moved, *(offsets.partition for offsets in lost)}:
        check_incarnation(run.cluster, topic, suspected)
    erased = tuple(erased_again(discovered.table, snapshot, state, lost, known))
    if lost:
        cut = CutChange(state=state, ranges=lost, run=run.id, choices=choices)
        snapshot, state = take_back(discovered.table, snapshot, cut)
    return Reconciled(
        discovered=discovered,
        topic=topic,
        snapshot=snapshot,
        state=state,
        known_bounds=known,
        bounds=_without(known, truncated),
        errors={**compared.errors, **truncated},
        warnings=(*warnings, *map(str, choices), *erased),
    )


def compare(run: Run, discovered: Discovered) -> tuple[TableState, LogComparison]:
    """The state after the comparison of the logs with the table, and the comparison.

    Raises:
        TopicRecreated: a log is another one, and the user made no choice.
        KafkaIOError: a log may be another one, and cannot be searched.
    """
    snapshot, bounds = discovered.snapshot, discovered.bounds
    state = check_epochs(snapshot, discovered.state, bounds, run.choices)
    search = DivergenceSearch(cluster=run.cluster, table=discovered.table, snapshot=snapshot, state=state)
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
