"""Columns that grow while kernels fill them, and become an Arrow batch without a copy."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.records.arrow_batch import FilledColumns, array_makers, assemble
from kafka_io.records.kernels import column_arrays
from kafka_io.records.memory_pool import GrowingArray
from kafka_io.records.schema import column_bits

_BYTE_BITS = 8
_LEAST_HEADER_BYTES = 2
_LIKELY_RECORD_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One array of `ColumnArrays`.

    Args:
        column: bit of the column that it belongs to.
        counter: the counter that gives its number of items.
        dtype: type of an item.
        bits: validity bitmap, one bit per item.
        more: items beyond the counter; 1 for arrays of ends, which begin with 0.
    """

    column: int
    counter: int
    dtype: type[np.generic] = np.uint8
    bits: bool = False
    more: int = 0  # so many items above what is counted

    def size(self, items: int) -> int:
        """Number of array elements that `items` items need."""
        return -(-items // _BYTE_BITS) if self.bits else items + self.more


def _ends(column: int, counter: int) -> _Kind:
    return _Kind(column=column, counter=counter, dtype=np.int32, more=1)


def _valid(column: int, counter: int) -> _Kind:
    return _Kind(column=column, counter=counter, bits=True)


_KINDS = {
    "offsets": _Kind(column=column_arrays.OFFSET, counter=column_arrays.ROWS, dtype=np.int64),
    "inner": _Kind(column=column_arrays.INNER, counter=column_arrays.ROWS, dtype=np.int32),
    "timestamps": _Kind(column=column_arrays.TIMESTAMP, counter=column_arrays.ROWS, dtype=np.int64),
    "timestamp_types": _Kind(column=column_arrays.TIMESTAMP_TYPE, counter=column_arrays.ROWS, dtype=np.int32),
    "key_ends": _ends(column_arrays.KEY, column_arrays.ROWS),
    "keys": _Kind(column=column_arrays.KEY, counter=column_arrays.KEY_BYTES),
    "key_valid": _valid(column_arrays.KEY, column_arrays.ROWS),
    "value_ends": _ends(column_arrays.VALUE, column_arrays.ROWS),
    "values": _Kind(column=column_arrays.VALUE, counter=column_arrays.VALUE_BYTES),
    "value_valid": _valid(column_arrays.VALUE, column_arrays.ROWS),
    "header_ends": _ends(column_arrays.HEADERS, column_arrays.ROWS),
    "header_key_ends": _ends(column_arrays.HEADERS, column_arrays.HEADER_ROWS),
    "header_keys": _Kind(column=column_arrays.HEADERS, counter=column_arrays.HEADER_KEY_BYTES),
    "header_value_ends": _ends(column_arrays.HEADERS, column_arrays.HEADER_ROWS),
    "header_values": _Kind(column=column_arrays.HEADERS, counter=column_arrays.HEADER_VALUE_BYTES),
    "header_value_valid": _valid(column_arrays.HEADERS, column_arrays.HEADER_ROWS),
}

# Bytes of keys, values, header keys and header values, among the counters.
_content_bytes = itemgetter(
    column_arrays.KEY_BYTES, column_arrays.VALUE_BYTES, column_arrays.HEADER_KEY_BYTES, column_arrays.HEADER_VALUE_BYTES
)
# Where in `ColumnBuilder._room`, by counter.
_ROOM, _BYTES = {column_arrays.ROWS: 0, column_arrays.HEADER_ROWS: 1}, 2


class _ColumnBuffer:
    """The growing memory of one array."""

    __slots__ = ("_array", "_kind")

    def __init__(self, kind: _Kind) -> None:
        self._kind = kind
        self._array = GrowingArray(kind.dtype)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The array as kernels take it."""
        return self._array.array

    def grow(self, filled: int, items: int) -> None:
        """Make room for `items` items and keep the first `filled`.

        New validity bits are set: kernels only clear the bits of nulls. An array of ends begins with 0.
        """
        kept = min(self._kind.size(filled), len(self.array))
        if self._array.grow(kept, self._kind.size(items)):
            if self._kind.bits:
                self.array[kept:] = 0xFF
            elif not kept:
                self.array[: self._kind.more] = 0

    def buffer(self, items: int) -> pa.Buffer:
        """The first `items` items, for Arrow."""
        return self._array.buffer(self._kind.size(items))


class ColumnLayout:
    """What the columns of one schema need, worked out once: to do so for each fetch takes longer than a small fetch.

    Args:
        schema: fields of `schema.SCHEMA`, or `schema.SCHEMA_07`.
    """

    __slots__ = ("bits", "buffers", "makers", "schema", "unwanted")

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.bits = column_bits(schema)
        self.makers = array_makers(schema)
        self.buffers = [
            (name, kind, _ROOM.get(kind.counter, _BYTES)) for name, kind in _KINDS.items() if kind.column & self.bits
        ]
        self.unwanted = {name: np.empty(0, kind.dtype) for name, kind in _KINDS.items() if not kind.column & self.bits}


class ColumnBuilder:
    """The columns of one batch while kernels append rows to them.

    Args:
        layout: the columns.
        likely_bytes: expected size of the content; the columns begin with room for it.
        max_text_bytes: see `arrow_batch.FilledColumns`.
    """

    def __init__(self, layout: ColumnLayout, *, likely_bytes: int = 0, max_text_bytes: int = 0) -> None:
        self.wanted = layout.bits
        self._layout = layout
        self._max_text_bytes = max_text_bytes
        likely_records = likely_bytes // _LIKELY_RECORD_BYTES
        self._likely = (likely_records, likely_records, likely_bytes)
        self.reset()

    def reset(self) -> None:
        """Start with empty columns."""
        self._filled = np.zeros(column_arrays.COUNTERS, np.int64)
        self._buffers: dict[str, _ColumnBuffer] = {}
        self._room = [-1, -1, -1]  # capacity: rows, headers, bytes of content

    @property
    def rows(self) -> int:
        """Rows filled so far."""
        return int(self._filled[column_arrays.ROWS])

    @property
    def size_bytes(self) -> int:
        """Size of the rows in memory."""
        filled: list[int] = self._filled.tolist()
        content = filled[column_arrays.KEY_BYTES] + filled[column_arrays.VALUE_BYTES]
        headers = filled[column_arrays.HEADER_KEY_BYTES] + filled[column_arrays.HEADER_VALUE_BYTES]
        return (
            content
            + headers
            + column_arrays.ROW_BYTES * (filled[column_arrays.ROWS] + filled[column_arrays.HEADER_ROWS])
        )

    @property
    def headers(self) -> int:
        """Headers filled so far."""
        return int(self._filled[column_arrays.HEADER_ROWS])

    def reserve(self, rows: int, content_bytes: int) -> None:
        """Make room for `rows` more rows from `content_bytes` bytes. Memory that is never written costs nothing."""
        filled: list[int] = self._filled.tolist()
        needed = (
            filled[column_arrays.ROWS] + rows,
            filled[column_arrays.HEADER_ROWS] + content_bytes // _LEAST_HEADER_BYTES,
            max(_content_bytes(filled)) + content_bytes,
        )
        room = self._room
        if needed[0] > room[0] or needed[1] > room[1] or needed[2] > room[2]:
            sizes = zip(needed, self._likely, room, strict=True)
            self._grow(filled, [max(need, likely, 2 * had) for need, likely, had in sizes])

    def _grow(self, filled: list[int], room: list[int]) -> None:
        if not self._buffers:
            self._buffers = {name: _ColumnBuffer(kind) for name, kind, _ in self._layout.buffers}
        for name, kind, index in self._layout.buffers:
            self._buffers[name].grow(filled[kind.counter], room[index])
        arrays = {name: buffer.array for name, buffer in self._buffers.items()}
        self.arrays = column_arrays.ColumnArrays(**arrays, **self._layout.unwanted, filled=self._filled)
        self._room = room

    def take_batch(self) -> pa.RecordBatch:
        """The rows so far as an Arrow batch, without a copy; the columns are empty afterwards.

        Raises:
            TooLarge: header keys that are not UTF-8 exceed `max_text_bytes` when escaped.
        """
        if not self._buffers:
            self.reserve(0, 0)  # Arrow needs memory for an empty column too
        buffers, counts = self._buffers, self._filled.tolist()
        self.reset()
        filled = FilledColumns(
            counts=counts,
            buffers=lambda name: buffers[name].buffer(counts[_KINDS[name].counter]),
            max_text_bytes=self._max_text_bytes,
        )
        return assemble(self._layout.schema, self._layout.makers, filled)
