"""Where a topic and its table have parted: what the logs have lost, partitions that are away, another life."""

from collections.abc import Mapping

from kafka_io.client.cluster import Cluster
from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.commit import commit
from pipelines.loading.ledger import Choice, Covered, Standing
from pipelines.loading.replacing import cut
from pipelines.loading.standing import standing
from pipelines.loading.table_log import Snapshot, TableLog
from resources.choices import Choices
from resources.errors import CommitRefused, LogTruncated, PartitionsVanished, TopicRecreated

_SHOWN_AWAY = 5


def partings(
    cluster: Cluster, stands: Standing, bounds: Mapping[BrokerPartition, Bounds]
) -> dict[BrokerPartition, int]:
    """From where on logs are not what was loaded. Within one leader's epoch no log is cut."""
    read = {
        id_: (stands.covered[id_][1], epoch)
        for id_, epoch in stands.epochs.items()
        if id_ in bounds and bounds[id_].epoch != epoch
    }
    return cluster.partings(stands.topic.name, read)


def lost(
    cluster: Cluster, stands: Standing, bounds: Mapping[BrokerPartition, Bounds], choices: Choices
) -> tuple[Choice, ...]:
    """What the table holds and the logs have lost, to be taken back by choice.

    Raises:
        LogTruncated: a log was cut and written anew, from the offset on that is told, and that is not to be taken
            back (B03, B04). A log that is merely shorter is refused by the plan.
    """
    chosen = choices.on_truncated
    parted = partings(cluster, stands, bounds)
    for id_, end in parted.items() if chosen == "fail" else ():
        raise LogTruncated(
            f"offsets [{end}, {stands.covered[id_][1]}) are in the table, but the log was cut at {end} and written "
            'anew; on_truncated = "rewind" takes them back',
            stands.topic.where.within(Where(partition=str(id_), offset=end)),
        )
    if chosen == "fail":
        return ()
    shorter = {
        id_: bound.latest
        for id_, bound in bounds.items()
        if id_ in stands.covered and bound.earliest <= bound.latest  # the plan refuses other bounds (B14)
    }
    return tuple(
        Choice(setting="on_truncated", value=chosen, partition=str(id_), start=end, stop=stands.covered[id_][1])
        for id_, end in sorted({**shorter, **parted}.items())
        if end < stands.covered[id_][1]
    )


def taken_back(
    log: TableLog, at: Snapshot, stands: Standing, choices: tuple[Choice, ...], *, run: str
) -> tuple[Snapshot, Standing]:
    """The table without what `choices` name; a commit of its own.

    Raises:
        CommitRefused: another run committed meanwhile.
    """
    ends = {BrokerPartition.parse(one.partition): (one.start, one.stop) for one in choices}
    change = cut(stands, ends, run=run, choices=choices)
    commit(log, at, change)
    now = log.snapshot()
    if now.entry is None or (now.entry.commit, now.entry.sequence) != (change.commit, at.next_sequence):
        # As a rewind before the cut or behind it: what it brings back was not compared with the logs.
        raise CommitRefused("another run committed meanwhile; run again", stands.topic.where)
    return now, standing(now, stands.topic)


def check_life(cluster: Cluster, found: TopicEntry) -> None:
    """What brokers told since is of the topic that was found: before 3.1 none tells a reader (B05, B06).

    Raises:
        TopicRecreated: it may be of another.
    """
    now = cluster.topic(found.name)
    if now is None or not {found.incarnation, *found.also} & {now.incarnation, *now.also}:
        told = f"incarnation {now.incarnation} of it is there now" if now else "it is gone"
        raise TopicRecreated(f"the topic {found.incarnation} was deleted while it was read: {told}")


def absent(covered: Covered, found: TopicEntry, choices: Choices) -> list[str]:
    """Partitions the table knows and the registry does not: in 0.7 their broker is away, and they wait for it.

    Raises:
        PartitionsVanished: later topics never lose one, and no choice lets it pass.
    """
    away = sorted(covered.keys() - set(found.partitions))
    if any(id_.broker is None for id_ in away) and choices.on_vanished == "fail":
        told = ", ".join(f"{id_} (loaded up to {covered[id_][1]})" for id_ in away[:_SHOWN_AWAY])
        raise PartitionsVanished(
            f"the topic has {len(found.partitions)} partitions, and not those the table holds: {told}; "
            'on_vanished = "wait" loads the others'
        )
    why = "is not registered: its broker is away; it goes on"
    return [f"partition {id_} {why} at {covered[id_][1]}" for id_ in away]
