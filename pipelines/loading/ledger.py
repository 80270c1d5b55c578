"""The ledger's values: what each commit of a table says it holds.

A commit's `txn` actions are the cursor (appId = cluster/topic/incarnation/partition, version = next offset) and the
commit's number, which all commits of a table count up together. The commit info beside them carries one JSON text, the
`Entry`, that tells the ranges, their rows, gaps and files.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import metadata
from typing import Any, Self

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition
from pipelines.loading.work import Facts

KEY = "penstock"
SEQUENCE = "penstock/sequence"
"""The appId whose version is the number of the newest commit. Every commit sets it, so any two collide."""
Covered = Mapping[BrokerPartition, tuple[int, int]]
"""Of each partition the `[start, cursor)` that a table covers without a hole."""
Epochs = Mapping[BrokerPartition, int]


class Kind(StrEnum):
    """What a commit does: adds ranges, fetches some again, takes the table back, or takes one partition's end back."""

    LOAD = "load"
    REPLAY = "replay"
    REWIND = "rewind"
    CUT = "cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Whose table it is. `cluster` is the settings' name; `cluster_id` the brokers' own, empty before 0.10.1."""

    cluster: str
    name: str
    incarnation: str
    cluster_id: str = ""

    def app_id(self, partition: BrokerPartition) -> str:
        """The `txn` appId under which the partition's next offset is kept."""
        return f"penstock/{self.cluster_id or self.cluster}/{self.name}/{self.incarnation}/{partition}"

    @property
    def where(self) -> Where:
        """The topic's place, for errors."""
        return Where(cluster=self.cluster, topic=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A committed range of one partition: every offset in it is in one of `rows` rows, or in a gap.

    Its rows have `loaded_at_us` (microseconds since 1970) as their `loaded_at`. `source` is the broker it was read
    from, `id@host:port`; empty for what no broker gave.
    """

    broker: int | None
    partition: int
    start: int
    stop: int
    rows: int
    bytes: int
    loaded_at_us: int
    gaps: Mapping[str, int] = field(default_factory=dict)
    path: str | None = None
    source: str = ""

    @property
    def id(self) -> BrokerPartition:
        """The broker-partition."""
        return BrokerPartition(self.broker, self.partition)

    def __str__(self) -> str:
        return f"partition {self.id} [{self.start}, {self.stop})"

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """What a worker did, as the ledger keeps it."""
        same = {name: getattr(facts, name) for name in cls.__dataclass_fields__}
        return cls(**same)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A choice of the user's, and where it was followed: `setting = value` let offsets `[start, stop)` go by."""

    setting: str
    value: str
    partition: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.setting} = {self.value}: partition {self.partition} [{self.start}, {self.stop})"


@cache
def _this_code() -> str:
    """The version that is installed; telling it reads the disk."""
    return metadata.version("penstock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one commit holds: its ranges, and after it the `[start, cursor)` of all partitions the table knows.

    Its ranges stand for all earlier ones that they overlap. What lies beyond `covered` is no longer there.

    Args:
        commit: its own id, by which it is found after an answer was lost.
        sequence: its number, counted up by every commit of the table.
        code: the version of Penstock that made it.
        epochs: those of the leaders that last said what the partitions hold, where leaders have one.
        choices: what the user let pass in this commit.
        target: the version that a rewind went back to.
    """

    commit: str
    run: str
    code: str = field(default_factory=_this_code)
    kind: Kind
    sequence: int
    topic: Topic
    ranges: tuple[Range, ...]
    covered: Covered
    epochs: Epochs = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    target: int | None = None

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
        made = {
            "kind": Kind(fields["kind"]),
            "topic": Topic(**fields["topic"]),
            "ranges": tuple(Range(**one) for one in fields["ranges"]),
            "covered": {BrokerPartition.parse(id_): (start, stop) for id_, (start, stop) in fields["covered"].items()},
            "epochs": {BrokerPartition.parse(id_): epoch for id_, epoch in fields["epochs"].items()},
            "choices": tuple(Choice(**one) for one in fields["choices"]),
        }
        return cls(**{**fields, **made})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whose a table is and how far it has come; nothing is covered before the first load.

    The topic keeps the incarnation it was first loaded under, for the cursor's names hold it. `replaced` is the
    incarnation whose table it was before, where a load starts anew by choice.
    """

    topic: Topic
    covered: Covered = field(default_factory=dict)
    epochs: Epochs = field(default_factory=dict)
    replaced: str | None = None

    @classmethod
    def after(cls, entry: Entry) -> Self:
        """Where a commit left the table."""
        return cls(topic=entry.topic, covered=entry.covered, epochs=entry.epochs)
