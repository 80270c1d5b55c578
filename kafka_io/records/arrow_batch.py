"""Column arrays that kernels filled, as an Arrow batch without a copy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from kafka_io.records.kernels import column_arrays
from kafka_io.records.schema import HEADER, header_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledColumns:
    """The arrays that kernels filled.

    Args:
        counts: the counters of `kernels.column_arrays`.
        buffers: returns the filled part of an array of `ColumnArrays`, by its name.
        max_text_bytes: maximum size of the header keys after those that are not UTF-8 are escaped.
    """

    counts: list[int]
    buffers: Callable[[str], pa.Buffer]
    max_text_bytes: int


ArrayMaker = Callable[[FilledColumns], pa.Array]
_TypedMaker = Callable[[pa.DataType, FilledColumns], pa.Array]


def array_makers(schema: pa.Schema) -> list[ArrayMaker]:
    """For each field of `schema`, the function that makes its array."""
    return [partial(_COLUMNS[field.name], field.type) for field in schema]


def assemble(schema: pa.Schema, makers: Sequence[ArrayMaker], filled: FilledColumns) -> pa.RecordBatch:
    """The rows of `filled` as a batch of `schema`, without a copy; `makers` are those of `array_makers(schema)`.

    Raises:
        TooLarge: header keys are too large, see `schema.header_keys`.
    """
    return pa.RecordBatch.from_arrays([make(filled) for make in makers], schema=schema)


def _plain(field: str) -> _TypedMaker:
    def make(kind: pa.DataType, filled: FilledColumns) -> pa.Array:
        return pa.Array.from_buffers(kind, filled.counts[column_arrays.ROWS], [None, filled.buffers(field)])

    return make


def _binary(field: str, counter: int, nulls: int) -> _TypedMaker:
    def make(kind: pa.DataType, filled: FilledColumns) -> pa.Array:
        counts, buffers = filled.counts, filled.buffers
        valid = buffers(f"{field}_valid") if counts[nulls] else None
        parts = [valid, buffers(f"{field}_ends"), buffers(f"{field}s")]
        return pa.Array.from_buffers(kind, counts[counter], parts, counts[nulls])

    return make


def _headers(kind: pa.DataType, filled: FilledColumns) -> pa.Array:
    counts, buffers = filled.counts, filled.buffers
    rows = counts[column_arrays.HEADER_ROWS]
    keys = header_keys(rows, buffers("header_key_ends"), buffers("header_keys"), filled.max_text_bytes)
    values = _header_values(pa.binary(), filled)
    headers = pa.Array.from_buffers(HEADER, rows, [None], children=[keys, values])
    return pa.Array.from_buffers(kind, counts[column_arrays.ROWS], [None, buffers("header_ends")], children=[headers])


_header_values = _binary("header_value", column_arrays.HEADER_ROWS, column_arrays.HEADER_VALUE_NULLS)
_COLUMNS = {
    "offset": _plain("offsets"),
    "inner": _plain("inner"),
    "timestamp": _plain("timestamps"),
    "timestampType": _plain("timestamp_types"),
    "key": _binary("key", column_arrays.ROWS, column_arrays.KEY_NULLS),
    "value": _binary("value", column_arrays.ROWS, column_arrays.VALUE_NULLS),
    "headers": _headers,
}
