"""What Dagster knows of a table: its columns with comments, its rows, its versions, and how assets read it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from pipelines.defs.catalog.metadata import Metadata
from pipelines.formats.tables import lake_table, native_table
from pipelines.layout.columns import HEADER_PREFIX, KEY_PREFIX, RAW_COLUMN
from pipelines.layout.delta_schema import DeltaField, type_text
from pipelines.layout.layout import TableLayout
from pipelines.layout.personal import is_personal, paths_below, paths_of_headers
from pipelines.table.lake_table import LakeTable
from pipelines.table.row_filter import arrow_filter
from pipelines.table.table_store import TableSnapshot
from resources.stores.lake import Lake, lake_errors

_MAX_TEXT = 100  # characters in a cell of a sample row
_BATCH_ROWS = 1024
_MAX_CURSORS = 5  # a data version with more cursors would be too long to read


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One version of a table, as Dagster's catalog shows it.

    Args:
        metadata: its columns with their types and comments, its rows, its URI, rows of the last commit if the settings
            ask for some, and the event time through which it is complete, if anything proves one.
        data_version: says which records of the topic the table has: it changes with each of the table's cursors.
    """

    metadata: Metadata
    data_version: str


def table_facts(
    lake: Lake, cluster: str, topic: str, samples: int = 0, personal: Sequence[str] = ()
) -> TableFacts | None:
    """What the newest version of a table holds, with so many sample rows; None if there is no table.

    `personal` are the paths of personal fields in the settings.

    Raises:
        LocatedError: the table cannot be read, or is not Penstock's.
    """
    table = lake_table(lake, cluster, topic)
    snapshot = table.newest()
    if snapshot is None:
        return None
    covered = snapshot.entry.covered if snapshot.entry else {}
    cursors = {str(partition): cursor for partition, (_, cursor) in sorted(covered.items())}
    incarnation = snapshot.entry.topic.incarnation if snapshot.entry else ""
    sample = sample_rows(table, snapshot, samples, personal)
    times = snapshot.entry.event_time if snapshot.entry else None
    valid_ms = times.valid_through_ms if times else None
    return TableFacts(
        metadata={
            "dagster/column_schema": _columns(snapshot.opened.fields(), snapshot.layout.meanings),
            "dagster/row_count": snapshot.opened.count(),
            "dagster/uri": table.uri,
            **({"sample_rows": sample} if sample else {}),
            **({} if valid_ms is None else {"valid_through": dg.MetadataValue.timestamp(valid_ms / 1000)}),
        },
        data_version=_data_version(incarnation, cursors),
    )


def _columns(fields: Sequence[DeltaField], meanings: Mapping[str, str]) -> dg.TableSchema:
    """The columns of a table; those without a comment of their own have the meaning that Penstock gives them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                str(field["name"]),
                type_text(field["type"]),
                description=_comment(field["metadata"]) or meanings.get(str(field["name"])),
                constraints=dg.TableColumnConstraints(nullable=bool(field["nullable"])),
            )
            for field in fields
        ]
    )


def _comment(metadata: object) -> str | None:
    return metadata.get("comment") if isinstance(metadata, Mapping) else None


def _data_version(incarnation: str, cursors: Mapping[str, int]) -> str:
    """The cursors of all partitions, readable if they are few. Another incarnation of the topic has other records."""
    digest = hashlib.sha256(json.dumps([incarnation, cursors]).encode()).hexdigest()[:12]
    if len(cursors) > _MAX_CURSORS:
        return digest
    return " ".join([*(f"{partition}:{cursor}" for partition, cursor in cursors.items()), digest])


def sample_rows(
    table: LakeTable, snapshot: TableSnapshot, count: int, personal: Sequence[str] = ()
) -> dg.TableMetadataValue | None:
    """At most `count` rows of the last commit without their personal columns; None if it added no rows.

    Raises:
        LakeUnavailable: the file cannot be read.
    """
    ranges = snapshot.entry.ranges if snapshot.entry else ()
    newest = next((committed for committed in reversed(ranges) if committed.rows), None)
    if newest is None or not count:
        return None
    with lake_errors(table.uri):
        rows = snapshot.opened.dataset().head(
            count,
            filter=arrow_filter(newest, snapshot.layout),
            batch_size=_BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
        )
    hidden = _personal_columns(snapshot.layout, personal)
    rows = rows.select([name for name in rows.column_names if name not in hidden])
    columns = [dg.TableColumn(field.name, str(field.type)) for field in rows.schema]
    records = [dg.TableRecord({name: _cell(value) for name, value in row.items()}) for row in rows.to_pylist()]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))


def _personal_columns(layout: TableLayout, paths: Sequence[str]) -> set[str]:
    """The columns that may hold a personal value, also those that the settings name only since the last commit.

    The bytes of a key, all headers together, and the bytes of a value that does not decode hold all of their fields.
    """
    of_headers = paths_of_headers(paths)
    fields = {
        column.name
        for column in layout.values
        if is_personal(column) or paths_below(column, of_headers if column.name.startswith(HEADER_PREFIX) else paths)
    }
    wholes = {KEY_PREFIX: layout.name("key"), HEADER_PREFIX: layout.name("headers")}
    holders = {
        next((whole for prefix, whole in wholes.items() if name.startswith(prefix)), RAW_COLUMN) for name in fields
    }
    return {*paths, *fields, *holders}


def _cell(value: Any) -> str | int | float | bool | None:
    """A value as Dagster's tables take it. Bytes are shown as text, with a replacement for each invalid one."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value[: 4 * _MAX_TEXT].decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


class TableInputs(dg.IOManager):
    """The IO manager of the tables: an asset that takes a table as an input gets it from the lake.

    Loads write the tables themselves, so Dagster never asks this IO manager to store something.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def load_input(self, context: dg.InputContext) -> object:
        """The table of the upstream asset as a library opens it: a `DeltaTable`, or a `Table` of pyiceberg."""
        metadata = context.upstream_output.definition_metadata if context.upstream_output else {}
        return native_table(self._lake, str(metadata["dagster/uri"]))

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Loads store nothing here."""
