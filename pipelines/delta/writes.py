"""Commits to a Delta table through deltalake: one commit has the columns, files, ledger entry and cursors."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.transaction import AddAction, RemoveAction

from pipelines.delta.open_version import DeltaVersion
from pipelines.delta.write_options import AFTER_COMMIT, AFTER_ENTRY, WRITING
from pipelines.layout.delta_schema import DeltaField
from pipelines.layout.event_days import EventDays
from pipelines.layout.file_statistics import with_decimals
from pipelines.layout.layout import NO_DAY, TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import KEY, SEQUENCE, LedgerEntry
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table.grown_maps import GrownFile, files_with_other_maps, have_other_maps, write_again
from pipelines.table.row_filter import arrow_filter
from pipelines.table.table_store import CommitConflict, TableSnapshot
from resources.failpoints import failpoint
from resources.stores.lake import filesystem

if TYPE_CHECKING:  # it imports pandas
    import pyarrow.dataset as pads

_CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_COMMITS_PER_CHECKPOINT = 10
_TWO_DAYS = ("1970-01-01", "1970-01-02")  # a file has one date, so no file matches both


def append(snapshot: TableSnapshot, entry: LedgerEntry, files: Sequence[SliceFacts]) -> None:
    """Write `entry` with the files. The table gets the columns that it lacks in the same commit."""
    handle, layout = DeltaVersion.of(snapshot).writer, snapshot.layout.with_columns(entry.columns)
    schema = _schema_after(handle, snapshot.layout, entry)
    if schema:
        failpoint("columns changed")
    actions = [add_action(file, layout) for facts in files for file in facts.files]
    _write_actions(
        handle,
        actions,
        schema=schema,
        partition_by=[layout.partition_column],
        committing=properties(snapshot, entry),
        hooks=AFTER_ENTRY,
    )


def _write_actions(
    handle: DeltaTable,
    actions: Sequence[AddAction | RemoveAction],
    *,
    schema: Schema | None,
    partition_by: Sequence[str],
    committing: CommitProperties,
    hooks: PostCommitHookProperties,
) -> None:
    """Write a commit with these actions, and with the columns of the schema, if there is one."""
    # An append ignores its schema, so the new columns would never be visible. An overwrite adds them. It removes the
    # files that match the filters: no file can have two dates, so it removes none.
    days = [(name, "=", day) for name in partition_by for day in _TWO_DAYS]
    handle.create_write_transaction(
        list(actions),
        mode="overwrite" if schema else "append",
        partition_filters=days if schema else None,
        schema=schema or handle.schema(),
        partition_by=list(partition_by),
        commit_properties=committing,
        post_commithook_properties=hooks,
    )


def checkpoint_interval(configuration: Mapping[str, str]) -> int:
    """The number of commits between two checkpoints of a table with these properties. deltalake's default is 100."""
    return max(1, int(configuration.get(_CHECKPOINT_INTERVAL, _COMMITS_PER_CHECKPOINT)))


def convert(snapshot: TableSnapshot, entry: LedgerEntry, files: Sequence[SliceFacts]) -> None:
    """Write `entry` with typed files that replace all files of a raw table, and with the columns of a typed table."""
    layout = snapshot.layout.converted().with_columns(entry.columns)
    failpoint("columns changed")
    DeltaVersion.of(snapshot).writer.create_write_transaction(
        [add_action(file, layout) for facts in files for file in facts.files],
        mode="overwrite",
        schema=Schema.from_arrow(layout.table_schema),
        partition_by=[layout.partition_column],
        commit_properties=properties(snapshot, entry),
        post_commithook_properties=AFTER_ENTRY,
    )


def replace_files(snapshot: TableSnapshot, entry: LedgerEntry, files: Sequence[SliceFacts]) -> None:
    """Write `entry` with files that replace all files of a table. Its columns stay as they are."""
    writer, layout = DeltaVersion.of(snapshot).writer, snapshot.layout
    writer.create_write_transaction(
        [add_action(file, layout) for facts in files for file in facts.files],
        mode="overwrite",
        schema=writer.schema(),
        partition_by=[layout.partition_column],
        commit_properties=properties(snapshot, entry),
        post_commithook_properties=AFTER_ENTRY,
    )


def replace_rows(
    snapshot: TableSnapshot,
    entry: LedgerEntry,
    new_files: Sequence[SliceFacts],
    replaced: Sequence[CommittedRange],
    options: Mapping[str, str],
) -> None:
    """Write `entry` with the rows of the new files in place of the rows of the ranges.

    This process writes the new rows into new files, together with the other rows of the files that held replaced
    ones.

    Raises:
        CommitConflict: old files were written again first, so the entry belongs on top of that commit.
    """
    writer, committing = DeltaVersion.of(snapshot).writer, properties(snapshot, entry)
    ranges = [*replaced, *(facts.range for facts in new_files)]
    rows = reduce(or_, (arrow_filter(committed, snapshot.layout) for committed in ranges))
    if grow_maps(writer, options, schema=_with_grown_maps(writer, snapshot.layout, entry), rows=rows):
        raise CommitConflict("files with older maps were written again")
    predicate = " OR ".join(sql_filter(committed, snapshot.layout) for committed in ranges)
    store = filesystem(snapshot.opened.uri, options)
    if new_files:
        # "merge" adds the columns that a table of an older version lacks.
        write_deltalake(
            writer,
            _staged(new_files, snapshot.layout.with_columns(entry.columns), snapshot.other_columns(), store),
            mode="overwrite",
            schema_mode="merge",
            predicate=predicate,
            writer_properties=WRITING,
            commit_properties=committing,
            post_commithook_properties=AFTER_ENTRY,
        )
    else:
        writer.delete(
            predicate, writer_properties=WRITING, commit_properties=committing, post_commithook_properties=AFTER_ENTRY
        )


def grow_maps(
    writer: DeltaTable,
    options: Mapping[str, str],
    *,
    schema: Schema | None = None,
    rows: "pads.Expression | None" = None,
    max_bytes: int | None = None,
) -> bool:
    """Write files again that deltalake could not read; see grown_maps.py. Returns whether there was something to do.

    The commits change no row. They land on the version of `writer`, or not at all, and `writer` follows them.

    Args:
        writer: the table.
        options: the options of its store.
        schema: the columns that the table gets before that.
        rows: only files that may have such rows; by default all.
        max_bytes: only files of less than this size; by default all.

    Raises:
        CommitFailedError: another commit was first.
    """
    wanted, partition_by = pa.schema((schema or writer.schema()).to_arrow()), writer.metadata().partition_columns
    columns = pa.schema([column for column in wanted if column.name not in partition_by])
    adds = {unquote(add["path"]): add for add in pa.table(writer.get_add_actions()).to_pylist()}
    actions: list[AddAction | RemoveAction] = []
    for file in files_with_other_maps(writer.to_pyarrow_dataset(), columns, rows):
        old = adds[file.path]
        if max_bytes is None or old["size_bytes"] < max_bytes:
            actions += _in_place_of(old, write_again(file, writer.table_uri, options, columns))
    if schema:
        _write_same_rows(writer, [], schema)
    if actions:
        _write_same_rows(writer, actions)
    return bool(schema or actions)


def _in_place_of(old: Mapping[str, Any], new: GrownFile) -> Iterator[AddAction | RemoveAction]:
    """The actions that put a new file with the same rows in the place of an old one."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    folders = {name: None if value is None else str(value) for name, value in (old.get("partition") or {}).items()}
    # deltalake encodes the paths of both actions for the log.
    yield RemoveAction(unquote(old["path"]), False, now_ms, old["size_bytes"], folders)
    yield AddAction(
        path=new.path,
        size=new.size,
        partition_values=folders,
        modification_time=now_ms,
        data_change=False,
        stats=msgspec.json.encode(new.stats).decode(),
    )


def _write_same_rows(
    writer: DeltaTable, actions: Sequence[AddAction | RemoveAction], schema: Schema | None = None
) -> None:
    """Write a commit that changes no row. If it has a schema, the table gets its columns."""
    version, partition_by = writer.version(), writer.metadata().partition_columns
    committing = CommitProperties(max_commit_retries=0)
    _write_actions(writer, actions, schema=schema, partition_by=partition_by, committing=committing, hooks=AFTER_COMMIT)
    failpoint("maps grown")
    writer.load_as_version(version + 1)  # and not a newer one: a compaction must meet the commits after it


def sql_filter(committed: CommittedRange, layout: TableLayout) -> str:
    """Matches the rows of the range, in SQL. It contains only numbers, so nothing needs quotes."""
    broker, partition = committed.partition.broker, committed.partition.partition
    name = {own: f'"{layout.name(own)}"' for own in ("broker", "partition", "offset", "loaded_at")}
    # No column of the filter is ever null in a row of such a topic, so `=` is enough.
    of_broker = "" if broker is None else f"{name['broker']} = {broker} AND "
    loaded_at = f"arrow_cast({committed.loaded_at_us}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    start, stop = committed.offsets.start, committed.offsets.stop
    offsets = f"{name['offset']} >= {start} AND {name['offset']} < {stop}"
    return f"({of_broker}{name['partition']} = {partition} AND {offsets} AND {name['loaded_at']} = {loaded_at})"


def _staged(
    files: Sequence[SliceFacts], layout: TableLayout, others: Sequence[pa.Field], store: pafs.FileSystem
) -> pa.RecordBatchReader:
    """The rows of the files, with the partition column: the date in the name of their folder, or the day of each row.

    `others` are columns of the table that Penstock did not add. Fetched rows do not have them; they are null.
    """
    import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas, which a load does not need

    schema = pa.schema([*layout.file_schema, *others])

    def rows() -> Iterator[pa.RecordBatch]:
        for slice_range, path in ((facts.range, file.path) for facts in files for file in facts.files):
            days = EventDays(layout, slice_range.loaded_at_us) if layout.is_by_day else None
            date = None if days else pa.scalar(_folder_value(path, layout)).cast(pa.date32())
            dataset = pads.dataset([path], schema=schema, filesystem=store, format="parquet")
            for batch in dataset.to_batches():
                column = days.column(batch) if days else pa.repeat(date, batch.num_rows)
                yield batch.append_column(layout.partition_field, column)

    *columns, date_column = layout.table_schema
    return pa.RecordBatchReader.from_batches(pa.schema([*columns, *others, date_column]), rows())


def transactions(snapshot: TableSnapshot, entry: LedgerEntry) -> Sequence[tuple[str, int]]:
    """The `txn` actions of a commit: its number, and the cursors that it moves."""
    before = snapshot.entry.covered if snapshot.entry and snapshot.entry.topic == entry.topic else {}
    moved = {
        partition: cursor
        for partition, (_, cursor) in sorted(entry.covered.items())
        if partition not in before or before[partition][1] != cursor
    }
    cursors = [(entry.topic.app_id(partition), cursor) for partition, cursor in moved.items()]
    return [(SEQUENCE, entry.sequence), *cursors]


def properties(snapshot: TableSnapshot, entry: LedgerEntry) -> CommitProperties:
    """The properties of a commit in the delta log: the entry, its number, and the cursors that it moves.

    Without the retries of deltalake the commit is the next version or does not land. With them, deltalake would write
    it on top of a compaction too, which has other files than those that the commit removes (fault L16).
    """
    return CommitProperties(
        custom_metadata={KEY: entry.to_json()},
        app_transactions=[Transaction(*transaction) for transaction in transactions(snapshot, entry)],
        max_commit_retries=0,
    )


def fields_after(fields: Sequence[DeltaField], layout: TableLayout, entry: LedgerEntry) -> Sequence[DeltaField]:
    """The fields of the table's schema with the columns of the entry that it lacks; none if it lacks none.

    A raw table of an older version lacks the columns that files have since.
    """
    present = {field["name"]: field for field in fields}
    if layout.is_typed:
        needed_fields = {field["name"]: field for field in entry.columns}
    else:
        missing = [column for column in FILE_SCHEMA if column.name not in present]
        needed_fields = {field.name: json.loads(field.to_json()) for field in map(Field.from_arrow, missing)}
    return list((present | needed_fields).values()) if needed_fields else ()


def _schema_after(handle: DeltaTable, layout: TableLayout, entry: LedgerEntry) -> Schema | None:
    """The table's schema with the columns of the entry that it lacks; None if it lacks none."""
    fields = fields_after(json.loads(handle.schema().to_json())["fields"], layout, entry)
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields})) if fields else None


def _with_grown_maps(handle: DeltaTable, layout: TableLayout, entry: LedgerEntry) -> Schema | None:
    """The table's schema with the columns of the entry, if these change a map that it has."""
    schema = _schema_after(handle, layout, entry)
    is_grown = schema and have_other_maps(pa.schema(handle.schema().to_arrow()), pa.schema(schema.to_arrow()))
    return schema if is_grown else None


def add_action(file: DataFile, layout: TableLayout) -> AddAction:
    """The action that adds the file to a table."""
    decimals = {column.name for column in layout.values if pa.types.is_decimal(column.type)}
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={layout.partition_column: _folder_value(file.path, layout)},
        modification_time=int(datetime.now(UTC).timestamp() * 1000),
        data_change=True,
        stats=msgspec.json.encode(with_decimals(file.stats, decimals)).decode(),
    )


def _folder_value(path: str, layout: TableLayout) -> str | None:
    """The value of the partition column, from the name of a file's folder."""
    prefix = f"{layout.partition_column}="
    [value] = [part.removeprefix(prefix) for part in path.split("/") if part.startswith(prefix)]
    return None if value == NO_DAY else value
