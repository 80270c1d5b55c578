"""Checks whether the topic and its table agree: truncated logs, vanished partitions, another incarnation."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import Bounds, BrokerPartition, EpochEnd, OffsetRange, TopicEntry
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.divergence import (
    Divergence,
    DivergenceSearch,
    compare_last_messages,
    has_news,
    unexplained_beginnings,
)
from pipelines.ledger.ledger import CommitKind, Coverage, TableState
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, CursorAheadOfLog, LogTruncated, PartitionsVanished, TopicRecreated
from resources.settings.choices import Choices

_MAX_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LogComparison:
    """How the logs of a topic compare with its table.

    Args:
        divergences: where logs diverged from the table.
        truncated: where leaders say that their logs were truncated, below offsets that the table has.
        outdated: partitions whose leader has an older epoch than the table, although the topic has the same id.
        errors: the errors of brokers whose logs could not be compared.
        all_same: whether each partition of the table was compared, and its log is the one of the table.
    """

    divergences: Mapping[BrokerPartition, Divergence]
    truncated: Mapping[BrokerPartition, int] = field(default_factory=dict)
    outdated: frozenset[BrokerPartition] = frozenset()
    errors: Mapping[BrokerPartition, KafkaIOError]
    all_same: bool

    def lost_from(self, state: TableState, bounds: Mapping[BrokerPartition, Bounds]) -> dict[BrokerPartition, int]:
        """The first offset of the table that each log has lost, and written again. A log may only be shorter."""
        diverged = {
            partition: divergence.offset
            for partition, divergence in self.divergences.items()
            if divergence.common and divergence.offset < min(bounds[partition].latest, state.covered[partition][1])
        }
        # A leader knows exactly where its epochs end, so its answer takes the place of the offset that a search found.
        return {**diverged, **self.truncated}


def compare_logs(
    search: DivergenceSearch,
    bounds: Mapping[BrokerPartition, Bounds],
    choices: Choices,
    *,
    loads_older: bool,
    with_idle: bool,
) -> LogComparison:
    """Compare the logs with the table: by leader epochs, and by messages (faults A01, A02, P11).

    A log that became shorter is searched too. If it was only truncated, the plan refuses it without the user's choice,
    and the other partitions are loaded. `loads_older` says that the load also fetches what lies before the table's
    first offsets. `with_idle` compares idle logs even if nothing is loaded, because the load records that they are
    idle.

    Raises:
        KafkaIOError: a log that differs from the table cannot be searched, so nobody knows whether it is another log.
        CursorAheadOfLog: a log is empty, so nobody knows whether it is another log, and the user made no choice.
    """
    state = search.state
    has_id = state.findings.same_topic_id
    # If anything is loaded, idle partitions are compared again after the fetch. What differs there must be found here,
    # because only here a choice can continue. With a topic id, an idle partition says nothing about the others.
    news = loads_older or has_news(state, bounds)
    idle_too = with_idle or (news and not has_id)
    ends = truncations(search.cluster, state, bounds)
    same, differing, out_of_range, errors = compare_last_messages(
        search.cluster, state, bounds, with_idle=idle_too, doubtful=ends.keys()
    )
    changed = ends.keys() - same
    lost_from = {id_: ends[id_].end for id_ in changed if ends[id_].is_exact}
    lost_from |= {id_: _lost_after_last(search, bounds[id_], id_, ends[id_]) for id_ in ends.keys() & same}
    truncated = {partition: end for partition, end in lost_from.items() if end is not None}
    # Without news this load fetches nothing, so nobody has to know why a log is shorter. The choice to take rows back
    # needs the answer in any case.
    shorter = _shorter_logs(search, bounds, choices) if news or choices.on_truncated == "rewind" else set()
    beginnings = unexplained_beginnings(state, bounds)
    # To look for expired ranges reads the ledger down to its first entry. So only a log that begins at an offset that
    # the table cannot explain leads there.
    divergences = {
        partition: Divergence(offset=bounds[partition].earliest, common=False)
        for partition in (search.with_expired(beginnings) if beginnings else ())
    }
    # Logs whose epochs show where they were truncated need no search. Without a topic id, a log that ends before the
    # cursor is searched in any case: it may belong to another topic, and then its epochs prove nothing.
    unexplained = (differing.keys() | changed) - truncated.keys()
    unexplained |= shorter - truncated.keys() if has_id else shorter
    outdated = _outdated(state, bounds, with_idle=with_idle)
    # A leader that was deposed shows what its log had, so nothing is concluded from its messages without a choice.
    in_doubt = outdated if choices.on_truncated == "fail" else frozenset()
    wanted = unexplained - divergences.keys() - errors.keys() - in_doubt
    divergences |= _searched(search, bounds, ends, wanted, differing=differing, errors=errors)
    # This decides whether the topic id may be learned (fault N05). A partition without bounds, or a log that ends
    # before the cursor, was not compared completely, so the id waits for a later load.
    all_same = news and not divergences and not out_of_range and not errors and not outdated
    for partition, (_, cursor) in state.covered.items():
        all_same = all_same and partition in bounds and cursor <= bounds[partition].latest
    compared = {partition: bound for partition, bound in bounds.items() if partition not in errors}
    return LogComparison(
        divergences=divergences,
        truncated={partition: end for partition, end in truncated.items() if partition in compared},
        outdated=outdated - errors.keys(),
        errors=errors,
        all_same=all_same,
    )


def _searched(
    search: DivergenceSearch,
    bounds: Mapping[BrokerPartition, Bounds],
    ends: Mapping[BrokerPartition, EpochEnd],
    wanted: Collection[BrokerPartition],
    *,
    differing: Mapping[BrokerPartition, int],
    errors: dict[BrokerPartition, KafkaIOError],
) -> dict[BrokerPartition, Divergence]:
    """The offsets at which the logs of `wanted` diverged from the table. Errors of a search are added to `errors`.

    Raises:
        KafkaIOError: a log that differs may belong to another topic, and cannot be searched.
    """
    divergences = {}
    for partition in sorted(wanted):
        try:
            divergence = search.run(partition, bounds[partition], other_at=differing.get(partition))
        except KafkaIOError as error:
            # The log has another message than the table. If it was created again, so were the logs of all partitions.
            if partition in differing and not search.state.findings.same_topic_id:
                raise
            errors[partition] = error
        else:
            end = ends[partition].end if partition in ends else None
            divergences[partition] = divergence if end is None else divergence.at_most(end)
    return divergences


def _lost_after_last(
    search: DivergenceSearch, bound: Bounds, partition: BrokerPartition, epoch: EpochEnd
) -> int | None:
    """The first offset that a log has lost, although it has the last message of the table; None if it has lost nothing.

    `epoch` is where the epoch of the table ends. A commit of an earlier version can have an older epoch than the
    records that it loaded: the leader had changed after the plan. Then the log also has the message at its end
    (fault E09).
    """
    state, end = search.state, epoch.end
    after_last = state.last_messages[partition].offset + 1
    if end is None:  # the offsets behind the last message have no row, so nothing shows whether they are the same
        return after_last if after_last < state.covered[partition][1] else None
    if after_last <= end:
        return end if epoch.is_exact else after_last
    return None if search.has_message_at(partition, bound, end) else end


def _outdated(
    state: TableState, bounds: Mapping[BrokerPartition, Bounds], *, with_idle: bool
) -> frozenset[BrokerPartition]:
    """The partitions whose leader has an older epoch than the table; idle ones only if the load records something."""
    return frozenset(
        partition
        for partition in state.with_older_leader(bounds)
        if with_idle or bounds[partition].latest != state.covered[partition][1]
    )


def _shorter_logs(
    search: DivergenceSearch, bounds: Mapping[BrokerPartition, Bounds], choices: Choices
) -> set[BrokerPartition]:
    """The partitions whose log ends before the cursor, if only messages can show whether it is the table's log.

    After a cut the ledger has no last message of a partition. Then the rows of the table show whether it is the same
    log; those of a typed table lack the bytes of messages. With the same topic id, the plan refuses a shorter log, and
    only the choice to take rows back needs to know where it diverged.

    Raises:
        CursorAheadOfLog: such a log has no messages, and the user made no choice.
    """
    state = search.state
    known = state.covered.keys() if search.has_bytes else state.last_messages.keys()
    if state.findings.same_topic_id and choices.on_truncated == "fail":
        return set()
    ends = {partition: bounds[partition].latest for partition in known & bounds.keys()}
    shorter = {partition for partition, end in ends.items() if end < state.covered[partition][1]}
    empty = {partition for partition in shorter if bounds[partition].earliest >= bounds[partition].latest}
    for partition in sorted(empty if choices.on_truncated == "fail" else ()):
        raise CursorAheadOfLog(
            f"the log is empty and ends at {bounds[partition].latest}, before the committed offset "
            f"{state.covered[partition][1]}: it was truncated, or the topic was created again, so no partition is "
            'loaded; on_truncated = "rewind" takes back what the log has lost',
            state.topic.where.within(Where(partition=str(partition))),
        )
    return shorter - empty


def truncations(
    cluster: Cluster, state: TableState, bounds: Mapping[BrokerPartition, Bounds]
) -> dict[BrokerPartition, EpochEnd]:
    """Partitions whose log differs from what was loaded, with the first offset that differs; see `Cluster.truncations`.

    Only partitions with a new leader epoch are looked up: no log is truncated within one epoch.
    """
    read = {
        partition: (state.covered[partition][1], epoch)
        for partition, epoch in state.epochs.items()
        if partition in bounds and bounds[partition].epoch != epoch
    }
    return cluster.truncations(state.topic.kafka_topic, read)


def lost_offsets(
    state: TableState, bounds: Mapping[BrokerPartition, Bounds], choices: Choices, comparison: LogComparison
) -> tuple[tuple[OffsetRange, ...], dict[BrokerPartition, LogTruncated]]:
    """The offsets that the table holds and the logs have lost, if the user chose to take them back.

    If not, the errors of partitions whose logs were truncated and written again (faults B03, B04), or whose leader has
    an older epoch than the table (fault B02). A log that is only shorter is refused by the plan.
    """
    truncated = comparison.lost_from(state, bounds)
    if choices.on_truncated == "fail":
        return (), {
            **{partition: _truncated_error(state, partition, end) for partition, end in truncated.items()},
            **{partition: _outdated_error(state, partition, bounds[partition]) for partition in comparison.outdated},
        }
    # The user chose to take back whatever the log no longer has, also if the log has only become shorter (fault B03).
    shorter = {
        partition: bound.latest
        for partition, bound in bounds.items()
        if partition in state.covered and bound.earliest <= bound.latest  # the plan refuses other bounds (fault B14)
    }
    ends = {**shorter, **truncated}
    lost = (OffsetRange(partition, end, state.covered[partition][1]) for partition, end in sorted(ends.items()))
    return tuple(offsets for offsets in lost if offsets.size > 0), {}


def _truncated_error(state: TableState, partition: BrokerPartition, end: int) -> LogTruncated:
    return LogTruncated(
        f"offsets [{end}, {state.covered[partition][1]}) are in the table, but the log was truncated at {end} "
        'and written again; on_truncated = "rewind" takes the old rows back',
        state.topic.where.within(Where(partition=str(partition), offset=end)),
    )


def _outdated_error(state: TableState, partition: BrokerPartition, bound: Bounds) -> LogTruncated:
    cursor = state.covered[partition][1]
    return LogTruncated(
        f"the broker has leader epoch {bound.epoch}, but the table was loaded from epoch {state.epochs[partition]}: a "
        "broker that is no longer the leader answers, and the next load continues; or the brokers were put back to an "
        'older copy, and on_truncated = "rewind" takes back what they have lost',
        state.topic.where.within(Where(partition=str(partition), offset=cursor)),
    )


def erased_again(table: TableStore, snapshot: TableSnapshot) -> Iterator[str]:
    """Sentences about erased rows that runs have taken back since the last load, and that the next one may fetch again.

    A run can end between its cut and its report. So each load says it, until one has committed (fault Y11).
    """
    if snapshot.entry is None or snapshot.entry.kind is CommitKind.LOAD:
        return
    for _, entry in table.entries(snapshot):
        if entry.kind in {CommitKind.LOAD, CommitKind.REWIND}:
            return
        yield from (choice.reason for choice in entry.choices if choice.reason and entry.kind is CommitKind.CUT)


def erased_before(table: TableStore, snapshot: TableSnapshot) -> Iterator[str]:
    """A sentence about erased rows of former topics: the records of a new topic can be theirs again (fault Y11)."""
    if any(entry.kind is CommitKind.ERASE for _, entry in table.entries(snapshot)):
        yield (
            "rows of former topics of this name were erased; if the new topic has their records again, the load brings "
            "them back: run `penstock erase` again"
        )


def take_back(table: TableStore, snapshot: TableSnapshot, change: CutChange) -> tuple[TableSnapshot, TableState]:
    """Take offsets that the logs have lost out of the table, in a commit of its own; returns the table after it.

    Raises:
        CommitRefused: another run committed meanwhile.
    """
    commit(table, snapshot, change)
    newest = table.newer(snapshot)
    # The cut must be the only commit since the snapshot. Another run may have committed just before it (then its
    # sequence number is higher) or after it (then the newest entry is not the cut). If that was a rewind, it has
    # restored rows that nobody has compared with the logs.
    if newest.entry is None or (newest.entry.commit, newest.entry.sequence) != (change.commit, snapshot.next_sequence):
        raise CommitRefused("another run committed meanwhile; run again", change.state.topic.where)
    after, findings = newest.entry.state, replace(change.state.findings, adopted=None)
    return newest, replace(
        change.state,
        covered=after.covered,
        epochs=after.epochs,
        last_messages=after.last_messages,
        event_time=after.event_time,
        findings=findings,
    )


def check_incarnation(cluster: Cluster, topic: TopicEntry, read: Iterable[BrokerPartition]) -> None:
    """Check that the topic is still the one that was planned for.

    Answers of brokers before 3.1 do not contain the incarnation. So records that were read before this check belong to
    `topic` only if the topic is still the same after it (faults B05, B06). The leaders of the partitions
    that were `read` are asked, because another broker may still describe the former topic (fault B17).

    Raises:
        TopicRecreated: what was read may belong to another incarnation.
    """
    now = cluster.topic_at_leaders(topic.name, read)
    if now is None:
        raise TopicRecreated(f"the topic {topic.incarnation} was deleted while it was read; load again")
    difference = topic.ids.difference(now.ids)
    if difference:
        raise TopicRecreated(
            f"the topic was deleted and created again while it was read: it has {difference}; load again"
        )


def vanished_partitions(covered: Coverage, topic: TopicEntry, choices: Choices) -> list[str]:
    """Warnings for partitions that the table holds and ZooKeeper does not.

    In 0.7 the broker of such a partition is down; the load continues with the partition when the broker is back.

    Raises:
        PartitionsVanished: a topic from 0.8 on has lost partitions, which never happens to a topic that is not
            recreated, and the user did not choose to continue.
    """
    vanished = sorted(covered.keys() - set(topic.partitions))
    if any(partition.broker is None for partition in vanished) and choices.on_vanished == "fail":
        listed = ", ".join(
            f"{partition} (loaded up to {covered[partition][1]})" for partition in vanished[:_MAX_LISTED]
        )
        raise PartitionsVanished(
            f"the topic has {len(topic.partitions)} partitions, but not these, which the table holds: {listed}; "
            'on_vanished = "wait" loads the others'
        )
    return [
        f"partition {partition} is not registered, so its broker is probably down; "
        f"its load continues at {covered[partition][1]} when it is back"
        for partition in vanished
    ]
