"""The layout of a table: which columns hold the metadata of a record, and which columns hold its value.

A raw table has key and value as bytes (see FILE_SCHEMA). A typed table has a column for each field of the values. The
metadata columns of a typed table, such as the offset, have names that begin with `_kafka_`, so that no field collides
with them. Besides:

- `_error` is the reason why a value could not be decoded, and `_raw` has the bytes of such a value;
- `_tombstone` says that the record has no value.

The metadata columns are the first ones, because a table exists before its fields are known, and because Delta keeps
statistics of a table's first columns only.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import pyarrow as pa

from pipelines.loading.columns import ERROR_COLUMN, NO_COLUMNS, RAW_COLUMN, TOMBSTONE_COLUMN, with_columns
from pipelines.loading.delta_schema import DeltaField, arrow_columns, delta_metadata
from pipelines.loading.rows import DICTIONARY, FILE_SCHEMA, PARTITION_COLUMN, RAW_TIME_COLUMN, TABLE_SCHEMA

DATE_COLUMN = "_kafka_loaded_date"
_TYPED_NAMES = {
    "topic": "_kafka_topic",
    "partition": "_kafka_partition",
    "offset": "_kafka_offset",
    "timestamp": "_kafka_timestamp",
    "timestampType": "_kafka_timestamp_type",
    "key": "_kafka_key",
    "headers": "_kafka_headers",
    "broker": "_kafka_broker",
    "inner": "_kafka_inner",
    "loaded_at": "_kafka_loaded_at",
    RAW_TIME_COLUMN: "_kafka_timestamp_raw",
    "value": RAW_COLUMN,
    PARTITION_COLUMN: DATE_COLUMN,
}
"""The columns of a raw table with their names in a typed table, in the order of its columns.

`value` is null there, unless it could not be decoded.
"""
_MEANINGS = {
    "topic": "the topic of the record",
    "partition": "the number of its partition",
    "offset": "its offset in the partition",
    "timestamp": "the record's time; null if there is none",
    "timestampType": "who set the time: 0 the producer, 1 the broker, -1 nobody",
    "key": "the key's bytes",
    "headers": "the headers; null if there are none",
    "broker": "Kafka 0.7: the broker of the partition",
    "inner": "Kafka 0.7: the position inside a compressed message",
    "loaded_at": "when the load of the record was planned",
    RAW_TIME_COLUMN: "the producer's number, if it is not a time between the years 1 and 9999",
    "value": "the value's bytes",
    PARTITION_COLUMN: "the date of `loaded_at`; files are in folders of this date",
}
"""What the columns of a raw table hold."""
_TYPED_MEANINGS = {
    RAW_COLUMN: "the bytes of a value that does not decode",
    ERROR_COLUMN: "why the value does not decode",
    TOMBSTONE_COLUMN: "whether the record has no value",
}
_ORDERED = (
    "topic",
    "broker",
    "partition",
    "offset",
    "timestamp",
    RAW_TIME_COLUMN,
    "timestampType",
    "inner",
    "loaded_at",
)
"""The columns of a file that have an order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """The columns of a table.

    Args:
        is_typed: whether the table is typed.
        values: the columns for the fields of the values; empty in a raw table.
        others: the names of columns that Penstock did not add.
        date_column: the partition column of a typed table. A table that was raw before keeps the one of a raw table:
            Delta cannot change it.
    """

    is_typed: bool = False
    values: pa.Schema = NO_COLUMNS
    others: tuple[str, ...] = ()
    date_column: str = DATE_COLUMN

    def name(self, column: str) -> str:
        """The table's name of one of the columns of TABLE_SCHEMA."""
        return _TYPED_NAMES[column] if self.is_typed else column

    @property
    def partition_column(self) -> str:
        """The column whose value is in the name of a file's folder: the date of the load."""
        return self.date_column if self.is_typed else PARTITION_COLUMN

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of a new file."""
        return _file_schema(self)

    @property
    def table_schema(self) -> pa.Schema:
        """The columns of a file, and the partition column, with the metadata that Delta's schema gets."""
        if not self.is_typed:
            return TABLE_SCHEMA
        own = [column for column in self.file_schema if column.name not in self.values.names]
        values = [column.with_metadata(delta_metadata(column)) for column in self.values]
        return pa.schema([*own, *values, pa.field(self.partition_column, pa.date32())])

    @property
    def meanings(self) -> dict[str, str]:
        """What the columns hold that are not fields of values, by their names in the table."""
        if not self.is_typed:
            return _MEANINGS
        names = {**_TYPED_NAMES, PARTITION_COLUMN: self.date_column}
        return {**{names[column]: meaning for column, meaning in _MEANINGS.items()}, **_TYPED_MEANINGS}

    @property
    def ordered(self) -> tuple[str, ...]:
        """The columns of a file that have an order, so that the log has their smallest and largest values."""
        if not self.is_typed:
            return _ORDERED
        values = [column.name for column in self.values if _has_order(column.type)]
        return (*map(self.name, _ORDERED), ERROR_COLUMN, TOMBSTONE_COLUMN, *values)

    @property
    def dictionary(self) -> list[str]:
        """The columns of a file in which values repeat."""
        if not self.is_typed:
            return list(DICTIONARY)
        texts = [column.name for column in self.values if column.type in {pa.string(), pa.binary()}]
        return [*map(self.name, DICTIONARY), ERROR_COLUMN, *texts]

    @property
    def taken(self) -> tuple[str, ...]:
        """The names that no column for a field may have."""
        own = (*_TYPED_NAMES.values(), ERROR_COLUMN, TOMBSTONE_COLUMN, self.date_column) if self.is_typed else ()
        return tuple(dict.fromkeys([*own, *self.others]))

    def with_columns(self, fields: Iterable[DeltaField]) -> Self:
        """The layout after these columns were added, or got further members."""
        return replace(self, values=with_columns(self.values, arrow_columns(fields)))

    @classmethod
    def of_delta(cls, schema_json: str) -> Self:
        """The layout of a table with this schema, which is Delta's JSON text."""
        fields = json.loads(schema_json)["fields"]
        names = {field["name"] for field in fields}
        if _TYPED_NAMES["offset"] not in names:
            return cls()
        date_column = DATE_COLUMN if DATE_COLUMN in names else PARTITION_COLUMN
        own = {*_TYPED_NAMES.values(), ERROR_COLUMN, TOMBSTONE_COLUMN, date_column}
        values = arrow_columns(field for field in fields if field["name"] not in own)
        others = [field["name"] for field in fields if field["name"] not in {*own, *values.names}]
        return cls(is_typed=True, values=values, others=tuple(others), date_column=date_column)


RAW = TableLayout()
TYPED = TableLayout(is_typed=True)
CONVERTED = TableLayout(is_typed=True, date_column=PARTITION_COLUMN)
"""The layout of a typed table that was raw before."""


@cache
def _file_schema(layout: TableLayout) -> pa.Schema:
    if not layout.is_typed:
        return FILE_SCHEMA
    fields = {name: FILE_SCHEMA.field(own).with_name(name) for own, name in _TYPED_NAMES.items() if own in _FILE_NAMES}
    raw = fields.pop(RAW_COLUMN)
    state = [pa.field(TOMBSTONE_COLUMN, pa.bool_()), pa.field(ERROR_COLUMN, pa.string()), raw]
    # Parquet files need no comments; the log of the table has them.
    values = [column.remove_metadata() for column in layout.values]
    return pa.schema([*fields.values(), *state, *values])


_FILE_NAMES = set(FILE_SCHEMA.names)


def _has_order(kind: pa.DataType) -> bool:
    """Whether the log must have the bounds of a column of this type (see file_statistics.py)."""
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
