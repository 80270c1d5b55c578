"""Arrow columns in Postgres: the SQL type of each, and batches in the CSV format of COPY.

Arrow writes CSV itself, so no value of a number, a text or a time becomes an object of Python. It quotes all texts and
leaves nulls empty, so an empty text is no null. Values are texts, so Postgres converts them to the type of a column
that is wider than the rows.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.types as pat
from pyarrow import csv

from resources.errors import OutputRefused

_CSV = csv.WriteOptions(include_header=False)
_TEXTS = (pat.is_string, pat.is_large_string, pat.is_string_view)
_BYTES = (pat.is_binary, pat.is_large_binary, pat.is_binary_view, pat.is_fixed_size_binary)
_SQL_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pat.is_boolean, "boolean"),
    (pat.is_int8, "smallint"),
    (pat.is_int16, "smallint"),
    (pat.is_int32, "integer"),
    (pat.is_int64, "bigint"),
    (pat.is_uint8, "smallint"),
    (pat.is_uint16, "integer"),
    (pat.is_uint32, "bigint"),
    (pat.is_uint64, "numeric(20)"),
    (pat.is_float16, "real"),
    (pat.is_float32, "real"),
    (pat.is_float64, "double precision"),
    (pat.is_date, "date"),
    (pat.is_time, "time"),
    (pat.is_null, "text"),
    *((is_text, "text") for is_text in _TEXTS),
    *((is_bytes, "bytea") for is_bytes in _BYTES),
    (pat.is_nested, "jsonb"),
)
"""The SQL type of each type of Arrow that has no parameters."""


def sql_types(schema: pa.Schema) -> dict[str, str]:
    """The SQL type of each column.

    Raises:
        OutputRefused: Postgres has no type for a column.
    """
    return {field.name: _sql_type(field.name, field.type) for field in schema}


def _sql_type(name: str, kind: pa.DataType) -> str:
    stored = _stored_type(kind)
    if pat.is_decimal(stored):
        return f"numeric({stored.precision}, {stored.scale})"
    if pat.is_timestamp(stored):
        return "timestamp with time zone" if stored.tz else "timestamp"
    sql_type = next((sql_type for is_of, sql_type in _SQL_TYPES if is_of(stored)), None)
    if sql_type is None:
        raise OutputRefused(f"the column {name} has the type {kind}, which Postgres does not have; cast it to another")
    return sql_type


def csv_rows(batch: pa.RecordBatch) -> memoryview:
    """The rows of a batch as CSV.

    Raises:
        OutputRefused: Postgres has no such values, for example times in nanoseconds.
    """
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns.append(_csv_column(column))
        except (pa.ArrowException, TypeError, ValueError, KeyError, OverflowError) as error:
            raise OutputRefused(f"Postgres cannot store values of the column {name}: {error}") from error
    output = pa.BufferOutputStream()
    csv.write_csv(pa.RecordBatch.from_arrays(columns, list(batch.schema.names)), output, _CSV)
    return memoryview(output.getvalue())


def _csv_column(column: pa.Array) -> pa.Array:
    """The column as one whose CSV Postgres reads as the same values."""
    stored = column.cast(_stored_type(column.type))
    if pat.is_nested(stored.type):
        return _texts(stored.to_pylist(maps_as_pydicts="strict"), _json)
    if any(is_bytes(stored.type) for is_bytes in _BYTES):
        return _texts(stored.to_pylist(), lambda value: f"\\x{value.hex()}")
    return stored.cast(pa.string()) if pat.is_string_view(stored.type) else stored


def _texts(values: list[Any], text: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in values], pa.large_string())


def _json(value: Any) -> str:
    """A nested value as JSON: bytes in base64, decimals and times as texts, NaN and infinity as null."""
    return msgspec.json.encode(value).decode()


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """The type that Arrow converts a column to first: without dictionaries, in UTC, and in microseconds."""
    if isinstance(kind, pa.BaseExtensionType):
        return _stored_type(kind.storage_type)
    if pat.is_dictionary(kind):
        return _stored_type(kind.value_type)
    if pat.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pat.is_time(kind):
        return pa.time64("us")
    return kind
