"""The second stage of a load: the topic and its table agree, or the user chose how to continue."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_io.errors import LocatedError
from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.commit.replacement import CutChange
from pipelines.identity.divergence import Divergence, DivergenceSearch
from pipelines.identity.identity import check_divergence, check_epochs, with_topic_id
from pipelines.identity.truncation import check_incarnation, compare_logs, lost_offsets, take_back, vanished_partitions
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


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The state after the comparison, where logs diverged from the table, and why logs could not be compared."""

    state: TableState
    divergences: Mapping[BrokerPartition, Divergence]
    errors: Mapping[BrokerPartition, LocatedError]


def reconcile(run: Run, discovered: Discovered) -> Reconciled:
    """Compare the topic with its table. What logs have lost is taken back if the user chose so, in its own commit.

    Raises:
        TopicRecreated: a log is another one, and the user made no choice.
        PartitionsVanished: partitions are gone, and the user made no choice.
        KafkaIOError: a log may be another one, and cannot be searched.
        LoadError: rows could not be taken back.
    """
    compared = compare(run, discovered)
    snapshot, state = discovered.snapshot, compared.state
    topic = discovered.topic.with_ids(state.ids.learned(discovered.topic.ids))
    known = _without(discovered.bounds, compared.errors)
    if state.findings.replaced:
        # Another run may have begun a newer incarnation since this run read the topic, or a broker has old metadata.
        check_incarnation(run.cluster, topic, known)
    warnings = vanished_partitions(state.covered, topic, run.choices)
    lost, truncated = lost_offsets(run.cluster, state, known, run.choices, compared.divergences)
    choices = tuple(RecordedChoice.of("on_truncated", run.choices.on_truncated, offsets) for offsets in lost)
    if lost:
        # The logs of another incarnation are no reason to take rows back (fault B05).
        check_incarnation(run.cluster, topic, [offsets.partition for offsets in lost])
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
        warnings=(*warnings, *map(str, choices)),
    )


def compare(run: Run, discovered: Discovered) -> _Comparison:
    """Compare the logs with the table: by leader epochs, and by messages where no topic id identifies the topic.

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
        # Only here the topic id may be learned: later loads trust it, and compare no messages (fault P11).
        state = with_topic_id(state, bounds)
    state = check_divergence(snapshot, state, comparison.divergences, run.choices)
    # The rows of a former topic that was replaced or adopted by choice are no rows that this log has lost.
    divergences = {} if state.findings.replaced or state.findings.adopted else comparison.divergences
    return _Comparison(state, divergences, comparison.errors)


def _without(bounds: AllBounds, partitions: Mapping[BrokerPartition, object]) -> AllBounds:
    return {partition: bound for partition, bound in bounds.items() if partition not in partitions}
