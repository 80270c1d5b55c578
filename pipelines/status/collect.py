"""Compares topics with their tables: the only place that reads both the brokers and the lake. It changes nothing.

Tables are read before the brokers are asked. A load that commits in between moves a cursor forward, but never past an
end of the log that is asked for later, so no table ever appears to be ahead of its topic.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.retention import Retention
from kafka_io.errors import KafkaIOError, LocatedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry, TopicIds
from kafka_io.zookeeper.listing import Listing, SkippedNode
from pipelines.formats.tables import lake_table
from pipelines.identity.identity import table_state
from pipelines.identity.truncation import vanished_partitions
from pipelines.ledger.coverage import common
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, TableState, TopicIdentity, totals
from pipelines.reports.last_error import LastError, LastErrors
from pipelines.status.status import LastLoad, PartitionStatus, RetentionPeriod, RetentionSource, TopicStatus
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import TableSize
from pipelines.table.table_store import TableSnapshot
from resources.errors import CursorAheadOfLog, LakeUnavailable, TableLost, TopicUnknown
from resources.settings.choices import Choices
from resources.settings.settings import Settings
from resources.settings.topic_sections import TopicRules
from resources.stores.lake import Lake, tables_at_once
from resources.table_names import route_of, topic_of

TopicEntries = Mapping[str, TopicEntry | None]
"""Topics by name, as the cluster lists them; None for a topic that only the lake has."""
BoundsOrError = Mapping[BrokerPartition, Bounds | KafkaIOError]
RecordTimes = Mapping[BrokerPartition, int | KafkaIOError | None]
Offsets = Mapping[str, Mapping[BrokerPartition, int]]
AnswersT = TypeVar("AnswersT")
TableOf = Callable[[str], LakeTable]
"""Gives the table of this name."""
SnapshotOf = Callable[[str], TableSnapshot | None]
"""Gives the newest version of the table of this name; None if there is no table."""


def watched(
    cluster_topics: Iterable[TopicEntry], tables: Iterable[str], rules: TopicRules
) -> dict[str, TopicEntry | None]:
    """All allowed topics that the cluster lists or that have a table, sorted by name."""
    listed = {entry.name: entry for entry in cluster_topics}
    topics: TopicEntries = {name: listed.get(topic_of(name)) for name in tables} | listed
    return {name: topics[name] for name in sorted(topics) if rules.allows(name)}


def statuses(
    cluster: Cluster,
    tables: TableOf,
    topics: TopicEntries,
    *,
    now_ms: int,
    fallback: timedelta | None = None,
    choices: Choices | None = None,
    last_errors: Mapping[str, LastError] | None = None,
) -> list[TopicStatus]:
    """The status of each topic, in the order given. A problem of one topic is the `error` of its status.

    If a topic has several tables, its status has the cursors of those that are the furthest behind, where the next load
    begins. The status of a table such as `events/orders` has the cursors of this table.

    From Kafka 0.8 on the number of requests does not depend on the number of topics; 0.7 needs some per partition.

    Args:
        cluster: the open cluster.
        tables: returns the table of a topic.
        topics: the topics by name, and tables by theirs.
        now_ms: the current time, in ms since 1970.
        fallback: the retention time where brokers do not report one. Without it the time is estimated: in a log whose
            start retention has already moved, the oldest record is about as old as records can become.
        choices: inconsistencies that loads may pass over are not errors.
        last_errors: why the last loads of topics failed.
    """
    uris = [tables(topic).uri for topic in islice(topics, 1)]
    with ThreadPoolExecutor(tables_at_once(*uris) if uris else 1) as readers:
        # The status of a topic needs its further tables, too. They are read first, and once.
        further = {topic: readers.submit(_existing, tables, topic) for topic in topics if route_of(topic)}
        read_table = partial(
            _read_table,
            tables,
            lambda name: further[name].result() if name in further else _existing(tables, name),
            cluster=cluster.name,
            cluster_id=_cluster_id(cluster),
            choices=choices or Choices(),
        )
        from_tables = list(readers.map(lambda topic: read_table(topic, topics[topic]), topics))
    # A topic that the cluster no longer has cannot be loaded, which is no error.
    errors = {topic: error for topic, error in (last_errors or {}).items() if topics.get(topic)}
    from_loads = [replace(status, last_error=errors.get(status.topic)) for status in from_tables]
    # The questions are about topics. Of the tables of one topic each has a round of its own.
    asked: dict[str, TopicStatus] = {}
    for route in sorted({route_of(topic) for topic in topics}):
        own = [status for status in from_loads if route_of(status.topic) == route]
        with_bounds = _add_transactions(cluster, _add_bounds(cluster, topics, own))
        with_times = _add_times(cluster, _add_retention(cluster, with_bounds, fallback), now_ms)
        asked |= {status.topic: status for status in with_times}
    return [asked[topic] for topic in topics]


def statuses_of(cluster: Cluster, settings: Settings, topics: TopicEntries, *, now_ms: int) -> list[TopicStatus]:
    """The status of topics of a cluster of the settings, with tables in the lake of the settings; see `statuses`."""
    lake, hours = Lake.of(settings), settings.clusters[cluster.name].retention_hours
    return statuses(
        cluster,
        lambda topic: lake_table(lake, cluster.name, topic),
        topics,
        now_ms=now_ms,
        fallback=None if hours is None else timedelta(hours=hours),
        choices=settings.choices_of(cluster.name),
        last_errors=_last_errors(lake, cluster.name),
    )


def cluster_statuses(
    cluster: Cluster,
    settings: Settings,
    *,
    now_ms: int,
    on_skipped: Callable[[Iterable[SkippedNode]], None] = lambda _nodes: None,
) -> list[TopicStatus]:
    """The status of all topics of a cluster that the settings allow, by name.

    Args:
        cluster: the open cluster.
        settings: the settings.
        now_ms: the current time, in ms since 1970.
        on_skipped: is called with the entries of topics that cannot be read.
    """
    listing = cluster.topics()
    on_skipped(listing.skipped)
    entries = watched(listing.entries, Lake.of(settings).topics(cluster.name), settings.rules(cluster.name))
    return with_refusals(statuses_of(cluster, settings, entries, now_ms=now_ms), listing)


def with_refusals(statuses: Sequence[TopicStatus], listing: Listing[TopicEntry]) -> list[TopicStatus]:
    """The statuses, with errors for topics that the cluster has and cannot describe: they are not gone (fault A13)."""
    refused = listing.refused
    return [
        replace(status, failure=_failure(refused[status.topic])) if status.topic in refused else status
        for status in statuses
    ]


def _last_errors(lake: Lake, cluster: str) -> Mapping[str, LastError]:
    try:
        return LastErrors(lake, cluster).read()
    except LakeUnavailable:  # reading the tables reports the error
        return {}


def _cluster_id(cluster: Cluster) -> str:
    try:
        return cluster.cluster_id() or ""
    except KafkaIOError:  # the later questions to the same brokers report the error
        return ""


def _existing(tables: TableOf, name: str) -> TableSnapshot | None:
    return tables(name).existing()


def _read_table(
    tables: TableOf,
    existing: SnapshotOf,
    topic: str,
    entry: TopicEntry | None,
    *,
    cluster: str,
    cluster_id: str,
    choices: Choices,
) -> TopicStatus:
    """The status of a topic before the brokers are asked. It has no partitions if the table cannot be read."""
    table = tables(topic)
    status = TopicStatus(
        cluster=cluster,
        topic=topic,
        incarnation=entry.incarnation if entry else None,
        has_id=entry.ids != TopicIds() if entry else None,
        table=table.uri,
    )
    try:
        snapshot = existing(topic)
        if snapshot is not None:
            times = snapshot.entry.event_time if snapshot.entry else None
            status = replace(
                status,
                version=snapshot.version,
                last_load=_last_load(table, snapshot),
                size=TableSize.of(snapshot.opened),
                valid_through_ms=times.valid_through_ms if times else None,
            )
            snapshot.check_unchanged(Where(cluster=cluster, topic=topic))
    except Exception as error:  # noqa: BLE001 - any problem of one table belongs to its own status
        return replace(status, failure=_failure(error))
    if entry is None:
        missing = None if snapshot else _failure(TopicUnknown("neither the cluster nor the lake has such a topic"))
        covered = snapshot.entry.covered if snapshot and snapshot.entry else {}
        return _with_partitions(replace(status, failure=missing), {id_: cursor for id_, (_, cursor) in covered.items()})
    if snapshot is None:
        return _with_partitions(status, dict.fromkeys(entry.partitions))
    return _compare_identity(tables, existing, status, snapshot, entry, cluster_id=cluster_id, choices=choices)


def _compare_identity(
    tables: TableOf,
    existing: SnapshotOf,
    status: TopicStatus,
    snapshot: TableSnapshot,
    entry: TopicEntry,
    *,
    cluster_id: str,
    choices: Choices,
) -> TopicStatus:
    """Compare a topic of the cluster with its tables; whatever would stop a load is the error."""
    incarnation = entry.incarnation
    topic = TopicIdentity(cluster=status.cluster, cluster_id=cluster_id, name=status.topic, incarnation=incarnation)
    state = TableState(topic=topic)
    try:
        state = table_state(snapshot, topic, entry.also, choices)
        state = replace(state, covered=common([state.covered, *_covered_by_others(tables, existing, state)]))
        status = replace(status, warnings=tuple(vanished_partitions(state.covered, entry, choices)))
    except LocatedError as error:
        status = replace(status, failure=_failure(error))
    return _with_partitions(status, {id_: state.cursor(id_) for id_ in {*entry.partitions, *state.covered}})


def _covered_by_others(tables: TableOf, existing: SnapshotOf, state: TableState) -> Iterator[Coverage]:
    """The coverage of each other table of a topic, if this is the state of its own table.

    Raises:
        TableLost: one of them has no rows, but the topic was loaded into it.
        LoadError: one of them cannot be read.
    """
    if route_of(state.topic.name) or state.findings.replaced:
        return
    for name in state.routes.table_names(state.topic.name)[1:]:
        snapshot = existing(name)
        if snapshot is None or snapshot.entry is None:
            raise TableLost.of_one(tables(name).uri, Where(cluster=state.topic.cluster, topic=name))
        yield snapshot.entry.covered


def _with_partitions(status: TopicStatus, cursors: Mapping[BrokerPartition, int | None]) -> TopicStatus:
    """Add the partitions with their cursors."""
    return replace(status, partitions=tuple(PartitionStatus(id=id_, cursor=cursors[id_]) for id_ in sorted(cursors)))


def _last_load(table: LakeTable, snapshot: TableSnapshot) -> LastLoad | None:
    """The newest commit of a load, which is usually the newest entry of the table. Then no other entry is read."""
    if snapshot.entry is None:
        return None
    earlier = ((commit.entry, commit.time_ms) for commit in table.commits(snapshot.version))
    for entry, committed_ms in chain([(snapshot.entry, snapshot.entry_ms)], earlier):
        planned_ms = _planned_ms(entry) if entry and entry.kind is CommitKind.LOAD else None
        if entry and planned_ms is not None:
            return LastLoad(planned_ms=planned_ms, committed_ms=committed_ms, **totals(entry.ranges))
    return None


def _planned_ms(entry: LedgerEntry) -> int | None:
    """When a load was planned, in ms since 1970: records from before that were visible to it."""
    if entry.ranges:
        return max(committed.loaded_at_us for committed in entry.ranges) // 1000
    # Without ranges nothing was new, and the commit only says so.
    return entry.event_time.asked_ms if entry.event_time else None


def _failure(error: Exception) -> SliceFailure:
    return SliceFailure.of(error, Where())


def _add_bounds(cluster: Cluster, topics: TopicEntries, statuses: list[TopicStatus]) -> list[TopicStatus]:
    """Add what the brokers hold of the partitions that the cluster lists, except where the table cannot be read."""
    entries = (topics[status.topic] for status in statuses if status.partitions)
    wanted = {entry.name: entry.partitions for entry in entries if entry and entry.partitions}
    bounds: Mapping[str, BoundsOrError]
    try:
        bounds = cluster.bounds_of(wanted)
    except KafkaIOError as error:
        bounds = {topic: dict.fromkeys(partitions, error) for topic, partitions in wanted.items()}
    return [_with_bounds(status, bounds.get(topic_of(status.topic), {})) for status in statuses]


def _with_bounds(status: TopicStatus, bounds: BoundsOrError) -> TopicStatus:
    """Add bounds. An error of a broker, or a log that ends before the table, is the error of the topic."""
    partitions, failures = [], [status.failure]
    for partition in status.partitions:
        bound = bounds.get(partition.id)
        if isinstance(bound, Bounds):
            ends = replace(partition, earliest=bound.earliest, latest=bound.latest, held_back=bound.held_back)
            partitions.append(ends)
            if partition.cursor is not None and partition.cursor > bound.latest:
                sentence = (
                    f"the log of partition {partition.id} ends at {bound.latest}, but the table holds offsets up to "
                    f"{partition.cursor}"
                )
                failures.append(_failure(CursorAheadOfLog(sentence)))
        else:
            partitions.append(partition)
            failures += [_failure(bound)] if bound else []
    return replace(status, partitions=tuple(partitions), failure=next(filter(None, failures), None))


def _add_transactions(cluster: Cluster, statuses: list[TopicStatus]) -> list[TopicStatus]:
    """Add the open transactions of partitions whose logs have records after the last stable offset."""
    offsets = {
        topic_of(status.topic): {
            part.id: part.latest for part in status.partitions if part.held_back and part.latest is not None
        }
        for status in statuses
    }
    transactions = _asked(cluster.open_transactions, offsets)
    return [
        replace(
            status,
            partitions=tuple(
                replace(part, transaction=transactions.get(topic_of(status.topic), {}).get(part.id))
                for part in status.partitions
            ),
        )
        for status in statuses
    ]


def _add_retention(cluster: Cluster, statuses: list[TopicStatus], fallback: timedelta | None) -> list[TopicStatus]:
    """Add the retention time of topics whose brokers answered."""
    has_bounds = (status for status in statuses if any(part.latest is not None for part in status.partitions))
    answered = [topic_of(status.topic) for status in has_bounds]
    retentions: Mapping[str, Retention | KafkaIOError]
    try:
        retentions = cluster.retention(answered) if answered else {}
    except KafkaIOError as error:
        retentions = dict.fromkeys(answered, error)
    return [
        _with_retention(status, retentions[topic], fallback) if topic in retentions else status
        for topic, status in ((topic_of(status.topic), status) for status in statuses)
    ]


def _with_retention(
    status: TopicStatus, retention: Retention | KafkaIOError, fallback: timedelta | None
) -> TopicStatus:
    if isinstance(retention, KafkaIOError):
        warning = f"the retention time of the topic is unknown: {_failure(retention)}"
        status, retention = replace(status, warnings=(*status.warnings, warning)), Retention()
    if retention.ms is not None:
        kept = RetentionPeriod(ms=retention.ms, by=RetentionSource.BROKERS)
    elif fallback is not None:
        kept = RetentionPeriod(ms=fallback // timedelta(milliseconds=1), by=RetentionSource.SETTINGS)
    else:
        kept = status.kept
    return replace(status, retention=retention, kept=kept)


def _add_times(cluster: Cluster, statuses: list[TopicStatus], now_ms: int) -> list[TopicStatus]:
    """Add the time of the oldest record without a row, and from when on retention may remove it."""
    times = _asked(cluster.times_at, {topic_of(status.topic): _first_unloaded(status) for status in statuses})
    # Only where no retention time is known, the starts of the logs are needed for an estimate.
    unknown = [status for status in statuses if status.kept.by is RetentionSource.NOBODY and _first_unloaded(status)]
    starts = _asked(cluster.times_at, {topic_of(status.topic): _trimmed_starts(status) for status in unknown})
    return [
        _with_times(status, times.get(topic, {}), starts.get(topic, {}).values(), now_ms)
        for topic, status in ((topic_of(status.topic), status) for status in statuses)
    ]


def _first_unloaded(status: TopicStatus) -> dict[BrokerPartition, int]:
    """The first offset without a row of each partition with records to load."""
    return {part.id: part.next for part in status.partitions if part.loadable and part.next is not None}


def _trimmed_starts(status: TopicStatus) -> dict[BrokerPartition, int]:
    """The first offset of each log whose start retention has already moved."""
    return {part.id: part.earliest for part in status.partitions if part.earliest and part.earliest != part.latest}


def _asked(ask: Callable[[Offsets], Mapping[str, AnswersT]], offsets: Offsets) -> Mapping[str, AnswersT]:
    """The answers of brokers about offsets by topic; no answers after an error."""
    wanted = {topic: partitions for topic, partitions in offsets.items() if partitions}
    try:
        return ask(wanted) if wanted else {}
    except KafkaIOError:  # asking for the bounds has reported the error already, or it is temporary
        return {}


def _with_times(status: TopicStatus, times: RecordTimes, starts: Iterable[object], now_ms: int) -> TopicStatus:
    kept = status.kept
    oldest_ms = min((time_ms for time_ms in starts if isinstance(time_ms, int)), default=now_ms)
    if kept.by is RetentionSource.NOBODY and oldest_ms < now_ms:
        kept = RetentionPeriod(ms=now_ms - oldest_ms, by=RetentionSource.ESTIMATE)
    partitions = tuple(_with_time(part, times.get(part.id), kept.limit_ms) for part in status.partitions)
    return replace(status, partitions=partitions, kept=kept)


def _with_time(partition: PartitionStatus, time_ms: object, limit_ms: int | None) -> PartitionStatus:
    if partition.transaction and not partition.loadable:
        time_ms = partition.transaction.began_ms
    if not isinstance(time_ms, int):
        return partition
    return replace(partition, oldest_ms=time_ms, expires_ms=None if limit_ms is None else time_ms + limit_ms)
