"""The columns of every table: names and types as in Spark's Kafka source, and columns that identify rows of 0.7."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

PARTITION_COLUMN = "date"
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_TIME = pa.timestamp("us", tz="UTC")

FILE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("broker", pa.int32()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", _TIME),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(_HEADER)),
        pa.field("inner", pa.int32()),
        pa.field("loaded_at", _TIME),
    ]
)
TABLE_SCHEMA = FILE_SCHEMA.append(pa.field(PARTITION_COLUMN, pa.date32()))
"""The columns of a file, and the column whose value is in the name of the file's folder."""

DICTIONARY = ("key", "topic", "broker", "partition", "timestampType", "loaded_at")
"""The columns of a file in which values repeat."""
_LEVELS = {"zstd": 1}

_NO_TIME = -1
_MAX_MS = (2**63 - 1) // 1000


def table_rows(decoded: pa.RecordBatch, constants: dict[str, object]) -> pa.RecordBatch:
    """The rows of `decoded` with all columns of a file; a column that it lacks has one value in all rows, or null.

    Args:
        decoded: any of the columns in FILE_SCHEMA, as kafka_io.records decodes them.
        constants: the values of other columns; a column in neither is null.
    """
    count = decoded.num_rows
    arrays = [
        _cast(field.type, decoded.column(field.name))
        if field.name in decoded.schema.names
        else pa.repeat(pa.scalar(constants.get(field.name), field.type), count)
        for field in FILE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FILE_SCHEMA)


def _cast(wanted: pa.DataType, column: pa.Array) -> pa.Array:
    if column.type == wanted:
        return column
    return _microseconds(column) if pa.types.is_timestamp(wanted) else column.cast(wanted)


def _microseconds(milliseconds: pa.Array) -> pa.Array:
    """Times in microseconds, as a table has them; null if a record has none (-1), or one that does not fit."""
    numbers = milliseconds.cast(pa.int64())
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < 0 or bounds["max"] > _MAX_MS):
        valid = pc.and_(pc.not_equal(numbers, _NO_TIME), pc.less_equal(pc.abs(numbers), _MAX_MS))
        milliseconds = pc.if_else(valid, milliseconds, pa.scalar(None, milliseconds.type))
    return milliseconds.cast(_TIME)


def parquet_options(codec: str) -> dict[str, Any]:
    """The options for pyarrow's Parquet writer."""
    return {
        "compression": codec,
        "compression_level": _LEVELS.get(codec),
        "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
        "use_dictionary": list(DICTIONARY),
    }
