"""What the ledger keeps of the offsets of one partition: those that a commit loaded, and those that it wrote again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import msgspec

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.typed_json import JsonObject, convert, convert_exact

NOWHERE = OffsetRange(BrokerPartition(None, 0), 0, 0)
"""The offsets of a range that only names files."""
EXPIRED = "expired"
"""The cause of a gap whose records expired before a load could read them."""


class ExactCause(StrEnum):
    """The causes of gaps that Kafka's log does not show. Each has its exact set of offsets beside the number.

    Nobody lost such a record: somebody decided that it has no row, or that it is a row of another table of the topic.
    """

    ERASED = "erased"
    FILTERED = "filtered"
    RETIRED = "retired"
    ROUTED = "routed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSet:
    """Where an exact set is stored. It may have more offsets than the range that refers to it: only those within count.

    Args:
        sha256: the digest of its bytes, in hex.
        size: their number.
        inline: the bytes as base64, if they are few.
        path: otherwise the file with the bytes, relative to the table.
    """

    sha256: str
    size: int
    inline: str = ""
    path: str = ""

    def as_dict(self) -> JsonObject:
        """The reference as the ledger and `penstock history --json` show it."""
        place = {"inline": self.inline} if self.inline else {"path": self.path}
        return {"sha256": self.sha256, "size": self.size, **place}


_EXACT = frozenset(ExactCause)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRange:
    """Offsets of one partition as the ledger records them: each of them has a row, or is in a gap.

    Args:
        offsets: the offsets.
        rows: the number of rows.
        bytes: the bytes that were read: of the log in 0.7; of columns later, where a slice may cut through records
            that are compressed together.
        loaded_at_us: the rows' `loaded_at`, in microseconds since 1970.
        gaps: the number of offsets without a row, by cause.
        paths: the files with the rows, relative to the table. Several are those of the days of a slice. Only the commit
            of a load records them: what a replay fetched is written into other files.
        source: the broker that served the last read, `id@host:port`; empty if no broker served the range.
        isolation: the setting with which transactions were read, "committed" or "uncommitted"; empty in 0.7 and if it
            is not known.
        exact: the sets of the gaps with an ExactCause. In 0.7, where an offset can have several rows, `gaps` has the
            numbers of these rows.
    """

    offsets: OffsetRange
    rows: int = 0
    bytes: int = 0
    loaded_at_us: int = 0
    gaps: Mapping[str, int] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    source: str = ""
    isolation: str = ""
    exact: Mapping[ExactCause, StoredSet] = field(default_factory=dict)

    @property
    def partition(self) -> BrokerPartition:
        """The partition of the range."""
        return self.offsets.partition

    @property
    def visible_gaps(self) -> Mapping[str, int]:
        """The gaps that the log shows, without those of an ExactCause."""
        return {cause: count for cause, count in self.gaps.items() if cause not in _EXACT}

    def __str__(self) -> str:
        return str(self.offsets)

    def as_dict(self) -> JsonObject:
        """The range as the ledger and `penstock history --json` show it: `broker`, `partition`, `start`, `stop`, ..."""
        path, *more_paths = self.paths or (None,)
        return {
            "broker": self.partition.broker,
            "partition": self.partition.partition,
            "start": self.offsets.start,
            "stop": self.offsets.stop,
            "rows": self.rows,
            "bytes": self.bytes,
            "loaded_at_us": self.loaded_at_us,
            "gaps": dict(self.gaps),
            "path": path,
            **({"more_paths": more_paths} if more_paths else {}),
            "source": self.source,
            "isolation": self.isolation,
            **({"exact": {cause: stored.as_dict() for cause, stored in self.exact.items()}} if self.exact else {}),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """The inverse of `as_dict`.

        Raises:
            KeyError, ValueError: a field is missing, unknown, or does not fit its type.
        """
        left = dict(stored)
        partition = {name: left.pop(name) for name in ("broker", "partition")}
        offsets = {"partition": partition, "start": left.pop("start"), "stop": left.pop("stop")}
        path, more_paths = left.pop("path"), convert(left.pop("more_paths", ()), tuple[str, ...])
        exact = convert(left.pop("exact", {}), dict[ExactCause, JsonObject])
        known = {cause: convert_exact(stored_set, StoredSet) for cause, stored_set in exact.items()}
        whole = {**left, "offsets": offsets, "paths": (path, *more_paths) if path else (), "exact": known}
        return convert_exact(whole, cls)


@dataclass(frozen=True, slots=True)
class LoadedRange:
    """Offsets of one partition whose rows have the same loading time, in microseconds since 1970.

    Partition, offset and loading time identify the rows of a table, also if it holds several incarnations of the topic.
    """

    offsets: OffsetRange
    loaded_at_us: int

    def __str__(self) -> str:
        return str(self.offsets)

    @classmethod
    def of(cls, committed: CommittedRange) -> Self:
        """The rows of a committed range."""
        return cls(committed.offsets, committed.loaded_at_us)

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """The rows as `msgspec.to_builtins` wrote them.

        Raises:
            ValueError: a field is missing, unknown, or does not fit its type.
        """
        rows = convert(stored, cls)
        if stored != msgspec.to_builtins(rows):
            raise ValueError(f"unknown fields of rows that were written again: {stored}")
        return rows
