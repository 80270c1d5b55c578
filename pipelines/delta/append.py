"""Writes the commit of a load without deltalake: its files, the columns that the table lacks, and the cursors.

deltalake needs several milliseconds for such a commit, because it reads the delta log for each one. A load has read it
already. Erasures and retirements are written here too, because deltalake cannot take out single files. Other commits
that take files out of a table are written by deltalake, and so are all commits to tables with features of Delta that a
writer has to know; see `can_append`.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from urllib.parse import quote

import msgspec

from pipelines.delta.commits import Action, ActionFields
from pipelines.delta.delta_log_segment import DeltaLogSegment, TableDefinition
from pipelines.delta.writes import add_action, fields_after, transactions
from pipelines.layout.layout import TableLayout
from pipelines.ledger.ledger import KEY, TAKING_OUT, LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.table_store import TableSnapshot
from resources.failpoints import failpoint

_MAX_WRITER_VERSION = 2
_FEATURES_VERSION = 7
_KNOWN_FEATURES = {"appendOnly", "invariants", "timestampNtz", "vacuumProtocolCheck"}
"""Features of writers that ask nothing of a commit that only adds files."""


def can_append(definition: TableDefinition) -> bool:
    """Whether a commit that only adds files and columns needs nothing else, by the rules of the table's protocol."""
    version = definition.min_writer_version
    return version <= _MAX_WRITER_VERSION or (
        version == _FEATURES_VERSION and _KNOWN_FEATURES.issuperset(definition.writer_features)
    )


def appended_commit(
    snapshot: TableSnapshot,
    segment: DeltaLogSegment,
    entry: LedgerEntry,
    files: Sequence[SliceFacts],
    removed: Sequence[str] = (),
) -> bytes:
    """The text of the next commit: `entry`, with the files and the columns that the table lacks.

    The `removed` files are not in the table any more.
    """
    removes = ({"remove": _removed(path)} for path in removed)
    actions = chain(_actions(snapshot, segment, entry, files), removes)
    return b"\n".join(msgspec.json.encode(action) for action in actions)


def _removed(path: str) -> Mapping[str, object]:
    return {"path": quote(path, safe="/="), "deletionTimestamp": time.time_ns() // 1_000_000, "dataChange": True}


def _operation(entry: LedgerEntry, layout: TableLayout) -> ActionFields:
    """Delta's word for what the commit does. An erasure does not say which rows it took out."""
    if entry.kind in TAKING_OUT:
        return {"operation": "DELETE", "operationParameters": {}}
    parameters = {"mode": "Append", "partitionBy": json.dumps([layout.partition_column])}
    return {"operation": "WRITE", "operationParameters": parameters}


def _actions(
    snapshot: TableSnapshot, segment: DeltaLogSegment, entry: LedgerEntry, files: Sequence[SliceFacts]
) -> Iterator[Action]:
    layout = snapshot.layout.with_columns(entry.columns)
    yield {
        "commitInfo": {
            "timestamp": time.time_ns() // 1_000_000,
            **_operation(entry, layout),
            "engineInfo": f"penstock:{entry.code}",
            KEY: entry.to_json(),
        }
    }
    fields = fields_after(json.loads(segment.definition.schema_json)["fields"], snapshot.layout, entry)
    if fields:
        failpoint("columns changed")
        schema = json.dumps({"type": "struct", "fields": fields})
        # It takes the place of the action before it, so it repeats the id and the properties of the table.
        yield {"metaData": {**segment.metadata, "schemaString": schema}}
    for file in (file for facts in files for file in facts.files):
        action = add_action(file, layout)
        yield {
            "add": {
                # Delta has parts of URIs here. Readers decode them, so a path with a space is not found otherwise.
                "path": quote(action.path, safe="/="),
                "partitionValues": action.partition_values,
                "size": action.size,
                "modificationTime": action.modification_time,
                "dataChange": action.data_change,
                "stats": action.stats,
            }
        }
    for application, version in transactions(snapshot, entry):
        yield {"txn": {"appId": application, "version": version}}
