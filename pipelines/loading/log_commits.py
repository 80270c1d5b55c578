"""One commit of a table's log, made by Penstock or by anybody else, as its commit info describes it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import unquote

from pipelines.loading.ledger import KEY, LedgerEntry

_RESTORE = "RESTORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCommit:
    """A version of the log.

    Args:
        version: the version's number.
        time: when it was committed.
        operation: Delta's word for what the commit did.
        entry: Penstock's entry; None if somebody else made the commit.
        restored: the version whose files a RESTORE without an entry brought back, if it says.
        added: the paths of the data files that the commit added to the table.
        changed_rows: whether the commit took rows out of the table or replaced some. A compaction does neither.
        transactions: the versions that the commit gives to `txn` entries, by their application id.
    """

    version: int
    time: datetime
    operation: str
    entry: LedgerEntry | None = None
    restored: int | None = None
    added: tuple[str, ...] = ()
    changed_rows: bool = False
    transactions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, version: int, actions: Sequence[Mapping[str, Any]]) -> Self:
        """The commit with these actions, one of which is its commit info."""
        info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        restored = str((info.get("operationParameters") or {}).get("version"))
        entry = LedgerEntry.from_json(info[KEY]) if KEY in info else None
        operation = str(info.get("operation", ""))
        return cls(
            version=version,
            time=datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC),
            operation=operation,
            entry=entry,
            restored=int(restored) if operation == _RESTORE and entry is None and restored.isdecimal() else None,
            added=tuple(unquote(action["add"]["path"]) for action in actions if "add" in action),
            changed_rows=any(action["remove"].get("dataChange", True) for action in actions if "remove" in action),
            transactions={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
        )

    def restore_mismatch(self, topic: str | None) -> str:
        """The sentence that says how this RESTORE broke the topic's cursor, and how to repair it."""
        source, arguments = "an old version", ""
        if self.restored is not None:
            source, arguments = f"version {self.restored}", f" {topic} --version {self.restored}"
        return (
            f"version {self.version} restored {source} of the table, but not its cursor: "
            f"`penstock rewind{arguments}` takes both back together"
        )


def newest_entry(commits: Iterable[LogCommit]) -> tuple[LedgerEntry | None, LogCommit | None]:
    """Penstock's newest entry, and the newest RESTORE by others on top of it (fault L14).

    `commits` are in order of version, newest first; they are read only as far as needed.
    """
    restore = None
    for commit in commits:
        if commit.entry is not None:
            return commit.entry, restore
        if commit.operation == _RESTORE and restore is None:
            restore = commit
    return None, restore
