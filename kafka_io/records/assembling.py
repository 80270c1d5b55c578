"""Filled buffers to an Arrow batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kafka_io.records.kernels import target
from kafka_io.records.schema import HEADER, SCHEMA, header_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What kernels filled.

    Args:
        counts: what there is, by the counters of `kernels.target`.
        buffers: gives the filled part of a field of Target, by its name.
        most_text_bytes: what the keys of headers may take where they are written otherwise than they came.
    """

    counts: list[int]
    buffers: Callable[[str], pa.Buffer]
    most_text_bytes: int


_Maker = Callable[[pa.DataType, Filled], pa.Array]


def assemble(columns: Sequence[str], filled: Filled) -> pa.RecordBatch:
    """The rows of `filled` as the columns of these names of `schema.SCHEMA`, without a copy.

    Raises:
        TooLarge: keys of headers that are no text, see `schema.header_keys`.
    """
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    arrays = [_COLUMNS[name](schema.field(name).type, filled) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(field: str) -> _Maker:
    def make(kind: pa.DataType, filled: Filled) -> pa.Array:
        return pa.Array.from_buffers(kind, filled.counts[target.ROWS], [None, filled.buffers(field)])

    return make


def _binary(field: str, counter: int, nulls: int) -> _Maker:
    def make(kind: pa.DataType, filled: Filled) -> pa.Array:
        counts, buffers = filled.counts, filled.buffers
        valid = buffers(f"{field}_valid") if counts[nulls] else None
        parts = [valid, buffers(f"{field}_ends"), buffers(f"{field}s")]
        return pa.Array.from_buffers(kind, counts[counter], parts, counts[nulls])

    return make


def _headers(kind: pa.DataType, filled: Filled) -> pa.Array:
    counts, buffers = filled.counts, filled.buffers
    rows = counts[target.HEADER_ROWS]
    keys = header_keys(rows, buffers("header_key_ends"), buffers("header_keys"), filled.most_text_bytes)
    values = _header_values(pa.binary(), filled)
    headers = pa.Array.from_buffers(HEADER, rows, [None], children=[keys, values])
    return pa.Array.from_buffers(kind, counts[target.ROWS], [None, buffers("header_ends")], children=[headers])


_header_values = _binary("header_value", target.HEADER_ROWS, target.HEADER_VALUE_NULLS)
_COLUMNS = {
    "offset": _plain("offsets"),
    "timestamp": _plain("timestamps"),
    "timestampType": _plain("timestamp_types"),
    "key": _binary("key", target.ROWS, target.KEY_NULLS),
    "value": _binary("value", target.ROWS, target.VALUE_NULLS),
    "headers": _headers,
}
