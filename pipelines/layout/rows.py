"""The columns of every table: names, types and nulls as in Spark's Kafka source, and some columns more.

`broker` and `inner` identify rows of 0.7. `timestampRaw` is null in nearly all rows: it holds a record's timestamp, in
milliseconds as its producer sent it, if a Delta table cannot hold that time. `timestamp` is null then.
"""

import pyarrow as pa
import pyarrow.compute as pc

PARTITION_COLUMN = "date"
RAW_TIME_COLUMN = "timestampRaw"
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
        pa.field(RAW_TIME_COLUMN, pa.int64()),
    ]
)
TABLE_SCHEMA = FILE_SCHEMA.append(pa.field(PARTITION_COLUMN, pa.date32()))
"""The columns of a file, and the column whose value is in the name of the file's folder."""

DICTIONARY = ("key", "topic", "broker", "partition", "timestampType", "loaded_at")
"""The columns of a file in which values repeat."""

_NO_TIME = -1
# The years 1 to 9999. Delta allows more, but Python's datetime, Spark's Python API and SQL literals do not.
_MIN_MS, _MAX_MS = -62_135_596_800_000, 253_402_300_799_999


def table_rows(decoded: pa.RecordBatch, constants: dict[str, object]) -> pa.RecordBatch:
    """The rows of `decoded` with all columns of a file; a column that it lacks has one value in all rows, or null.

    Args:
        decoded: any of the columns in FILE_SCHEMA, as kafka_io.records decodes them.
        constants: the values of other columns; a column in neither is null.
    """
    columns: dict[str, pa.Array] = dict(zip(decoded.schema.names, decoded.columns, strict=True))
    if "timestamp" in columns:
        columns["timestamp"], columns[RAW_TIME_COLUMN] = _table_times(columns["timestamp"])
    arrays = [
        cast(field.type, columns[field.name])
        if field.name in columns
        else pa.repeat(pa.scalar(constants.get(field.name), field.type), decoded.num_rows)
        for field in FILE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FILE_SCHEMA)


def cast(wanted: pa.DataType, column: pa.Array) -> pa.Array:
    """A column of FILE_SCHEMA with the wanted type; headers are null instead of each empty list."""
    column = column if column.type == wanted else column.cast(wanted)
    return without_empty_lists(column) if pa.types.is_list(wanted) else column


def without_empty_lists(lists: pa.ListArray) -> pa.ListArray:
    """The lists with null instead of each empty list: Spark's source gives null for a record without headers.

    Tables of Penstock 0.1 hold empty lists.
    """
    has_items = pc.greater(lists.value_lengths(), 0)  # a null list stays null
    if has_items.true_count == 0:
        return pa.nulls(len(lists), lists.type)
    if has_items.false_count == 0:
        return lists
    # Only the validity bitmap changes: the items are not copied. A slice has its offset in both buffers.
    lists = pa.concat_arrays([lists]) if lists.offset else lists
    has_items = pa.concat_arrays([pc.fill_null(has_items, fill_value=False)])
    buffers = [has_items.buffers()[1], lists.buffers()[1]]
    return pa.Array.from_buffers(lists.type, len(lists), buffers, has_items.false_count, children=[lists.values])


def _table_times(times: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The columns `timestamp` and `timestampRaw` for times in milliseconds; -1 means that there is no time."""
    numbers = times.cast(pa.int64())
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] <= _MAX_MS):
        return times.cast(_TIME), pa.nulls(len(times), pa.int64())
    fits = pc.and_(pc.greater_equal(numbers, _MIN_MS), pc.less_equal(numbers, _MAX_MS))
    is_time = pc.and_(fits, pc.not_equal(numbers, _NO_TIME))
    representable = pc.if_else(is_time, times, pa.scalar(None, times.type))
    return representable.cast(_TIME), pc.if_else(fits, pa.scalar(None, pa.int64()), numbers)


def decoded_rows(rows: pa.Table) -> pa.RecordBatch:
    """The offsets, times, keys and values of rows of a table, as kafka_io.records decoded them."""
    if rows.column("broker").null_count < rows.num_rows:
        columns = {name: rows.column(name) for name in ("offset", "inner", "value")}
    else:
        stored = rows.column("timestamp").cast(pa.int64())
        milliseconds = pc.fill_null(pc.divide(stored, 1000), _NO_TIME)
        times = pc.coalesce(rows.column(RAW_TIME_COLUMN), milliseconds)
        columns = {"offset": rows.column("offset"), "timestamp": times, "key": rows.column("key")}
        columns["value"] = rows.column("value")
    return pa.table(columns).combine_chunks().to_batches()[0]
