"""One commit of a table's log, whoever made it: as the commit info tells it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from pipelines.loading.ledger import KEY, Entry

_RESTORE = "RESTORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A version of the log. Of a commit that is not Penstock's there is no entry.

    `operation` is Delta's word for what it did; `restored` is the version that somebody's bare RESTORE took the files
    from, if it says.
    """

    version: int
    time: datetime
    operation: str
    entry: Entry | None = None
    restored: int | None = None

    @classmethod
    def of(cls, version: int, info: Mapping[str, Any]) -> Self:
        """The commit of a version, from its commit info."""
        restored = str((info.get("operationParameters") or {}).get("version"))
        entry = Entry.from_json(info[KEY]) if KEY in info else None
        operation = str(info.get("operation", ""))
        return cls(
            version=version,
            time=datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC),
            operation=operation,
            entry=entry,
            restored=int(restored) if operation == _RESTORE and entry is None and restored.isdecimal() else None,
        )

    def strayed(self, topic: str | None) -> str:
        """What a bare RESTORE did to the topic's cursor, and the way out."""
        source, version = "an old version", ""
        if self.restored is not None:
            source, version = f"version {self.restored}", f" {topic} --version {self.restored}"
        told = f"version {self.version} restored {source} of the table, but not its cursor"
        return f"{told}: `penstock rewind{version}` takes both back together"


def newest_entry(commits: Iterable[Logged]) -> tuple[Entry | None, Logged | None]:
    """Of commits, newest first: the newest of Penstock, and the newest RESTORE by others on top of it (L14)."""
    restore = None
    for one in commits:
        if one.entry is not None:
            return one.entry, restore
        if one.operation == _RESTORE and restore is None:
            restore = one
    return None, restore
