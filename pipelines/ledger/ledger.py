"""The ledger: what each commit of a table says about the offsets that the table holds.

The commit's `txn` actions hold the cursors (appId = cluster/topic/incarnation/partition, version = next offset) and the
commit's sequence number, which grows by one with every commit of the table. The commit info next to them holds a JSON
text, the `LedgerEntry`: the committed ranges with their rows, gaps and files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Self, TypedDict

import msgspec

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition, OffsetRange, TopicEntry, TopicIds
from kafka_io.records.last_message import LastMessage
from kafka_io.typed_json import convert, decode_json
from pipelines.layout.delta_schema import DeltaField
from pipelines.ledger.event_time import EventTime, by_partition
from pipelines.ledger.work import CommittedRange, LoadedRange, SliceFacts

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster

KEY = "penstock"
"""The key of the ledger's text in the commit info."""
SEQUENCE = "penstock/sequence"
"""The appId whose version is the number of the newest commit. Every commit sets it, so any two of them conflict."""
Coverage = Mapping[BrokerPartition, tuple[int, int]]
"""For each partition the offsets `[start, cursor)` that the table covers without a hole."""
LeaderEpochs = Mapping[BrokerPartition, int]
LastMessages = Mapping[BrokerPartition, LastMessage]
StartTimes = Mapping[BrokerPartition, int]
"""The times, in ms since 1970, at which partitions begin that could not be asked when their table began."""

_BY_PARTITION = ("covered", "epochs", "last_messages", "start_times")
"""The fields of an entry that have a value for each partition, whose name is a text in JSON."""


class CommitKind(StrEnum):
    """The kinds of commits: load offsets, fetch some again, restore an old version, take back a truncated end.

    REDECODE decodes the kept bytes of records again, and CONVERT makes a raw table typed. Both change no offsets, so
    their entries have no ranges.
    """

    LOAD = "load"
    REPLAY = "replay"
    REWIND = "rewind"
    CUT = "cut"
    REDECODE = "redecode"
    CONVERT = "convert"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    """The topic of a table. `cluster` is its name in the settings; `cluster_id` its own id, empty before 0.10.1."""

    cluster: str
    name: str
    incarnation: str
    cluster_id: str = ""

    @classmethod
    def of(cls, cluster: "Cluster", topic: TopicEntry) -> Self:
        """The topic of the cluster, in its present incarnation."""
        cluster_id = cluster.cluster_id() or ""
        return cls(cluster=cluster.name, cluster_id=cluster_id, name=topic.name, incarnation=topic.incarnation)

    def app_id(self, partition: BrokerPartition) -> str:
        """The appId of the `txn` action that holds the partition's next offset."""
        return f"penstock/{self.cluster_id or self.cluster}/{self.name}/{self.incarnation}/{partition}"

    @property
    def where(self) -> Where:
        """The topic, for errors."""
        return Where(cluster=self.cluster, topic=self.name)


class Totals(TypedDict):
    """The sums over slices; the gaps by cause."""

    rows: int
    bytes: int
    files: int
    gaps: dict[str, int]


def totals(slices: Sequence[CommittedRange]) -> Totals:
    """The sums over the slices."""
    return {
        "rows": sum(part.rows for part in slices),
        "bytes": sum(part.bytes for part in slices),
        "files": len({path for part in slices for path in part.paths}),
        "gaps": dict(sum((Counter(part.gaps) for part in slices), Counter())),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChoice:
    """A choice of the user that decided about offsets `[start, stop)`, for example `on_expired = skip`.

    For offsets that could not be read, `reason` says why, and `path` names the file that keeps their bytes.
    """

    setting: str
    value: str
    partition: str
    start: int
    stop: int
    reason: str = ""
    path: str | None = None

    def __str__(self) -> str:
        where_kept = f" (its bytes are in {self.path})" if self.path else ""
        reason = f", {self.reason}" if self.reason else ""
        return (
            f"{self.setting} = {self.value}: partition {self.partition} [{self.start}, {self.stop}){reason}{where_kept}"
        )

    @classmethod
    def of(cls, setting: str, value: str, offsets: OffsetRange) -> Self:
        """The choice `setting = value`, made for `offsets`."""
        return cls(
            setting=setting, value=value, partition=str(offsets.partition), start=offsets.start, stop=offsets.stop
        )


def skip_choices(facts: Iterable[SliceFacts]) -> Iterator[RecordedChoice]:
    """The choices by which slices skipped records that cannot be read."""
    for skipped in (skipped for slice_facts in facts for skipped in slice_facts.skipped):
        choice = RecordedChoice.of(skipped.setting, "skip", skipped.offsets)
        yield replace(choice, reason=skipped.reason, path=skipped.path)


@cache
def _installed_version() -> str:
    """The version of the installed Penstock; cached, because finding it reads the disk."""
    return metadata.version("penstock-etl")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The content of one commit: its ranges, and the `[start, cursor)` of every known partition after it.

    The entry's ranges replace all earlier ranges that they overlap. Offsets outside of `covered` are no longer in the
    table.

    Args:
        commit: the commit's own id; it finds the commit if the answer to the write was lost.
        run: the id of the run that made the commit.
        code: the version of Penstock that made the commit.
        kind: what the commit does.
        sequence: the commit's number; every commit of the table adds one.
        topic: the topic, in the incarnation that was loaded.
        ranges: what the commit loaded or replaced.
        covered: what the table covers after the commit.
        epochs: the leader epochs under which the bounds of the partitions were last read, if leaders have epochs.
        ids: all ids of the topic that the loads have seen; None in a table that older code wrote.
        last_messages: the last message before the cursor of each partition, if the topic has no topic id.
        choices: the user's choices that this commit follows.
        target: the version that a rewind restored.
        table: the id of the table; empty in entries of versions before 0.7.
        start_times: for partitions that are not covered, the start that the user chose for the table. Other partitions
            that are not covered begin at offset 0.
        columns: the columns that the commit added to a typed table, or that got further members, as fields of Delta's
            schema.
        schemas: the ids of all schemas of values that the loads of the table have seen.
        key_schemas: the ids of all schemas of keys that the loads of the table have seen.
        written: the rows that a replay or a redecode has written in place of others. The ranges of a replay also name
            rows that it only copied, and a redecode has no ranges.
        event_time: up to which event time the table is complete; None if the settings do not ask for it.
    """

    commit: str
    run: str
    code: str = field(default_factory=_installed_version)
    kind: CommitKind
    sequence: int
    topic: TopicIdentity
    ranges: tuple[CommittedRange, ...]
    covered: Coverage
    epochs: LeaderEpochs = field(default_factory=dict)
    ids: TopicIds | None = None
    last_messages: LastMessages = field(default_factory=dict)
    choices: tuple[RecordedChoice, ...] = ()
    target: int | None = None
    table: str = ""
    start_times: StartTimes = field(default_factory=dict)
    columns: tuple[DeltaField, ...] = ()
    schemas: tuple[int, ...] = ()
    key_schemas: tuple[int, ...] = ()
    written: tuple[LoadedRange, ...] = ()
    event_time: EventTime | None = None

    def to_json(self) -> str:
        """The entry as text for the commit info."""
        stored = {item.name: getattr(self, item.name) for item in fields(self)}
        stored["ranges"] = [committed.as_dict() for committed in self.ranges]
        for name in _BY_PARTITION:
            stored[name] = {str(partition): value for partition, value in stored[name].items()}
        stored["event_time"] = self.event_time.as_dict() if self.event_time else None
        for name in ("columns", "schemas", "key_schemas", "written", "event_time"):
            if not stored[name]:
                del stored[name]
        return msgspec.json.encode(stored).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        Raises:
            ValueError: the text is not an entry.
        """
        # Versions before 0.7.0 do not write these two.
        stored = {"last_messages": {}, "start_times": {}, **decode_json(text, dict[str, object])}
        unknown = stored.keys() - {item.name for item in fields(cls)}
        if unknown:
            raise ValueError(f"a newer version of Penstock has written {sorted(unknown)}")
        for name in _BY_PARTITION:
            stored[name] = by_partition(stored[name])
        stored["ranges"] = [
            CommittedRange.from_dict(part) for part in convert(stored["ranges"], list[dict[str, object]])
        ]
        if stored.get("event_time"):
            stored["event_time"] = EventTime.from_dict(convert(stored["event_time"], dict[str, object]))
        return convert(stored, cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """The topic of a table and what the table covers; nothing before the first load.

    Args:
        topic: the topic. The table keeps the incarnation of its first load, because the cursors' names contain it.
        ids: the ids of the topic: those that the table knows, and those that the cluster shows.
        covered: what the table covers.
        epochs, last_messages, event_time: see LedgerEntry.
        same_topic_id: whether the table and the cluster know the same topic id, so that nothing else must be compared.
        replaced: the former incarnation, if the topic was recreated and the user chose to load the new one into the
            same table.
        adopted: the ids that the table had, if they contradict the cluster's and the user chose to continue.
        shown: the state of a new table of the topic, as the cluster shows the topic now.
        followed: the user's choices about the topic's identity, as setting and value.
    """

    topic: TopicIdentity
    ids: TopicIds = field(default_factory=TopicIds)
    covered: Coverage = field(default_factory=dict)
    epochs: LeaderEpochs = field(default_factory=dict)
    last_messages: LastMessages = field(default_factory=dict)
    same_topic_id: bool = False
    replaced: str | None = None
    start_times: StartTimes = field(default_factory=dict)
    adopted: TopicIds | None = None
    shown: "TableState | None" = None
    followed: Mapping[str, str] = field(default_factory=dict)
    event_time: EventTime | None = None

    @property
    def begun(self) -> bool:
        """Whether a load has begun the table. If so, the table decides where its other partitions begin (fault P01)."""
        return bool(self.covered) or self.replaced is not None

    def cursor(self, partition: BrokerPartition) -> int | None:
        """The next offset to load; None if the brokers must be asked where the partition begins.

        A partition without a cursor in a table that has begun appeared later, so its first offset is new.
        """
        if partition in self.covered:
            return self.covered[partition][1]
        return 0 if self.begun and partition not in self.start_times else None

    @classmethod
    def new(cls, topic: TopicIdentity, aliases: Iterable[str] = ()) -> Self:
        """The state before the first load. `aliases` are other names of the topic's incarnation."""
        return cls(topic=topic, ids=TopicIds.parse(topic.incarnation, *aliases, cluster_id=topic.cluster_id))

    @classmethod
    def after(cls, entry: LedgerEntry) -> Self:
        """The state in which a commit left the table."""
        ids = entry.ids or cls.new(entry.topic).ids
        return cls(
            topic=entry.topic,
            ids=ids,
            covered=entry.covered,
            epochs=entry.epochs,
            last_messages=entry.last_messages,
            start_times=entry.start_times,
            event_time=entry.event_time,
        )
