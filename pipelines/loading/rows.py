"""The columns of every table: names and types as in Spark's own Kafka source, plus what tells 0.7 rows apart."""

import pyarrow as pa

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


def table_rows(decoded: pa.RecordBatch, constants: dict[str, object]) -> pa.RecordBatch:
    """`decoded` with all columns of a file: what it lacks is the same in every row, or null.

    Args:
        decoded: columns of kafka_io.records, any of those in FILE_SCHEMA.
        constants: the value of the others; a name in neither is null.
    """
    count = decoded.num_rows
    arrays = [
        decoded.column(field.name)
        if field.name in decoded.schema.names
        else pa.repeat(pa.scalar(constants.get(field.name), field.type), count)
        for field in FILE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FILE_SCHEMA)
