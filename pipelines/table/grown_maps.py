"""Data files that are older than a member of a struct in a map.

Most readers of Delta give null for a member that a file lacks, and so does deltalake in structs and lists. But inside
the values of a map it refuses the file: then it can neither merge it with others nor replace some of its rows
(fault A26). Such a file is written again with all members. Its rows stay the same, in the same order. Nor can it append
rows with an older type of a map: they get all members before.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_io.values.column_types import content_type, with_content_type
from pipelines.layout.file_statistics import column_stats, with_decimals
from pipelines.layout.layout import types_with_order
from pipelines.layout.personal import is_personal
from resources.stores import durable
from resources.stores.lake import filesystem

if TYPE_CHECKING:  # it imports pandas
    import pyarrow.dataset as pads


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownFile:
    """A file that was written again: its path and size, and the statistics that the log needs."""

    path: str
    size: int
    stats: Mapping[str, Any]


def have_other_maps(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a struct in a map has other members in the stored columns than in the wanted ones."""
    return any(
        _differ(stored.field(column.name).type, column.type, in_map=False)
        for column in wanted
        if column.name in stored.names
    )


def _differ(stored: pa.DataType, wanted: pa.DataType, *, in_map: bool) -> bool:
    if stored.id != wanted.id:
        return False
    if pa.types.is_map(wanted):
        return _differ(stored.item_type, wanted.item_type, in_map=True)
    if pa.types.is_list(wanted):
        return _differ(stored.value_type, wanted.value_type, in_map=in_map)
    if not pa.types.is_struct(wanted):
        return False
    present = {member.name: member.type for member in stored}
    return (in_map and list(present) != [member.name for member in wanted]) or any(
        _differ(present[member.name], member.type, in_map=in_map) for member in wanted if member.name in present
    )


def with_all_members(columns: pa.Schema, others: pa.Schema) -> pa.Schema:
    """The columns. If a struct in a map of one has other members in the other schema, it has the members of both."""
    return pa.schema(
        [
            column.with_type(_joined(column.type, others.field(column.name).type))
            if have_other_maps(others, pa.schema([column]))
            else column
            for column in columns
        ]
    )


def _joined(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    if kind.id != other.id:
        return kind
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return with_content_type(kind, _joined(content_type(kind), content_type(other)))
    if not pa.types.is_struct(kind):
        return kind
    present, more = ({member.name: member for member in own} for own in (kind, other))
    both = (
        member.with_type(_joined(member.type, more[name].type)) if name in more else member
        for name, member in present.items()
    )
    return pa.struct([*both, *(member for name, member in more.items() if name not in present)])


def with_maps_of(rows: pa.RecordBatchReader, columns: pa.Schema) -> pa.RecordBatchReader:
    """The rows, in whose maps structs have the members that they have in these columns. Others stay as they are."""
    schema = pa.schema(
        [
            column.with_type(columns.field(column.name).type)
            if have_other_maps(pa.schema([column]), columns)
            else column
            for column in rows.schema
        ]
    )
    if schema == rows.schema:
        return rows
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in rows))


def files_with_other_maps(
    dataset: "pads.FileSystemDataset", wanted: pa.Schema, rows: "pads.Expression | None" = None
) -> "Iterator[pads.Fragment]":
    """The files with other members in maps. Only files that may have such rows are opened, if a filter is given.

    Without a struct in a map no file is opened.
    """
    if any(_has_struct(column.type, in_map=False) for column in wanted):
        fragments = dataset.get_fragments() if rows is None else dataset.get_fragments(rows)
        yield from (fragment for fragment in fragments if have_other_maps(fragment.physical_schema, wanted))


def _has_struct(kind: pa.DataType, *, in_map: bool) -> bool:
    """Whether the type has a struct in a map. The keys of maps are never structs."""
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return _has_struct(content_type(kind), in_map=in_map or pa.types.is_map(kind))
    return bool(pa.types.is_struct(kind)) and (in_map or any(_has_struct(member.type, in_map=False) for member in kind))


def write_again(file: "pads.Fragment", uri: str, options: Mapping[str, str], columns: pa.Schema) -> GrownFile:
    """Write the rows of a file with these columns, into another file in its folder that no version names yet.

    Raises:
        OSError: the store does not answer, or the disk is full.
    """
    store = filesystem(uri, options)
    ordered = types_with_order(columns)
    nulls = {column.name: 0 for column in columns if is_personal(column) and column.name in ordered}
    footers: list[pq.FileMetaData] = []
    path = f"{file.path.rpartition('/')[0]}/grown-{uuid.uuid4().hex}.parquet".lstrip("/")
    with (
        store.open_output_stream(path) as stream,
        pq.ParquetWriter(
            stream,
            columns,
            compression="zstd",
            compression_level=1,
            write_statistics=[name for name in ordered if name not in nulls],
            write_page_checksum=True,
            metadata_collector=footers,
        ) as writer,
    ):
        for group in file.split_by_row_group():
            rows = group.to_table(schema=columns)
            writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
            for name in nulls:
                nulls[name] += rows.column(name).null_count
    durable.sync_file(uri, path)
    [footer] = footers
    size = store.get_file_info(path).size
    decimals = {name for name, kind in ordered.items() if pa.types.is_decimal(kind)}
    return GrownFile(path=path, size=size, stats=with_decimals(column_stats(footer, ordered, nulls), decimals))
