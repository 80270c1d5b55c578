"""The columns of every table: names and types as in Spark's own Kafka source, plus what tells 0.7 rows apart."""

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
"""A file's columns, and the one that its folder tells."""


DICTIONARY = ("key", "topic", "broker", "partition", "timestampType", "loaded_at")
"""Columns of a file in which values repeat."""
_LEVELS = {"zstd": 1}

_NO_TIME = -1
_LONGEST_MS = (2**63 - 1) // 1000


def table_rows(decoded: pa.RecordBatch, constants: dict[str, object]) -> pa.RecordBatch:
    """`decoded` with all columns of a file: what it lacks is the same in every row, or null.

    Args:
        decoded: columns of kafka_io.records, any of those in FILE_SCHEMA.
        constants: the value of the others; a name in neither is null.
    """
    count = decoded.num_rows
    arrays = [
        _as(field.type, decoded.column(field.name))
        if field.name in decoded.schema.names
        else pa.repeat(pa.scalar(constants.get(field.name), field.type), count)
        for field in FILE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FILE_SCHEMA)


def _as(wanted: pa.DataType, column: pa.Array) -> pa.Array:
    if column.type == wanted:
        return column
    return _microseconds(column) if pa.types.is_timestamp(wanted) else column.cast(wanted)


def _microseconds(milliseconds: pa.Array) -> pa.Array:
    """Times as a table has them: null where a record has none (-1), or one that no clock can show in microseconds."""
    numbers = milliseconds.cast(pa.int64())
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < 0 or bounds["max"] > _LONGEST_MS):
        told = pc.and_(pc.not_equal(numbers, _NO_TIME), pc.less_equal(pc.abs(numbers), _LONGEST_MS))
        milliseconds = pc.if_else(told, milliseconds, pa.scalar(None, milliseconds.type))
    return milliseconds.cast(_TIME)


def parquet_options(codec: str) -> dict[str, Any]:
    """How a file's columns are written, in pyarrow's words."""
    return {
        "compression": codec,
        "compression_level": _LEVELS.get(codec),
        "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
        "use_dictionary": list(DICTIONARY),
    }
