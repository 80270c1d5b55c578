"""The layout of a table: which columns hold the metadata of a record, and which columns hold its value.

A raw table has key and value as bytes (see FILE_SCHEMA). A typed table has a column for each field of the values. The
metadata columns of a typed table, such as the offset, have names that begin with `_kafka_`, so that no field collides
with them. Besides:

- `_error` is the reason why a value could not be decoded, and `_raw` has the bytes of such a value;
- `_tombstone` says that the record has no value.

The metadata columns are the first ones, because a table exists before its fields are known, and because Delta keeps
statistics of a table's first columns only.

The files of a table are in folders of the date on which they were loaded, or of the day of the records' event time (see
event_days.py). The table's schema says which of the two, in the metadata of the partition column.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Self

import pyarrow as pa

from pipelines.layout.columns import (
    ERROR_COLUMN,
    NO_COLUMNS,
    RAW_COLUMN,
    SCHEMA_ID_COLUMN,
    TOMBSTONE_COLUMN,
    with_columns,
)
from pipelines.layout.delta_schema import DeltaField, arrow_columns, delta_metadata
from pipelines.layout.personal import is_personal
from pipelines.layout.rows import DICTIONARY, FILE_SCHEMA, PARTITION_COLUMN, RAW_TIME_COLUMN, TABLE_SCHEMA

DATE_COLUMN = "_kafka_loaded_date"
LOADED = "loaded"
"""The value of `partition_by` for folders of the date of the load."""
EVENT_DAY = "event_day"
"""The value of `partition_by` for folders of the day of the record's time; also the partition column of raw tables."""
EVENT_DAY_COLUMN = "_kafka_event_day"
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
"""The name of null in the name of a folder, as Hive, Spark and deltalake write it."""
_STAGED_ROWS = "rows"
_PARTITION_BY = "penstock.partition_by"
_COLUMNS = {
    "topic": ("_kafka_topic", "the topic of the record"),
    "partition": ("_kafka_partition", "the number of its partition"),
    "offset": ("_kafka_offset", "its offset in the partition"),
    "timestamp": ("_kafka_timestamp", "the record's time; null if there is none"),
    "timestampType": ("_kafka_timestamp_type", "who set the time: 0 the producer, 1 the broker, -1 nobody"),
    "key": ("_kafka_key", "the key's bytes"),
    "headers": ("_kafka_headers", "the headers; null if there are none"),
    "broker": ("_kafka_broker", "Kafka 0.7: the broker of the partition"),
    "inner": ("_kafka_inner", "Kafka 0.7: the position inside a compressed message"),
    "loaded_at": ("_kafka_loaded_at", "when the load of the record was planned"),
    RAW_TIME_COLUMN: (
        "_kafka_timestamp_raw",
        "the producer's number, if it is not a time between the years 1 and 9999",
    ),
    "value": (RAW_COLUMN, "the value's bytes"),
    PARTITION_COLUMN: (DATE_COLUMN, "the date of `loaded_at`; files are in folders of this date"),
}
"""The columns of a raw table, with their names in a typed table, in the order of its columns, and what they hold.

`value` is null in a typed table, unless it could not be decoded.
"""
_TYPED_NAMES = {column: typed_name for column, (typed_name, _) in _COLUMNS.items()}
_MEANINGS = {column: meaning for column, (_, meaning) in _COLUMNS.items()}
_EVENT_DAY_MEANING = "the day of {time} in UTC; null if the day was not open in the load; files are in folders of it"
_TYPED_MEANINGS = {
    RAW_COLUMN: "the bytes of a value that does not decode",
    ERROR_COLUMN: "why the value does not decode",
    TOMBSTONE_COLUMN: "whether the record has no value",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """The columns of a table.

    Args:
        is_typed: whether the table is typed.
        values: the columns for the fields of the values; empty in a raw table.
        others: the names of columns that Penstock did not add.
        date_column: the partition column of a typed table. A table that was raw before keeps the one of a raw table:
            Delta cannot change it.
        partition_by: what the partition column holds: LOADED, EVENT_DAY, or the day of this column of a typed table.
    """

    is_typed: bool = False
    values: pa.Schema = NO_COLUMNS
    others: tuple[str, ...] = ()
    date_column: str = DATE_COLUMN
    partition_by: str = LOADED

    def name(self, column: str) -> str:
        """The table's name of one of the columns of TABLE_SCHEMA."""
        return _TYPED_NAMES[column] if self.is_typed else column

    @property
    def partition_column(self) -> str:
        """The column whose value is in the name of a file's folder: the date of the load, or the day of the event."""
        if self.is_typed:
            return self.date_column
        return EVENT_DAY if self.is_by_day else PARTITION_COLUMN

    @property
    def is_by_day(self) -> bool:
        """Whether the files are in folders of the day of the event."""
        return self.partition_by != LOADED

    @property
    def time_column(self) -> str:
        """The column of the event time in a table with folders of its days."""
        return self.name("timestamp") if self.partition_by == EVENT_DAY else self.partition_by

    @property
    def partition_field(self) -> pa.Field:
        """The partition column, with the metadata that Delta's schema gets."""
        metadata = {_PARTITION_BY: self.partition_by} if self.is_by_day else None
        return pa.field(self.partition_column, pa.date32(), metadata=metadata)

    def folder(self, loaded: date | None) -> str:
        """The folder for rows of one load; for staged rows if the folders are those of event days."""
        return f"{self.partition_column}={loaded}" if loaded and not self.is_by_day else _STAGED_ROWS

    def partitioned_by(self, partition_by: str) -> Self:
        """The layout of a new table with other folders."""
        date_column = DATE_COLUMN if partition_by == LOADED else EVENT_DAY_COLUMN
        return replace(self, partition_by=partition_by, date_column=date_column)

    def converted(self) -> Self:
        """The layout of a raw table after it became a typed one."""
        return replace(self, is_typed=True, date_column=self.partition_column)

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of a new file."""
        return _file_schema(self)

    @property
    def table_schema(self) -> pa.Schema:
        """The columns of a file, and the partition column, with the metadata that Delta's schema gets."""
        if not self.is_typed:
            return FILE_SCHEMA.append(self.partition_field) if self.is_by_day else TABLE_SCHEMA
        own = [column for column in self.file_schema if column.name not in self.values.names]
        values = [column.with_metadata(delta_metadata(column)) for column in self.values]
        return pa.schema([*own, *values, self.partition_field])

    @property
    def meanings(self) -> dict[str, str]:
        """What the columns hold that are not fields of values, by their names in the table."""
        meanings = {self.name(column): _MEANINGS[column] for column in FILE_SCHEMA.names}
        meanings[self.partition_column] = (
            _EVENT_DAY_MEANING.format(time=f"`{self.time_column}`") if self.is_by_day else _MEANINGS[PARTITION_COLUMN]
        )
        return {**meanings, **(_TYPED_MEANINGS if self.is_typed else {})}

    @property
    def ordered(self) -> tuple[str, ...]:
        """The columns of a file that have an order, so that the log has their smallest and largest values."""
        return tuple(types_with_order(self.file_schema))

    @property
    def personal(self) -> frozenset[str]:
        """The columns with personal values."""
        return frozenset(column.name for column in self.values if is_personal(column))

    @property
    def dictionary(self) -> list[str]:
        """The columns of a file in which values repeat."""
        if not self.is_typed:
            return list(DICTIONARY)
        texts = {pa.string(), pa.binary()}
        repeating = [column.name for column in self.values if column.type in texts or column.name == SCHEMA_ID_COLUMN]
        return [*map(self.name, DICTIONARY), ERROR_COLUMN, *repeating]

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
        by_day = {field["name"]: field["metadata"][_PARTITION_BY] for field in fields if _is_day(field)}
        date_column = next(iter(by_day), DATE_COLUMN if DATE_COLUMN in names else PARTITION_COLUMN)
        partition_by = by_day.get(date_column, LOADED)
        if _TYPED_NAMES["offset"] not in names:
            return cls().partitioned_by(partition_by)
        own = {*_TYPED_NAMES.values(), ERROR_COLUMN, TOMBSTONE_COLUMN, date_column}
        values = arrow_columns(field for field in fields if field["name"] not in own)
        others = [field["name"] for field in fields if field["name"] not in {*own, *values.names}]
        return cls(
            is_typed=True, values=values, others=tuple(others), date_column=date_column, partition_by=partition_by
        )


RAW = TableLayout()
TYPED = TableLayout(is_typed=True)
LAYOUTS = (RAW, TYPED, RAW.partitioned_by(EVENT_DAY), TYPED.partitioned_by(EVENT_DAY))
"""The layouts of new tables."""
CONVERTED = RAW.converted()
"""The layout of a typed table that was raw before."""


@cache
def _file_schema(layout: TableLayout) -> pa.Schema:
    if not layout.is_typed:
        return FILE_SCHEMA
    fields = {name: FILE_SCHEMA.field(own).with_name(name) for own, name in _TYPED_NAMES.items() if own in _FILE_NAMES}
    raw = fields.pop(RAW_COLUMN)
    state = [pa.field(TOMBSTONE_COLUMN, pa.bool_()), pa.field(ERROR_COLUMN, pa.string()), raw]
    # Parquet files need no comments; the Delta log has them.
    values = [column.remove_metadata() for column in layout.values]
    return pa.schema([*fields.values(), *state, *values])


_FILE_NAMES = set(FILE_SCHEMA.names)


def _is_day(field: DeltaField) -> bool:
    return _PARTITION_BY in field.get("metadata", {})


def types_with_order(columns: Iterable[pa.Field]) -> dict[str, pa.DataType]:
    """The columns of a file that have an order. The log must have their bounds (see file_statistics.py)."""
    return {
        column.name: column.type
        for column in columns
        if not (pa.types.is_nested(column.type) or pa.types.is_binary(column.type))
    }
