"""The table's log as a ledger: what each commit says it holds, and the cursor.

A commit's `txn` actions are the cursor (appId = cluster/topic/incarnation/partition, version = next offset). The commit
info beside them carries one JSON text, the `Entry`, that tells the ranges, their rows, gaps and files.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from deltalake import DeltaTable

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition
from pipelines.loading.work import Facts
from resources.errors import CursorStrayed, TableForeign, TopicRecreated
from resources.lake import Lake, filesystem, lake_errors

KEY = "penstock"
Covered = Mapping[BrokerPartition, tuple[int, int]]
"""Of each partition the `[start, cursor)` that a table covers without a hole."""
Epochs = Mapping[BrokerPartition, int]

_TXN_EXPIRY = "delta.setTransactionRetentionDuration"
CONFIGURATION = {
    # The log is the ledger: what it says is never cleaned away by itself.
    "delta.enableExpiredLogCleanup": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Whose table it is."""

    cluster: str
    name: str
    incarnation: str

    def app_id(self, partition: BrokerPartition) -> str:
        """The `txn` appId under which the partition's next offset is kept."""
        return f"penstock/{self.cluster}/{self.name}/{self.incarnation}/{partition}"

    @property
    def where(self) -> Where:
        """The topic's place, for errors."""
        return Where(cluster=self.cluster, topic=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A committed range of one partition: every offset in it is in one of `rows` rows, or in a gap."""

    broker: int | None
    partition: int
    start: int
    stop: int
    rows: int
    bytes: int
    gaps: Mapping[str, int] = field(default_factory=dict)
    path: str | None = None

    @property
    def id(self) -> BrokerPartition:
        """The broker-partition."""
        return BrokerPartition(self.broker, self.partition)

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """What a worker did, as the ledger keeps it."""
        return cls(
            broker=facts.broker,
            partition=facts.partition,
            start=facts.start,
            stop=facts.stop,
            rows=facts.rows,
            bytes=facts.bytes,
            gaps=facts.gaps,
            path=facts.path,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one commit holds: its ranges, and after it the `[start, cursor)` of all partitions the table knows.

    `epochs` are those of the leaders that last said what the partitions hold, for partitions whose leaders have one.
    """

    commit: str
    run: str
    code: str
    topic: Topic
    ranges: tuple[Range, ...]
    covered: Covered
    epochs: Epochs = field(default_factory=dict)

    def to_json(self) -> str:
        """As text for the commit info."""
        fields = asdict(replace(self, covered={}, epochs={}))
        fields["covered"] = {str(id_): span for id_, span in self.covered.items()}
        fields["epochs"] = {str(id_): epoch for id_, epoch in self.epochs.items()}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse."""
        fields: dict[str, Any] = json.loads(text)
        return cls(
            commit=fields["commit"],
            run=fields["run"],
            code=fields["code"],
            topic=Topic(**fields["topic"]),
            ranges=tuple(Range(**one) for one in fields["ranges"]),
            covered={BrokerPartition.parse(id_): (start, stop) for id_, (start, stop) in fields["covered"].items()},
            epochs={BrokerPartition.parse(id_): epoch for id_, epoch in fields["epochs"].items()},
        )


def entries(lake: Lake, table: DeltaTable) -> Iterator[tuple[int, Entry]]:
    """Version and entry of each commit that Penstock made, newest first, up to the version behind `table`."""
    return ((version, Entry.from_json(info[KEY])) for version, info in _commits(lake, table) if KEY in info)


def _commits(lake: Lake, table: DeltaTable) -> Iterator[tuple[int, dict[str, Any]]]:
    """Version and commit info, newest first, read from the log itself.

    deltalake's `history` counts down from the handle's version but begins at the newest commit there is: behind a
    handle that others have overtaken it tells later commits under earlier numbers.
    """
    files = filesystem(table.table_uri, lake.options)
    for version in range(table.version(), -1, -1):
        with lake_errors(table.table_uri), files.open_input_stream(f"_delta_log/{version:020d}.json") as log:
            actions = [json.loads(line) for line in log.read().splitlines() if line]
        yield version, next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _newest(lake: Lake, table: DeltaTable, where: Where) -> Entry | None:
    """The newest entry; None for a table with nothing loaded yet."""
    for _, info in _commits(lake, table):
        if info.get("operation") == "RESTORE":
            raise CursorStrayed("the table was restored to an old version, but its cursor was not", where)
        if KEY in info:
            return Entry.from_json(info[KEY])
    if table.version() > 0 or table.file_uris():
        raise TableForeign(f"the table {table.table_uri} holds data that Penstock did not load", where)
    return None


def newest(lake: Lake, table: DeltaTable, where: Where) -> Entry | None:
    """The newest entry, whose `covered` is the cursor; None for a table with nothing loaded yet.

    Raises:
        TableForeign: commits are there, but none of them is Penstock's; or its `txn` entries expire, for then a cursor
            could vanish (L15).
        CursorStrayed: the `txn` cursor is not where the entry left it, or somebody restored an old version (L14).
    """
    expiry = table.metadata().configuration.get(_TXN_EXPIRY)
    if expiry:
        raise TableForeign(f"the table sets {_TXN_EXPIRY} = {expiry}: cursors would expire", where)
    entry = _newest(lake, table, where)
    for strayed in strayed_cursors(table, entry) if entry else ():
        raise CursorStrayed(strayed, where)
    return entry


def strayed_cursors(table: DeltaTable, entry: Entry) -> Iterator[str]:
    """A sentence for each `txn` cursor that is not where `entry` left it."""
    for id_, (_, at) in sorted(entry.covered.items()):
        cursor = table.transaction_version(entry.topic.app_id(id_))
        if cursor != at:
            yield f"partition {id_}: the cursor stands at {cursor}, the newest commit left it at {at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whose a table is and how far it has come; nothing is covered before the first load.

    The topic keeps the incarnation it was first loaded under, for the cursor's names hold it.
    """

    topic: Topic
    covered: Covered = field(default_factory=dict)
    epochs: Epochs = field(default_factory=dict)


def standing(lake: Lake, table: DeltaTable, topic: Topic, also: Collection[str] = ()) -> Standing:
    """Where the table stands, as the very snapshot behind `table` has it.

    `also` are other incarnations that mean the same (see `TopicEntry`).

    Raises:
        TopicRecreated: the table holds another incarnation of the topic (B05, B06).
        LoadError: see `newest`.
    """
    entry = newest(lake, table, topic.where)
    if entry is None:
        return Standing(topic=topic)
    if entry.topic.incarnation not in {topic.incarnation, *also}:
        raise TopicRecreated(
            f"the table holds incarnation {entry.topic.incarnation} of the topic, the cluster has {topic.incarnation}",
            topic.where,
        )
    return Standing(topic=entry.topic, covered=entry.covered, epochs=entry.epochs)
