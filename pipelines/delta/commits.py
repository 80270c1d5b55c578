"""Reads one commit of a Delta table, made by Penstock or by anybody else, from its actions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from pipelines.ledger.ledger import KEY, LedgerEntry
from pipelines.table.table_commit import TableCommit
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


def read_commit(version: int, actions: Sequence[Action], *, digest: str = "") -> TableCommit:
    """The commit with these actions, one of which is its commit info. Its digest is that of `digest_of`.

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
    return TableCommit(
        version=version,
        time=datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC),
        operation=operation,
        entry=entry,
        is_restore=operation == _RESTORE,
        restored=int(restored) if operation == _RESTORE and entry is None and restored.isdecimal() else None,
        added=tuple(unquote(action["add"]["path"]) for action in actions if "add" in action),
        changed_rows=changed_rows,
        writer=_writer(info),
        by_others=by_others,
        foreign_files=tuple(str(add.get("stats") or "") for add in filled if by_others and operation not in _COPYING),
        transactions={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
        digest=digest,
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
