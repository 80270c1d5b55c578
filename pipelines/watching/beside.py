"""Brokers beside tables: the one place that reads both. It changes nothing.

Tables are read first: what a load commits meanwhile then lies below the ends that the brokers tell, never above them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from kafka_io.client.cluster import Cluster
from kafka_io.client.retention import Retention
from kafka_io.errors import KafkaIOError, PlacedError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.ledger import Covered, Entry, Kind, Topic
from pipelines.loading.parting import absent
from pipelines.loading.standing import standing
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot
from pipelines.watching.status import By, Kept, PartitionStatus, TopicStatus
from resources.choices import Choices
from resources.lake import Lake
from resources.settings import Settings, TopicRules

_TABLES_AT_ONCE = 8

Topics = Mapping[str, TopicEntry | None]
"""Topics by name, as the cluster has them; None for what it has no more."""
Held = Mapping[BrokerPartition, Bounds | KafkaIOError]
Times = Mapping[BrokerPartition, int | KafkaIOError | None]


class ReadTable(Protocol):
    """What is read of a table; `LakeTable` has it."""

    @property
    def uri(self) -> str:
        """Where it is."""
        ...

    def existing(self) -> Snapshot | None:
        """The newest version; None where there is no table."""
        ...

    def entries(self, upto: Snapshot) -> Iterator[tuple[int, Entry]]:
        """Version and entry of its commits, newest first."""
        ...


def watched(found: Iterable[TopicEntry], tables: Iterable[str], rules: TopicRules) -> dict[str, TopicEntry | None]:
    """All topics that are on the cluster or have a table, and are allowed, by name."""
    topics: dict[str, TopicEntry | None] = dict.fromkeys(tables)
    topics |= {entry.name: entry for entry in found}
    return {name: topics[name] for name in sorted(topics) if rules.allows(name)}


def statuses(
    cluster: Cluster,
    tables: Callable[[str], ReadTable],
    topics: Topics,
    *,
    now_ms: int,
    fallback: timedelta | None = None,
    choices: Choices | None = None,
) -> list[TopicStatus]:
    """How each topic stands, in the order given. What is wrong with one is its own `error`.

    However many they are, brokers from 0.8 on are asked a few questions only; those of 0.7 some for each partition.
    Where brokers do not tell how long records are kept it is `fallback`; without that an estimate: the oldest record of
    a log that was trimmed before is about as old as any may become. What `choices` let loads pass is no error.
    """
    whose = _Whose(cluster=cluster.name, cluster_id=_cluster_id(cluster), choices=choices or Choices())
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as readers:
        read = list(readers.map(lambda name: _side(whose, tables(name), name, topics[name]), topics))
    return _timed(cluster, _kept(cluster, _bounded(cluster, read), fallback), now_ms)


def statuses_of(cluster: Cluster, settings: Settings, topics: Topics, *, now_ms: int) -> list[TopicStatus]:
    """How topics of one of the settings' clusters stand beside their tables in the settings' lake; see `statuses`."""
    lake, hours = Lake.of(settings), settings.clusters[cluster.name].retention_hours
    return statuses(
        cluster,
        lambda topic: LakeTable.of(lake, cluster.name, topic),
        topics,
        now_ms=now_ms,
        fallback=None if hours is None else timedelta(hours=hours),
        choices=settings.choices_of(cluster.name),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whose:
    """What all topics of a cluster have in common."""

    cluster: str
    cluster_id: str
    choices: Choices


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """A topic's table, before its brokers are asked: what `status` knows already, and the partitions to ask about."""

    status: TopicStatus
    there: tuple[BrokerPartition, ...] = ()
    covered: Covered = field(default_factory=dict)


def _cluster_id(cluster: Cluster) -> str:
    try:
        return cluster.cluster_id() or ""
    except KafkaIOError:  # the questions that matter will tell
        return ""


def _side(whose: _Whose, table: ReadTable, name: str, entry: TopicEntry | None) -> _Side:
    status = TopicStatus(
        cluster=whose.cluster, topic=name, incarnation=entry.incarnation if entry else None, table=table.uri
    )
    try:
        at = table.existing()
        if at is not None:
            status = replace(status, version=at.version, loaded_at_ms=_loaded_at_ms(table, at))
    except Exception as error:  # noqa: BLE001 - the trouble of one table, whatever it is, is its own
        return _Side(status=replace(status, error=_sentence(error)))
    if entry is None:
        missing = None if at else "TopicUnknown: neither the cluster nor the lake has such a topic"
        covered = at.entry.covered if at and at.entry else {}
        return _Side(status=replace(status, error=missing), covered=covered)
    return _beside(whose, status, at, entry)


def _beside(whose: _Whose, status: TopicStatus, at: Snapshot | None, entry: TopicEntry) -> _Side:
    """A topic that the cluster has; what keeps it from being loaded is its error."""
    there = entry.partitions
    if at is None:
        return _Side(status=status, there=there)
    topic = Topic(cluster=whose.cluster, cluster_id=whose.cluster_id, name=entry.name, incarnation=entry.incarnation)
    covered: Covered = {}
    try:
        covered = standing(at, topic, entry.also, restart=whose.choices.on_recreated == "restart").covered
        warnings = absent(covered, entry, whose.choices)
    except PlacedError as error:
        return _Side(status=replace(status, error=_sentence(error)), there=there, covered=covered)
    return _Side(status=replace(status, warnings=tuple(warnings)), there=there, covered=covered)


def _loaded_at_ms(table: ReadTable, at: Snapshot) -> int | None:
    """When the newest load that committed anything was planned: what was there by then, it could see."""
    for entry in _newest_first(table, at):
        if entry.kind is Kind.LOAD and entry.ranges:
            return max(one.loaded_at_us for one in entry.ranges) // 1000
    return None


def _newest_first(table: ReadTable, at: Snapshot) -> Iterator[Entry]:
    if at.entry is not None:
        yield at.entry  # it is at hand: mostly this is all
        yield from (entry for _, entry in table.entries(at))


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _bounded(cluster: Cluster, sides: list[_Side]) -> list[TopicStatus]:
    asked = {side.status.topic: side.there for side in sides if side.there}
    held: Mapping[str, Held]
    try:
        held = cluster.bounds_of(asked)
    except KafkaIOError as error:
        held = {topic: dict.fromkeys(there, error) for topic, there in asked.items()}
    return [_with_bounds(side, held.get(side.status.topic, {})) for side in sides]


def _with_bounds(side: _Side, held: Held) -> TopicStatus:
    parts = tuple(_partition(id_, held.get(id_), side.covered) for id_ in sorted({*side.there, *side.covered}))
    error = side.status.error or next(_troubles(parts, held), None)
    return replace(side.status, partitions=parts, error=error)


def _partition(id_: BrokerPartition, held: Bounds | KafkaIOError | None, covered: Covered) -> PartitionStatus:
    known = held if isinstance(held, Bounds) else None
    return PartitionStatus(
        id=id_,
        earliest=known.earliest if known else None,
        latest=known.latest if known else None,
        cursor=covered[id_][1] if id_ in covered else None,
    )


def _troubles(parts: Iterable[PartitionStatus], held: Held) -> Iterator[str]:
    """What is wrong with partitions that were asked about."""
    for one in parts:
        answer = held.get(one.id)
        if isinstance(answer, KafkaIOError):
            yield _sentence(answer)
        elif answer and one.cursor is not None and one.cursor > answer.latest:
            yield f"the log of partition {one.id} ends at {answer.latest}, the table holds it up to {one.cursor}"


def _kept(cluster: Cluster, found: list[TopicStatus], fallback: timedelta | None) -> list[TopicStatus]:
    """With how long records are kept, of topics of which brokers told anything."""
    there = [one.topic for one in found if any(part.latest is not None for part in one.partitions)]
    told: Mapping[str, Retention | KafkaIOError]
    try:
        told = cluster.retention(there) if there else {}
    except KafkaIOError as error:
        told = dict.fromkeys(there, error)
    return [_with_retention(one, told[one.topic], fallback) if one.topic in told else one for one in found]


def _with_retention(one: TopicStatus, told: Retention | KafkaIOError, fallback: timedelta | None) -> TopicStatus:
    if isinstance(told, KafkaIOError):
        one = replace(one, warnings=(*one.warnings, f"how long records are kept is not told: {_sentence(told)}"))
        told = Retention()
    if told.ms is not None:
        kept = Kept(ms=told.ms, by=By.BROKERS)
    elif fallback is not None:
        kept = Kept(ms=fallback // timedelta(milliseconds=1), by=By.SETTINGS)
    else:
        kept = one.kept
    return replace(one, retention=told, kept=kept)


def _timed(cluster: Cluster, found: list[TopicStatus], now_ms: int) -> list[TopicStatus]:
    """With the times of the oldest records that are not loaded, and so of their end."""
    times = _times(cluster, {one.topic: _waiting(one) for one in found})
    # Where nobody says how long records are kept, the starts of the logs are looked at as well.
    unsaid = {one.topic: _trimmed(one) for one in found if one.kept.by is By.NOBODY and _waiting(one)}
    starts = _times(cluster, unsaid)
    return [_with_times(one, times.get(one.topic, {}), starts.get(one.topic, {}).values(), now_ms) for one in found]


def _waiting(one: TopicStatus) -> dict[BrokerPartition, int]:
    """By partition, the first offset that is not loaded."""
    return {part.id: part.next for part in one.partitions if part.lag and part.next is not None}


def _trimmed(one: TopicStatus) -> dict[BrokerPartition, int]:
    """By partition, where a log begins that once began lower."""
    return {part.id: part.earliest for part in one.partitions if part.earliest and part.earliest != part.latest}


def _times(cluster: Cluster, at: Mapping[str, Mapping[BrokerPartition, int]]) -> Mapping[str, Times]:
    asked = {topic: offsets for topic, offsets in at.items() if offsets}
    try:
        return cluster.times_at(asked) if asked else {}
    except KafkaIOError:  # the bounds told it already, or it passes
        return {}


def _with_times(one: TopicStatus, times: Times, starts: Iterable[object], now_ms: int) -> TopicStatus:
    kept = one.kept
    first = min((time_ms for time_ms in starts if isinstance(time_ms, int)), default=now_ms)
    if kept.by is By.NOBODY and first < now_ms:
        kept = Kept(ms=now_ms - first, by=By.ESTIMATE)
    parts = tuple(_with_time(part, times.get(part.id), kept.limit_ms) for part in one.partitions)
    return replace(one, partitions=parts, kept=kept)


def _with_time(part: PartitionStatus, time_ms: object, limit_ms: int | None) -> PartitionStatus:
    if not isinstance(time_ms, int):
        return part
    return replace(part, oldest_ms=time_ms, expires_ms=None if limit_ms is None else time_ms + limit_ms)
