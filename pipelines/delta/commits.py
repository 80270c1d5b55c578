"""One commit of a Delta table, made by Penstock or by anybody else, as its actions describe it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

from pipelines.ledger.ledger import KEY, SEQUENCE, LedgerEntry
from resources.errors import EntryUnknown

_RESTORE = "RESTORE"
_HARMLESS = {_RESTORE, "FSCK"}
"""Operations of others that `restore_mismatch` reports, or that take out only files that do not exist any more."""
_COPYING = {"DELETE"}
"""Operations whose files have only rows that were in the table before."""
_MAX_NAME = 100
ActionFields = Mapping[str, Any]
"""The fields of an action as JSON. Other writers may add fields, and `commitInfo` has any that its writer likes."""
Action = Mapping[str, ActionFields]
"""An action of Delta's protocol: its kind, such as `add`, and its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCommit:
    """The commit that made a version.

    Args:
        version: the version's number.
        time: when it was committed.
        operation: Delta's word for what the commit did.
        entry: Penstock's entry; None if somebody else made the commit.
        restored: the version whose files a RESTORE without an entry brought back, if it says.
        added: the paths of the data files that the commit added to the table.
        changed_rows: whether the commit took rows out of the table or replaced some. A compaction does neither.
        writer: what made the commit, as it says of itself.
        by_others: whether another program added rows to the table, or took some out.
        foreign_files: Delta's statistics of each file that another program has filled with rows; empty without any.
        transactions: the versions in the `txn` actions of the commit, by their application id.
        digest: the SHA-256 of its commit file without the statistics of data files; see `digest_of`.
    """

    version: int
    time: datetime
    operation: str
    entry: LedgerEntry | None = None
    restored: int | None = None
    added: tuple[str, ...] = ()
    changed_rows: bool = False
    writer: str = ""
    by_others: bool = False
    foreign_files: tuple[str, ...] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""

    @classmethod
    def of(cls, version: int, actions: Sequence[Action], *, digest: str = "") -> Self:
        """The commit with these actions, one of which is its commit info.

        Raises:
            EntryUnknown: the commit info has an entry of a newer Penstock.
        """
        info: ActionFields = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        restored = str((info.get("operationParameters") or {}).get("version"))
        entry = _entry(version, info[KEY]) if KEY in info else None
        operation = str(info.get("operation", ""))
        removes = [action["remove"] for action in actions if "remove" in action]
        changed_rows = any(remove.get("dataChange", True) for remove in removes)
        filled = [action["add"] for action in actions if "add" in action and action["add"].get("dataChange", True)]
        by_others = entry is None and operation not in _HARMLESS and (changed_rows or bool(filled))
        return cls(
            version=version,
            time=datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC),
            operation=operation,
            entry=entry,
            restored=int(restored) if operation == _RESTORE and entry is None and restored.isdecimal() else None,
            added=tuple(unquote(action["add"]["path"]) for action in actions if "add" in action),
            changed_rows=changed_rows,
            writer=_writer(info),
            by_others=by_others,
            foreign_files=tuple(
                str(add.get("stats") or "") for add in filled if by_others and operation not in _COPYING
            ),
            transactions={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
            digest=digest,
        )

    @property
    def time_ms(self) -> int:
        """When it was committed, in ms since 1970."""
        return round(self.time.timestamp() * 1000)

    def restore_mismatch(self, topic: str | None) -> str:
        """The sentence that says how this RESTORE broke the topic's cursor, and how to repair it."""
        source, arguments = "an old version", ""
        if self.restored is not None:
            source, arguments = f"version {self.restored}", f" {topic} --version {self.restored}"
        return (
            f"version {self.version} restored {source} of the table, but not its cursor: "
            f"`penstock rewind{arguments}` takes both back together"
        )

    def change_by_others(self, topic: str | None) -> str:
        """The sentence that says that this commit changed rows without the ledger, and how to repair it."""
        only_removed = self.operation in _COPYING or not self.foreign_files
        last = f", or `penstock erase {topic} --missing` records that they are gone" if only_removed else ""
        return (
            f"version {self.version} changed rows of the table, and Penstock did not write it ({self.writer}): "
            f"`penstock rewind {topic} --version {self.version - 1}` takes this back,{'' if last else ' or'} `penstock "
            f"replay {topic} --from earliest --to latest` fetches the rows again{last}"
        )


def _writer(info: ActionFields) -> str:
    """The operation and the program that made a commit, such as `UPDATE by delta-rs:py-1.6.6`, and its user."""
    names = [info.get(name) for name in ("operation", "engineInfo", "userName")]
    operation, engine, user = (str(name)[:_MAX_NAME] if name else "" for name in names)
    by = f" by {engine or 'an unknown program'}"
    return f"{operation or 'unknown operation'}{by}{f' for {user}' if user else ''}"


def _entry(version: int, text: str) -> LedgerEntry:
    """The entry in the commit info of a version.

    Raises:
        EntryUnknown: a newer Penstock has written it.
    """
    try:
        return LedgerEntry.from_json(text)
    except EntryUnknown as error:
        raise EntryUnknown(f"{error.reason} (version {version} of the table)") from error.__cause__


class NewestCommits(NamedTuple):
    """The facts in the commits from Penstock's newest commit on.

    Args:
        entry: Penstock's newest entry; None if there is none.
        restore: the newest RESTORE by others on top of it (fault L14).
        change: the oldest commit on top of it in which another program changed rows (fault A04).
        sequence: the newest version of the `txn` SEQUENCE in these commits; None if none of them sets it.
        digest: the digest of the newest commit.
        entry_ms: when Penstock's newest entry was committed, in ms since 1970.
    """

    entry: LedgerEntry | None = None
    restore: DeltaCommit | None = None
    sequence: int | None = None
    digest: str = ""
    entry_ms: int | None = None
    change: DeltaCommit | None = None


def newest_commits(commits: Iterable[DeltaCommit]) -> NewestCommits:
    """Read the newest commits down to the one with Penstock's newest entry.

    `commits` are in order of version, newest first; they are read only as far as needed.
    """
    restore, sequence, digest, change = None, None, None, None
    for commit in commits:
        digest = commit.digest if digest is None else digest
        sequence = commit.transactions.get(SEQUENCE) if sequence is None else sequence
        if commit.entry is not None:
            return NewestCommits(commit.entry, restore, sequence, digest, commit.time_ms, change)
        change = commit if commit.by_others else change
        if commit.operation == _RESTORE and restore is None:
            restore = commit
    return NewestCommits(None, restore, sequence, digest or "", None, change)
