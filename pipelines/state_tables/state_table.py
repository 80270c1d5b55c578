"""The state table of a topic: the newest row of each key, with the columns of the topic's table and two more.

`_deleted` says that the newest row is a tombstone, or a delete of Debezium. Such a row stays, because older rows of its
key may come back by a backfill or a replay. `_state_position` is what the row is compared by, besides its offset.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.columns import field_name
from pipelines.delta.write_options import CONFIGURATION
from pipelines.increments.delta_output import DeltaOutput
from pipelines.layout.columns import ERROR_COLUMN, TOMBSTONE_COLUMN
from pipelines.layout.layout import TableLayout
from pipelines.state_tables.unavailable import placeholder_condition
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources import topic_names
from resources.errors import OutputRefused
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_state import RECORD_KEY

DELETED, POSITION = "_deleted", "_state_position"
PLACE = ("broker", "partition", "offset", "inner", "loaded_at")
_FOLDER = "_state"
_OP, _SOURCE = "__op", "__source"
_DEBEZIUM_POSITIONS = (
    ("lsn",),  # Postgres
    ("file", "pos", "row"),  # MySQL and MariaDB
    ("commit_lsn", "change_lsn", "event_serial_no"),  # SQL Server
    ("ts_ms", "ord"),  # MongoDB
)
"""The members of Debezium's `source` that are a position in the log of a database, by connector."""


def state_output(table: LakeTable) -> DeltaOutput:
    """The state table of a topic. Its folder is beside those of the clusters, and its name is hidden from readers."""
    folders = topic_names.folders(table.where.topic or "")
    root = table.lake.root.rstrip("/")
    uri = "/".join((root, _FOLDER, table.where.cluster or "", *folders))
    return DeltaOutput(uri=uri, options=table.lake.options, configuration=CONFIGURATION)


@dataclass(frozen=True, kw_only=True)
class StateDefinition:
    """The columns of a state table, and what its rows are compared by. If it changes, the table is built again.

    Args:
        topic_table: the URI of the topic's table, for messages.
        layout: the layout of the topic's table.
        source_schema: its columns.
        keys: the columns that are the key. A field whose type has changed has several columns, and all of them count.
        order: the fields that order rows, as paths; empty for the event time of the record and the offset.
        unavailable: what stands in cells whose values the database did not send; empty if nothing does.
    """

    topic_table: str
    layout: TableLayout
    source_schema: pa.Schema
    keys: tuple[str, ...]
    order: tuple[str, ...]
    unavailable: str = ""

    @classmethod
    def of(cls, topic: TopicOptions, snapshot: TableSnapshot) -> Self:
        """The definition that the settings of a topic give for a version of its table.

        Raises:
            OutputRefused: the table lacks a column, or has one of another type than a key or an order needs.
        """
        assert topic.state is not None
        layout, schema = snapshot.layout, snapshot.opened.schema()
        named = [layout.name(name) if name == RECORD_KEY else name for name in topic.state.key]
        definition = cls(
            topic_table=snapshot.opened.uri,
            layout=layout,
            source_schema=schema,
            keys=tuple(dict.fromkeys(column for name in named for column in _columns_of(name, layout.values))),
            order=topic.state.order or _debezium_order(topic, schema),
            unavailable=topic.unavailable_value,
        )
        definition._check()
        return definition

    def _check(self) -> None:
        taken = sorted({DELETED, POSITION} & set(self.source_schema.names))
        if taken:
            raise self._refused(f"has a column {taken[0]} of its own, which the state table needs")
        for name in (*self.keys, *self.order):
            if pa.types.is_nested(self._type_of(name)):
                raise self._refused(f"has no single value in {name}, which the settings of the state table name")
        for path in self.order:
            self._check_one_type(path)

    def _check_one_type(self, path: str) -> None:
        """Check that all values of an order can be compared: those of other types are in other columns (fault A07)."""
        fields: Iterable[pa.Field] = self.layout.values
        for name in [path] if path in self.source_schema.names else path.split("."):
            columns = _columns_of(name, fields)
            if len(columns) > 1:
                raise self._refused(
                    f"has the field {path} with several types, in {' and '.join(columns)}, so it cannot order rows: "
                    "set `order` of the state table to a field with one type"
                )
            kinds = [field.type for field in fields if field.name == name]
            fields = list(kinds[0]) if kinds and pa.types.is_struct(kinds[0]) else ()

    def _type_of(self, path: str) -> pa.DataType:
        """The type of a column, or of a member of a column."""
        name, *members = path.split(".") if path not in self.source_schema.names else (path,)
        if name not in self.source_schema.names:
            raise self._refused(f"has no column {name}, which the settings of the state table name")
        kind = self.source_schema.field(name).type
        for member in members:
            if not pa.types.is_struct(kind) or kind.get_field_index(member) < 0:
                raise self._refused(f"has no member {path}, which the settings of the state table name")
            kind = kind.field(member).type
        return kind

    def _refused(self, what: str) -> OutputRefused:
        return OutputRefused(f"the table {self.topic_table} {what}")

    @property
    def number(self) -> int:
        """A number of 63 bits for what makes the rows of the state: another number means to build it again."""
        parts = [self.keys, self.order, self.layout.is_typed, self.layout.partition_column]
        text = json.dumps([*parts, self.unavailable] if self.unavailable else parts)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    @cached_property
    def position_type(self) -> pa.StructType:
        """The type of `_state_position`."""
        if not self.order:
            return pa.struct([pa.field("time_us", pa.int64())])
        return pa.struct([pa.field(path.replace(".", "_"), self._type_of(path)) for path in self.order])

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the state table."""
        own = [pa.field(DELETED, pa.bool_()), pa.field(POSITION, self.position_type)]
        return pa.schema([*self.source_schema, *own])

    @property
    def places(self) -> list[str]:
        """The columns that say from which row of the topic's table a row is: those of PLACE."""
        return [self.layout.name(name) for name in PLACE]

    @property
    def compared_columns(self) -> list[str]:
        """The columns of the topic's table that decide which row is the newest of its key."""
        ordering = [path if path in self.source_schema.names else path.split(".")[0] for path in self.order]
        times = ordering or [self.layout.name("timestamp")]
        return list(dict.fromkeys([*self.keys, *self.places, *times, *self.lifetime_columns, *self.large_columns]))

    @cached_property
    def large_columns(self) -> tuple[str, ...]:
        """The columns whose cells may have a placeholder."""
        columns = [column for column in self.layout.values if self.unavailable and column.name not in self.keys]
        return tuple(column.name for column in columns if self.placeholder_condition(column.name, "") is not None)

    def placeholder_condition(self, column: str, cell: str) -> str | None:
        """The SQL condition for cells of a column that have the placeholder; None if no cell can have it."""
        return placeholder_condition(self.source_schema.field(column).type, cell, self.unavailable)

    @property
    def lifetime_columns(self) -> list[str]:
        """The columns that say which rows have no values that a placeholder after them could stand for."""
        own = [ERROR_COLUMN, TOMBSTONE_COLUMN, *({_OP} & set(self.source_schema.names))]
        return own if self.large_columns else []

    def positions(self, rows: pa.RecordBatch) -> pa.StructArray:
        """The position of each row of the topic's table: it orders the rows of a key. It is null if a field is null."""
        if self.order:
            values = [_value(rows, path) for path in self.order]
        else:
            values = [rows.column(self.layout.name("timestamp")).cast(pa.int64())]
        kind = self.position_type
        columns = [value.cast(kind.field(number).type) for number, value in enumerate(values)]
        unknown = np.logical_or.reduce([value.is_null().to_numpy(zero_copy_only=False) for value in values])
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(unknown))

    def deleted(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Whether rows of the topic's table delete their keys."""
        if not self.layout.is_typed:
            return rows.column("value").is_null()
        tombstones = pc.fill_null(rows.column(TOMBSTONE_COLUMN), fill_value=False)
        if _OP not in rows.schema.names:
            return tombstones
        return pc.or_(tombstones, pc.fill_null(pc.equal(rows.column(_OP), "d"), fill_value=False))


def _columns_of(name: str, fields: Iterable[pa.Field]) -> list[str]:
    """The columns with the values of the field that has the column `name`. Each type of its values has one."""
    fields = list(fields)
    field = next((field_name(column) for column in fields if column.name == name), None)
    return [column.name for column in fields if field_name(column) == field] or [name]


def _debezium_order(topic: TopicOptions, schema: pa.Schema) -> tuple[str, ...]:
    """The position in the log of the database, if the table has one that can be compared."""
    if topic.format.format != "debezium" or _SOURCE not in schema.names:
        return ()
    source = schema.field(_SOURCE).type
    members = {source.field(number).name for number in range(source.num_fields)} if pa.types.is_struct(source) else ()
    position = next((names for names in _DEBEZIUM_POSITIONS if set(names) <= set(members)), ())
    return tuple(f"{_SOURCE}.{name}" for name in position)


def _value(rows: pa.RecordBatch, path: str) -> pa.Array:
    """A column, or a member of a column."""
    if path in rows.schema.names:
        return rows.column(path)
    name, *members = path.split(".")
    return pc.struct_field(rows.column(name), members)
