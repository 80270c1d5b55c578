"""Filled buffers to an Arrow batch."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from kafka_io.records.kernels import target
from kafka_io.records.schema import HEADER, SCHEMA, header_keys

# Gives the filled part of a field of Target.
_Buffers = Callable[[str], pa.Buffer]


def assemble(columns: Sequence[str], filled: list[int], buffers: _Buffers) -> pa.RecordBatch:
    """The rows in `buffers` as the columns of these names, without a copy.

    Args:
        columns: of `schema.SCHEMA`.
        filled: what there is, by the counters of `kernels.target`.
        buffers: gives them by their name in Target.
    """
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    arrays = [_COLUMNS[name](schema.field(name).type, filled, buffers) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(field: str) -> Callable[[pa.DataType, list[int], _Buffers], pa.Array]:
    def make(kind: pa.DataType, filled: list[int], buffers: _Buffers) -> pa.Array:
        return pa.Array.from_buffers(kind, filled[target.ROWS], [None, buffers(field)])

    return make


def _binary(field: str, counter: int, nulls: int) -> Callable[[pa.DataType, list[int], _Buffers], pa.Array]:
    def make(kind: pa.DataType, filled: list[int], buffers: _Buffers) -> pa.Array:
        valid = buffers(f"{field}_valid") if filled[nulls] else None
        parts = [valid, buffers(f"{field}_ends"), buffers(f"{field}s")]
        return pa.Array.from_buffers(kind, filled[counter], parts, filled[nulls])

    return make


def _headers(kind: pa.DataType, filled: list[int], buffers: _Buffers) -> pa.Array:
    rows = filled[target.HEADER_ROWS]
    keys = header_keys(rows, buffers("header_key_ends"), buffers("header_keys"))
    values = _header_values(pa.binary(), filled, buffers)
    headers = pa.Array.from_buffers(HEADER, rows, [None], children=[keys, values])
    return pa.Array.from_buffers(kind, filled[target.ROWS], [None, buffers("header_ends")], children=[headers])


_header_values = _binary("header_value", target.HEADER_ROWS, target.HEADER_VALUE_NULLS)
_COLUMNS = {
    "offset": _plain("offsets"),
    "timestamp": _plain("timestamps"),
    "timestampType": _plain("timestamp_types"),
    "key": _binary("key", target.ROWS, target.KEY_NULLS),
    "value": _binary("value", target.ROWS, target.VALUE_NULLS),
    "headers": _headers,
}
