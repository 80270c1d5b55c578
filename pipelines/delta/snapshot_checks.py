"""Checks whether a load can continue from a version of a table, and makes its snapshot."""

from collections.abc import Iterator

import msgspec

from kafka_io.errors import Where
from pipelines.delta.delta_log_segment import TableDefinition
from pipelines.delta.foreign_features import foreign_features
from pipelines.delta.open_version import DeltaVersion
from pipelines.delta.write_options import CONFIGURATION, LOG_CLEANUP
from pipelines.layout.delta_schema import names_of
from pipelines.layout.layout import TableLayout
from pipelines.ledger.ledger import SEQUENCE
from pipelines.table.table_commit import TableCommit, newest_commits
from pipelines.table.table_store import TableSnapshot
from resources.errors import LakeRefused, TableForeign

_NUL = "\\u0000"  # as JSON has it
_TXN_EXPIRY = "delta.setTransactionRetentionDuration"


def checked_snapshot(
    uri: str,
    where: Where,
    definition: TableDefinition,
    commits: Iterator[TableCommit],
    *,
    version: int,
    opened: DeltaVersion,
) -> TableSnapshot:
    """The snapshot of a version with this definition and these commits, newest first. It is opened only if needed.

    Raises:
        TableForeign: see DeltaLakeTable.existing.
    """
    check_features(uri, where, definition)
    table_id, expiry = definition.table_id, definition.configuration.get(_TXN_EXPIRY)
    if expiry:
        raise TableForeign(
            f"the table sets {_TXN_EXPIRY} = {expiry}, so its cursors would expire; remove the property, for "
            f"example with ALTER TABLE ... UNSET TBLPROPERTIES ('{_TXN_EXPIRY}')",
            where,
        )
    newest = newest_commits(commits)
    entry, restore, stored = newest.entry, newest.restore, newest.sequence
    if entry is None and (version > 0 or opened.handle.file_uris()):
        raise TableForeign(
            f"the table {uri} holds data that Penstock did not load; move it away, or choose another `lake`",
            where,
        )
    _check_log_is_kept(uri, where, definition.configuration.get(LOG_CLEANUP))
    _check_names(uri, where, definition.schema_json)
    if stored is None:
        # Reads the whole delta log. It is needed only if no commit since Penstock's newest one sets this `txn`, which
        # Penstock's commits do: otherwise the newest commit that sets it decides, as in the order of the commits.
        stored = opened.handle.transaction_version(SEQUENCE) or 0
    expected = entry.sequence if entry else 0
    mismatch = None
    if restore is not None:
        mismatch = restore.restore_mismatch(where.topic)
    elif stored != expected:
        mismatch = (
            f"the newest commit has number {expected}, but the table's cursors belong to number {stored}; "
            f"`penstock history {where.topic}` lists the versions to which `penstock rewind` can go back"
        )
    elif entry is not None and entry.table not in {"", table_id}:
        mismatch = (
            f"the newest commit was made for the table {entry.table}, but this is the table {table_id}: a copy of "
            "a table cannot be loaded"
        )
    return TableSnapshot(
        version=version,
        entry=entry,
        table_id=table_id,
        layout=TableLayout.of_delta(definition.schema_json),
        mismatch=mismatch,
        changed=newest.change.change_by_others(where.topic) if newest.change else "",
        digest=newest.digest,
        entry_ms=newest.entry_ms,
        open_table=opened,
    )


def check_features(uri: str, where: Where, definition: TableDefinition) -> None:
    """Check that the table asks nothing of readers and writers that Penstock does not do.

    Raises:
        TableForeign: it does.
    """
    sentence = foreign_features(definition, uri)
    if sentence:
        raise TableForeign(sentence, where)


def _check_log_is_kept(uri: str, where: Where, cleanup: str | None) -> None:
    """Check that no writer of the table deletes commits of the delta log (fault P06)."""
    if cleanup != CONFIGURATION[LOG_CLEANUP]:
        raise TableForeign(
            f"the table {uri} sets {LOG_CLEANUP} = {cleanup or 'true (by default)'}, so other writers delete "
            "old entries of its log, which contain the ledger; set the property to false again, for example with "
            f"ALTER TABLE ... SET TBLPROPERTIES ('{LOG_CLEANUP}' = 'false')",
            where,
        )


def _check_names(uri: str, where: Where, schema_json: str) -> None:
    """Check that readers can open the table (fault E01)."""
    names = names_of(msgspec.json.decode(schema_json)) if _NUL in schema_json else ()
    column = next((name for name in names if "\0" in name), None)
    if column is not None:
        raise LakeRefused(
            f"no reader opens the table {uri}, because a version before 0.7 gave it a column with a NUL in its name, "
            f"{column!r}: docs/typed-tables.md#a-column-has-a-nul-in-its-name has the way on",
            where,
        )
