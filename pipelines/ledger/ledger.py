"""The ledger: what each commit of a table says about the offsets that the table holds.

The commit's `txn` actions hold the cursors (appId = cluster/topic/incarnation/partition, version = next offset) and the
commit's sequence number, which grows by one with every commit of the table. The commit info next to them holds a JSON
text, the `LedgerEntry`: the committed ranges with their rows, gaps and files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Self, TypedDict, TypeVar

import msgspec

from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry, TopicIds
from kafka_io.records.last_message import LastMessage
from kafka_io.typed_json import JsonObject, convert, convert_exact, convert_exact_values, decode_json
from pipelines.layout.delta_schema import DeltaField
from pipelines.ledger.committed_range import CommittedRange, LoadedRange
from pipelines.ledger.event_time import EventTime
from pipelines.ledger.schema_ids import NO_SCHEMAS, SchemaIds, SchemaText, SchemaTexts
from pipelines.ledger.table_routes import ONE_TABLE, TableRoutes
from pipelines.ledger.table_rules import NO_RULES, TableRules
from resources.errors import EntryUnknown
from resources.table_names import topic_of

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster

T = TypeVar("T")

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


class CommitKind(StrEnum):
    """The kinds of commits: load offsets, fetch some again, restore an old version, take back a truncated end.

    REDECODE decodes the kept bytes of records again, CONVERT makes a raw table typed, and REWRITE applies the rules of
    the settings to all rows. They change no offsets, so their entries have no ranges. ERASE takes rows
    out for ever, and RETIRE takes out whole files with old rows.
    """

    LOAD = "load"
    REPLAY = "replay"
    REWIND = "rewind"
    CUT = "cut"
    REDECODE = "redecode"
    CONVERT = "convert"
    REWRITE = "rewrite"
    ERASE = "erase"
    RETIRE = "retire"


TAKING_OUT = frozenset({CommitKind.ERASE, CommitKind.RETIRE})
"""The commits that take rows out of a table. They add none, and so no file but those with the rows that stay."""
MAX_WRITTEN = 5_000
"""The maximum number of places that an entry names one by one in `written`: consumers compare each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    """The topic of a table. `cluster` is its name in the settings; `cluster_id` its own id, empty before 0.10.1.

    If the topic has several tables, `name` has the route of the table behind the name of the topic: `events/orders`.
    """

    cluster: str
    name: str
    incarnation: str
    cluster_id: str = ""

    @classmethod
    def of(cls, cluster: "Cluster", topic: TopicEntry, name: str = "") -> Self:
        """The topic of the cluster, in its present incarnation; `name` is that of its table, if it is another one."""
        cluster_id = cluster.cluster_id() or ""
        return cls(cluster=cluster.name, cluster_id=cluster_id, name=name or topic.name, incarnation=topic.incarnation)

    @property
    def kafka_topic(self) -> str:
        """The name by which brokers know the topic."""
        return topic_of(self.name)

    def app_id(self, partition: BrokerPartition) -> str:
        """The appId of the `txn` action that holds the partition's next offset."""
        return f"penstock/{self.cluster_id or self.cluster}/{self.name}/{self.incarnation}/{partition}"

    @property
    def where(self) -> Where:
        """The topic, for errors."""
        return Where(cluster=self.cluster, topic=self.name)


class Totals(TypedDict):
    """Sums over ranges; `gaps` are by cause."""

    rows: int
    bytes: int
    files: int
    gaps: Mapping[str, int]


def totals(ranges: Sequence[CommittedRange]) -> Totals:
    """The sums over the ranges."""
    return {
        "rows": sum(part.rows for part in ranges),
        "bytes": sum(part.bytes for part in ranges),
        "files": len({path for part in ranges for path in part.paths}),
        "gaps": dict(sum((Counter(part.gaps) for part in ranges), Counter())),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChoice:
    """A choice of the user that decided about offsets `[start, stop)`, for example `on_expired = skip`.

    For offsets that could not be read, `reason` says why, and `path` names the file that keeps their bytes. For offsets
    that were taken back, it says which erased rows a load may bring back.
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

    @property
    def offsets(self) -> OffsetRange:
        """The offsets about which the choice decided."""
        return OffsetRange(BrokerPartition.parse(self.partition), self.start, self.stop)

    @classmethod
    def of(cls, setting: str, value: str, offsets: OffsetRange, *, reason: str = "", path: str | None = None) -> Self:
        """The choice `setting = value`, made for `offsets`."""
        id_, start, stop = str(offsets.partition), offsets.start, offsets.stop
        return cls(setting=setting, value=value, partition=id_, start=start, stop=stop, reason=reason, path=path)


@cache
def _installed_version() -> str:
    """The version of the installed Penstock; cached, because finding it reads the disk."""
    return metadata.version("penstock-etl")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFindings:
    """What a run found out about the identity of a table's topic, and what the user chose about it.

    Args:
        same_topic_id: whether the table and the cluster know the same topic id. Then the topic is the one of the table,
            but its logs may have lost records and have others now.
        replaced: the former incarnation, if the topic was recreated and the user chose to load the new one into the
            same table.
        adopted: the ids that the table had, if they contradict the cluster's and the user chose to continue.
        shown: the state of a new table of the topic, as the cluster shows the topic now.
        followed: the choices, as setting and value.
    """

    same_topic_id: bool = False
    replaced: str | None = None
    adopted: TopicIds | None = None
    shown: "TableState | None" = None
    followed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """The topic of a table and what the table covers; nothing before the first load.

    Args:
        topic: the topic. The table keeps the incarnation of its first load, because the cursors' names contain it.
        ids: the ids of the topic: those that the table knows, and those that the cluster shows.
        covered: what the table covers.
        epochs: the leader epochs under which the bounds of the partitions were last read, if leaders have epochs.
        last_messages: the last message before the cursor of each partition. Earlier versions did not record those of
            topics with a topic id.
        start_times: for partitions that are not covered, the start that the user chose for the table. Other partitions
            that are not covered begin at offset 0.
        event_time: up to which event time the table is complete; None if the settings do not ask for it.
        rules: what the table keeps of records.
        routes: which records go to this table, and which to others of the topic.
        findings: what this run found out about the topic. No entry keeps it.
    """

    topic: TopicIdentity
    ids: TopicIds = field(default_factory=TopicIds)
    covered: Coverage = field(default_factory=dict)
    epochs: LeaderEpochs = field(default_factory=dict)
    last_messages: LastMessages = field(default_factory=dict)
    start_times: StartTimes = field(default_factory=dict)
    event_time: EventTime | None = None
    rules: TableRules = NO_RULES
    routes: TableRoutes = ONE_TABLE
    findings: TopicFindings = field(default_factory=TopicFindings)

    @property
    def begun(self) -> bool:
        """Whether a load has begun the table. If so, the table decides where its other partitions begin (fault P01)."""
        return bool(self.covered) or self.findings.replaced is not None

    def cursor(self, partition: BrokerPartition) -> int | None:
        """The next offset to load; None if the brokers must be asked where the partition begins.

        A partition without a cursor in a table that has begun appeared later, so its first offset is new.
        """
        if partition in self.covered:
            return self.covered[partition][1]
        return 0 if self.begun and partition not in self.start_times else None

    def with_older_leader(self, bounds: Mapping[BrokerPartition, Bounds]) -> list[BrokerPartition]:
        """The partitions whose leader has an older epoch than the one that the table knows (fault B02), in order."""
        known = sorted(self.epochs.items())
        return [id_ for id_, epoch in known if id_ in bounds and 0 <= bounds[id_].epoch < epoch]

    @classmethod
    def new(cls, topic: TopicIdentity, aliases: Iterable[str] = ()) -> Self:
        """The state before the first load. `aliases` are other names of the topic's incarnation."""
        return cls(topic=topic, ids=TopicIds.parse(topic.incarnation, *aliases, cluster_id=topic.cluster_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerRanges:
    """The ranges of a former incarnation of the topic that an erasure changes.

    Args:
        topic: the incarnation.
        covered: what the table covers of it.
        ranges: the ranges without the erased rows.
        written: the erased rows.
    """

    topic: TopicIdentity
    covered: Coverage
    ranges: tuple[CommittedRange, ...]
    written: tuple[LoadedRange, ...]

    def as_dict(self) -> JsonObject:
        """The ranges as the ledger and `penstock history --json` show them."""
        return {
            "topic": msgspec.to_builtins(self.topic),
            "covered": _by_text(self.covered),
            "ranges": [committed.as_dict() for committed in self.ranges],
            "written": msgspec.to_builtins(self.written),
        }

    @classmethod
    def from_dict(cls, fields: JsonObject) -> Self:
        """The inverse of `as_dict`.

        Raises:
            LookupError, TypeError, ValueError: a field is missing, unknown, or has an unknown value.
        """
        stored = _Stored(dict(fields))
        former = cls(
            topic=convert_exact(stored.take("topic", dict[str, object]), TopicIdentity),
            covered=stored.by_partition("covered", dict[str, tuple[int, int]]),
            ranges=stored.ranges(),
            written=_rows(stored.take("written", list[JsonObject])),
        )
        stored.check_all_taken()
        return former


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The part of an entry that only an erasure has.

    Args:
        request: the request for which it was made, as its user calls it.
        former: what it changes of former incarnations of the topic, the newest first.
    """

    request: str = ""
    former: tuple[FormerRanges, ...] = ()


NO_ERASURE = Erasure()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The content of one commit: its ranges, and the state in which it leaves the table.

    The entry's ranges replace all earlier ranges that they overlap. Offsets that the state does not cover are no longer
    in the table.

    Args:
        commit: the commit's own id; it finds the commit if the answer to the write was lost.
        run: the id of the run that made the commit.
        code: the version of Penstock that made the commit.
        kind: what the commit does.
        sequence: the commit's number; every commit of the table adds one.
        ranges: what the commit loaded or replaced.
        state: the topic, in the incarnation that was loaded, and what the table covers after the commit.
        choices: the user's choices that this commit follows.
        target: the version that a rewind restored.
        table: the id of the table; empty in entries of versions before 0.7.
        columns: the columns that the commit added to a typed table, or that got further members, as fields of Delta's
            schema.
        schemas: the ids of all schemas that the loads of the table have seen, and digests of their texts.
        written: the rows that a replay or a redecode has written in place of others. The ranges of a replay also name
            rows that it only copied, and a redecode has no ranges. For an erasure, the rows that it took out.
        planned_on: the digest of the commit before this one; empty in entries of earlier versions.
        erasure: what only an erasure has.
    """

    commit: str
    run: str
    code: str = field(default_factory=_installed_version)
    kind: CommitKind
    sequence: int
    ranges: tuple[CommittedRange, ...]
    state: TableState
    choices: tuple[RecordedChoice, ...] = ()
    target: int | None = None
    table: str = ""
    columns: tuple[DeltaField, ...] = ()
    schemas: SchemaIds = NO_SCHEMAS
    written: tuple[LoadedRange, ...] = ()
    planned_on: str = ""
    erasure: Erasure = NO_ERASURE

    def by_incarnation(self) -> Iterator[Self]:
        """The entry for each incarnation of the topic whose rows it changes. The first is the entry itself."""
        yield self
        for own in self.erasure.former:
            state = TableState(topic=own.topic, covered=own.covered)
            yield replace(self, state=state, ranges=own.ranges, written=own.written, choices=(), erasure=NO_ERASURE)

    @property
    def all_ranges(self) -> tuple[CommittedRange, ...]:
        """The ranges of all incarnations."""
        return tuple(committed for own in self.by_incarnation() for committed in own.ranges)

    @property
    def topic(self) -> TopicIdentity:
        """The topic, in the incarnation that was loaded."""
        return self.state.topic

    @property
    def replaces_rows(self) -> bool:
        """Whether the commit wrote rows in place of others, so that its ranges also name rows that it copied."""
        return self.kind in {CommitKind.REPLAY, CommitKind.CUT, *TAKING_OUT}

    @property
    def kept_paths(self) -> Iterable[str]:
        """The files beside the data that the entry names: skipped bytes, and sets of offsets."""
        yield from (choice.path for choice in self.choices if choice.path)
        yield from (stored.path for part in self.all_ranges for stored in part.exact.values() if stored.path)

    @property
    def covered(self) -> Coverage:
        """What the table covers after the commit."""
        return self.state.covered

    @property
    def event_time(self) -> EventTime | None:
        """Up to which event time the table is complete after the commit."""
        return self.state.event_time

    def to_json(self) -> str:
        """The entry as text for the commit info. The order of its fields is that of all versions."""
        state = self.state
        stored = {
            "commit": self.commit,
            "run": self.run,
            "code": self.code,
            "kind": self.kind,
            "sequence": self.sequence,
            "topic": state.topic,
            "ranges": [committed.as_dict() for committed in self.ranges],
            "covered": _by_text(state.covered),
            "epochs": _by_text(state.epochs),
            "ids": state.ids,
            "last_messages": _by_text(state.last_messages),
            "choices": self.choices,
            "target": self.target,
            "table": self.table,
            "start_times": _by_text(state.start_times),
        }
        if_any = {
            "columns": self.columns,
            "schemas": self.schemas.values,
            "key_schemas": self.schemas.keys,
            "written": self.written,
            "planned_on": self.planned_on,
            "request": self.erasure.request,
            "former": [former.as_dict() for former in self.erasure.former],
            "event_time": state.event_time and state.event_time.as_dict(),
            "rules": state.rules.as_dict(),
            "routes": state.routes.as_dict(),
            "schema_messages": self.schemas.messages,
            "schema_texts": self.schemas.value_texts,
            "key_schema_texts": self.schemas.key_texts,
        }
        return msgspec.json.encode(stored | {name: value for name, value in if_any.items() if value}).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        Raises:
            EntryUnknown: a newer version has written it, with a kind, a field or a value that may change what all
                others mean; or the text is damaged.
        """
        written_by = "unknown"
        try:
            stored = _Stored(decode_json(text, dict[str, object]))
            written_by = str(stored.fields.get("code", written_by))
            return cls._of(stored)
        except (LookupError, TypeError, ValueError) as error:
            raise EntryUnknown(
                f"the ledger has an entry by Penstock {written_by} that Penstock {_installed_version()} does not know "
                f"({error}): upgrade Penstock"
            ) from error

    @classmethod
    def _of(cls, stored: "_Stored") -> Self:
        """The entry with these fields.

        Raises:
            LookupError, TypeError, ValueError: a field is missing, unknown, or has an unknown value.
        """
        entry = cls(
            commit=stored.take("commit", str),
            run=stored.take("run", str),
            code=stored.take("code", str),
            kind=stored.take("kind", CommitKind),
            sequence=stored.take("sequence", int),
            state=stored.state(),
            ranges=stored.ranges(),
            choices=tuple(convert_exact(choice, RecordedChoice) for choice in stored.take("choices", list[JsonObject])),
            target=stored.take("target", int) if stored.fields.get("target") is not None else None,
            table=stored.take("table", str, ""),
            columns=stored.take("columns", tuple[DeltaField, ...], ()),
            schemas=stored.schemas(),
            written=_rows(stored.take("written", list[JsonObject], [])),
            planned_on=stored.take("planned_on", str, ""),
            erasure=stored.erasure(),
        )
        stored.fields.pop("target", None)
        stored.check_all_taken()
        return entry


@dataclass(frozen=True, slots=True)
class _Stored:
    """The fields of a stored entry that were not taken yet. Older versions lack some of them."""

    fields: dict[str, object]

    def take(self, name: str, type_: type[T], default: T | None = None) -> T:
        """Take a field. Without a default, each entry has it."""
        if name not in self.fields and default is not None:
            return default
        return convert(self.fields.pop(name), type_)

    def check_all_taken(self) -> None:
        """Check that no field is left.

        Raises:
            TypeError: some are.
        """
        if self.fields:
            raise TypeError(f"unknown fields: {', '.join(sorted(self.fields))}")

    def ranges(self) -> tuple[CommittedRange, ...]:
        """Take the ranges."""
        return tuple(map(CommittedRange.from_dict, self.take("ranges", list[JsonObject])))

    def erasure(self) -> Erasure:
        """Take what only an erasure has."""
        former = self.take("former", list[JsonObject], [])
        return Erasure(request=self.take("request", str, ""), former=tuple(map(FormerRanges.from_dict, former)))

    def by_partition(self, name: str, type_: type[dict[str, T]]) -> dict[BrokerPartition, T]:
        """Take a field that has a value for each partition; empty if the entry lacks it."""
        by_text = self.take(name, type_, {})
        return {BrokerPartition.parse(text): value for text, value in by_text.items()}

    def schemas(self) -> SchemaIds:
        """Take the schemas that the loads of the table have seen."""
        return SchemaIds(
            values=self.take("schemas", tuple[int, ...], ()),
            keys=self.take("key_schemas", tuple[int, ...], ()),
            messages=self.take("schema_messages", tuple[str, ...], ()),
            value_texts=self._texts("schema_texts"),
            key_texts=self._texts("key_schema_texts"),
        )

    def _texts(self, name: str) -> SchemaTexts:
        return tuple(convert_exact(text, SchemaText) for text in self.take(name, list[JsonObject], []))

    def state(self) -> TableState:
        """Take the state of the table after the commit."""
        topic = convert_exact(self.take("topic", dict[str, object]), TopicIdentity)
        ids, event_time = self.take("ids", dict[str, object], {}), self.fields.pop("event_time", None)
        return TableState(
            topic=topic,
            ids=convert_exact(ids, TopicIds) if ids else TableState.new(topic).ids,
            covered=self.by_partition("covered", dict[str, tuple[int, int]]),
            epochs=self.by_partition("epochs", dict[str, int]),
            last_messages=convert_exact_values(self.by_partition("last_messages", dict[str, JsonObject]), LastMessage),
            start_times=self.by_partition("start_times", dict[str, int]),
            event_time=EventTime.from_dict(convert(event_time, dict[str, object])) if event_time else None,
            rules=convert_exact(self.take("rules", dict[str, object], {}), TableRules),
            routes=convert_exact(self.take("routes", dict[str, object], {}), TableRoutes),
        )


def _rows(stored: Iterable[JsonObject]) -> tuple[LoadedRange, ...]:
    return tuple(map(LoadedRange.from_dict, stored))


def _by_text(values: Mapping[BrokerPartition, object]) -> JsonObject:
    return {str(partition): value for partition, value in values.items()}
