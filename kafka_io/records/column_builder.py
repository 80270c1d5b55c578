"""Columns that grow while kernels fill them, and become an Arrow batch without a copy.

Kernels write into the arrays of `ColumnArrays`. A number column is one of them. A binary column has three: the bytes of
its values, where each value ends, and a validity bitmap.
"""

from operator import gt, itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.jit.memory_pool import PooledMemory
from kafka_io.records.kernels import column_arrays
from kafka_io.records.kernels.column_arrays import (
    HEADER_KEY_BYTES,
    HEADER_ROWS,
    HEADER_VALUE_BYTES,
    HEADER_VALUE_NULLS,
    KEY_BYTES,
    KEY_NULLS,
    ROW_BYTES,
    ROWS,
    VALUE_BYTES,
    VALUE_NULLS,
)
from kafka_io.records.schema import HEADER, SCHEMA, header_keys

_BYTE_BITS = 8
_MIN_HEADER_BYTES = 2
_LIKELY_RECORD_BYTES = 64


class _ArrayKind(NamedTuple):
    """One array of `ColumnArrays`.

    Args:
        column: the column that it belongs to.
        counter: the counter that gives its number of items.
        dtype: type of an element.
        is_bitmap: it has one bit per item, and an element for each item otherwise.
        extra: elements before the first item; 1 for arrays of ends, which begin with 0.
    """

    column: str
    counter: int
    dtype: type[np.generic] = np.uint8
    is_bitmap: bool = False
    extra: int = 0

    def elements(self, items: int) -> int:
        """Number of elements that `items` items need."""
        return -(-items // _BYTE_BITS) if self.is_bitmap else items + self.extra


_KINDS = {
    "offsets": _ArrayKind("offset", ROWS, np.int64),
    "inner": _ArrayKind("inner", ROWS, np.int32),
    "timestamps": _ArrayKind("timestamp", ROWS, np.int64),
    "timestamp_types": _ArrayKind("timestampType", ROWS, np.int32),
    "key_ends": _ArrayKind("key", ROWS, np.int32, extra=1),
    "keys": _ArrayKind("key", KEY_BYTES),
    "key_valid": _ArrayKind("key", ROWS, is_bitmap=True),
    "value_ends": _ArrayKind("value", ROWS, np.int32, extra=1),
    "values": _ArrayKind("value", VALUE_BYTES),
    "value_valid": _ArrayKind("value", ROWS, is_bitmap=True),
    "header_ends": _ArrayKind("headers", ROWS, np.int32, extra=1),
    "header_key_ends": _ArrayKind("headers", HEADER_ROWS, np.int32, extra=1),
    "header_keys": _ArrayKind("headers", HEADER_KEY_BYTES),
    "header_value_ends": _ArrayKind("headers", HEADER_ROWS, np.int32, extra=1),
    "header_values": _ArrayKind("headers", HEADER_VALUE_BYTES),
    "header_value_valid": _ArrayKind("headers", HEADER_ROWS, is_bitmap=True),
}
_COLUMN_BITS = dict(zip((*SCHEMA.names, "inner"), column_arrays.COLUMNS, strict=True))
# The array of each column that has only one.
_PLAIN = {"offset": "offsets", "inner": "inner", "timestamp": "timestamps", "timestampType": "timestamp_types"}
# The counters of items and of nulls of each binary column. Header values are one too, inside the column `headers`.
_BINARY = {"key": (ROWS, KEY_NULLS), "value": (ROWS, VALUE_NULLS), "header_value": (HEADER_ROWS, HEADER_VALUE_NULLS)}

_content_bytes = itemgetter(KEY_BYTES, VALUE_BYTES, HEADER_KEY_BYTES, HEADER_VALUE_BYTES)
# Index of an array's capacity in `ColumnBuilder._capacity`, by its counter.
_CAPACITY_OF, _BYTE_CAPACITY = {ROWS: 0, HEADER_ROWS: 1}, 2


class _ColumnBuffer:
    """The growing memory of one array. `array` is its whole capacity, as kernels take it."""

    __slots__ = ("_kind", "_memory", "_name", "array")

    def __init__(self, name: str, kind: _ArrayKind) -> None:
        self._name = name
        self._kind = kind
        self._memory: PooledMemory | None = None
        self.array: npt.NDArray[Any] = np.empty(0, kind.dtype)

    def grow(self, filled: int, items: int) -> None:
        """Make room for `items` items and keep the first `filled`.

        New validity bits are set: kernels only clear the bits of nulls. An array of ends begins with 0. An array
        without items gets memory too, because Arrow needs an address.
        """
        kind, old = self._kind, self.array
        size = kind.elements(items)
        if self._memory is not None and size <= len(old):
            return
        self._memory = PooledMemory(size * old.itemsize, self._name)
        self.array = self._memory.bytes.view(kind.dtype)
        kept = min(kind.elements(filled), len(old))
        if kept:
            self.array[:kept] = old[:kept]
        if kind.is_bitmap:
            self.array[kept:] = 0xFF
        elif not kept:
            self.array[: kind.extra] = 0

    def take(self, items: int) -> pa.Buffer:
        """The first `items` items for Arrow, without a copy. Call `grow` first."""
        assert self._memory is not None
        return self._memory.buffer(self._kind.elements(items) * self.array.itemsize)


class ColumnLayout:
    """What the columns of one schema need. Computing it takes longer than decoding a small fetch, so it is shared.

    Args:
        schema: fields of `schema.SCHEMA`, or `schema.SCHEMA_07`.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.fields = [(field.name, field.type) for field in schema]
        self.bits = sum(_COLUMN_BITS[name] for name in schema.names)
        wanted = {name: kind for name, kind in _KINDS.items() if kind.column in schema.names}
        self.buffers = [(name, kind, _CAPACITY_OF.get(kind.counter, _BYTE_CAPACITY)) for name, kind in wanted.items()]
        self.unwanted = {name: np.empty(0, kind.dtype) for name, kind in _KINDS.items() if name not in wanted}


class ColumnBuilder:
    """The columns of one batch while kernels append rows to them.

    Attributes:
        wanted: the columns as bits, for kernels.
        arrays: the arrays as kernels take them; `reserve` replaces them.

    Args:
        layout: the columns.
        likely_bytes: expected size of the content; the columns begin with room for it.
        max_text_bytes: maximum size of the header keys after those that are not UTF-8 are escaped.
    """

    def __init__(self, layout: ColumnLayout, *, likely_bytes: int = 0, max_text_bytes: int = 0) -> None:
        self._layout = layout
        self.wanted = layout.bits
        self._max_text_bytes = max_text_bytes
        likely_records = likely_bytes // _LIKELY_RECORD_BYTES
        self._likely = (likely_records, likely_records, likely_bytes)
        self.reset()

    def reset(self) -> None:
        """Start with empty columns."""
        self._filled = np.zeros(column_arrays.COUNTERS, np.int64)
        self._buffers: dict[str, _ColumnBuffer] = {}
        self._capacity = [-1, -1, -1]  # rows, headers, bytes of content

    @property
    def rows(self) -> int:
        """Rows filled so far."""
        return int(self._filled[ROWS])

    @property
    def headers(self) -> int:
        """Headers filled so far."""
        return int(self._filled[HEADER_ROWS])

    @property
    def size_bytes(self) -> int:
        """Size of the rows in memory."""
        filled: list[int] = self._filled.tolist()
        content: int = sum(_content_bytes(filled))
        return content + ROW_BYTES * (filled[ROWS] + filled[HEADER_ROWS])

    def reserve(self, rows: int, content_bytes: int) -> None:
        """Make room for `rows` more rows from `content_bytes` bytes. Memory that is never written costs nothing."""
        filled: list[int] = self._filled.tolist()
        needed = (
            filled[ROWS] + rows,
            filled[HEADER_ROWS] + content_bytes // _MIN_HEADER_BYTES,
            max(_content_bytes(filled)) + content_bytes,
        )
        if any(map(gt, needed, self._capacity)):
            sizes = zip(needed, self._likely, self._capacity, strict=True)
            # The columns are full when they reach the likely size, and the last reservation goes beyond it.
            self._grow(filled, [max(need + likely, 2 * capacity) for need, likely, capacity in sizes])

    def _grow(self, filled: list[int], capacity: list[int]) -> None:
        if not self._buffers:
            self._buffers = {name: _ColumnBuffer(name, kind) for name, kind, _ in self._layout.buffers}
        for name, kind, index in self._layout.buffers:
            self._buffers[name].grow(filled[kind.counter], capacity[index])
        arrays = {name: buffer.array for name, buffer in self._buffers.items()}
        self.arrays = column_arrays.ColumnArrays(**arrays, **self._layout.unwanted, filled=self._filled)
        self._capacity = capacity

    def take_batch(self) -> pa.RecordBatch:
        """The rows so far as an Arrow batch, without a copy; the columns are empty afterwards.

        Raises:
            TooLarge: header keys that are not UTF-8 exceed `max_text_bytes` when escaped.
        """
        if not self._buffers:
            self.reserve(0, 0)  # Arrow needs memory for an empty column too
        counts = self._filled.tolist()
        try:
            columns = [self._column(name, kind, counts) for name, kind in self._layout.fields]
        finally:
            self.reset()
        return pa.RecordBatch.from_arrays(columns, schema=self._layout.schema)

    def _column(self, name: str, kind: pa.DataType, counts: list[int]) -> pa.Array:
        if name == "headers":
            return self._headers(kind, counts)
        if name in _BINARY:
            return self._binary(name, kind, counts)
        return pa.Array.from_buffers(kind, counts[ROWS], [None, self._taken(_PLAIN[name], counts)])

    def _binary(self, name: str, kind: pa.DataType, counts: list[int]) -> pa.Array:
        items, nulls = (counts[counter] for counter in _BINARY[name])
        valid = self._taken(f"{name}_valid", counts) if nulls else None
        buffers = [valid, self._taken(f"{name}_ends", counts), self._taken(f"{name}s", counts)]
        return pa.Array.from_buffers(kind, items, buffers, nulls)

    def _headers(self, kind: pa.DataType, counts: list[int]) -> pa.Array:
        count, ends = counts[HEADER_ROWS], self._taken("header_key_ends", counts)
        keys = header_keys(count, ends, self._taken("header_keys", counts), self._max_text_bytes)
        values = self._binary("header_value", pa.binary(), counts)
        headers = pa.Array.from_buffers(HEADER, count, [None], children=[keys, values])
        return pa.Array.from_buffers(kind, counts[ROWS], [None, self._taken("header_ends", counts)], children=[headers])

    def _taken(self, array: str, counts: list[int]) -> pa.Buffer:
        return self._buffers[array].take(counts[_KINDS[array].counter])
