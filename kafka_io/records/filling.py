"""Columns while kernels fill them: they grow, and become an Arrow batch without a copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.records.assembling import Filled, assemble
from kafka_io.records.kernels import target
from kafka_io.records.memory import Growing
from kafka_io.records.schema import wanted_bits

_BYTE_BITS = 8
_LEAST_HEADER_BYTES = 2
_LIKELY_RECORD_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A field of Target: the column it serves, what it is made of, and what it has as many of."""

    column: int
    counter: int
    dtype: type[np.generic] = np.uint8
    bits: bool = False
    more: int = 0  # so many items above what is counted

    def size(self, items: int) -> int:
        """Of the array for so many."""
        return -(-items // _BYTE_BITS) if self.bits else items + self.more


def _ends(column: int, counter: int) -> _Kind:
    return _Kind(column=column, counter=counter, dtype=np.int32, more=1)


def _valid(column: int, counter: int) -> _Kind:
    return _Kind(column=column, counter=counter, bits=True)


_KINDS = {
    "offsets": _Kind(column=target.OFFSET, counter=target.ROWS, dtype=np.int64),
    "timestamps": _Kind(column=target.TIMESTAMP, counter=target.ROWS, dtype=np.int64),
    "timestamp_types": _Kind(column=target.TIMESTAMP_TYPE, counter=target.ROWS, dtype=np.int32),
    "key_ends": _ends(target.KEY, target.ROWS),
    "keys": _Kind(column=target.KEY, counter=target.KEY_BYTES),
    "key_valid": _valid(target.KEY, target.ROWS),
    "value_ends": _ends(target.VALUE, target.ROWS),
    "values": _Kind(column=target.VALUE, counter=target.VALUE_BYTES),
    "value_valid": _valid(target.VALUE, target.ROWS),
    "header_ends": _ends(target.HEADERS, target.ROWS),
    "header_key_ends": _ends(target.HEADERS, target.HEADER_ROWS),
    "header_keys": _Kind(column=target.HEADERS, counter=target.HEADER_KEY_BYTES),
    "header_value_ends": _ends(target.HEADERS, target.HEADER_ROWS),
    "header_values": _Kind(column=target.HEADERS, counter=target.HEADER_VALUE_BYTES),
    "header_value_valid": _valid(target.HEADERS, target.HEADER_ROWS),
}

_CONTENT = (target.KEY_BYTES, target.VALUE_BYTES, target.HEADER_KEY_BYTES, target.HEADER_VALUE_BYTES)
# Where in `Filling._room`, by counter.
_ROOM, _BYTES = {target.ROWS: 0, target.HEADER_ROWS: 1}, 2


class _Lane:
    """The array of one field."""

    __slots__ = ("_growing", "_kind")

    def __init__(self, kind: _Kind) -> None:
        self._kind = kind
        self._growing = Growing(kind.dtype)

    @property
    def array(self) -> npt.NDArray[Any]:
        """As kernels take it."""
        return self._growing.array

    def grow(self, filled: int, items: int) -> None:
        """Make room for `items`, of which `filled` are there."""
        kept = min(self._kind.size(filled), len(self.array))
        if self._growing.grow(kept, self._kind.size(items)):
            if self._kind.bits:
                self.array[kept:] = 0xFF
            elif not kept:
                self.array[: self._kind.more] = 0

    def buffer(self, items: int) -> pa.Buffer:
        """The first `items`, for Arrow."""
        return self._growing.buffer(self._kind.size(items))


class Filling:
    """The columns of these names, in that order; see `schema.SCHEMA`.

    Args:
        columns: their names.
        likely_bytes: what they are likely to hold: they begin with room for as much.
        most_text_bytes: see `assembling.Filled`.

    Raises:
        ValueError: a name that is no column, or no name.
    """

    def __init__(self, columns: Sequence[str], *, likely_bytes: int, most_text_bytes: int) -> None:
        self.wanted = wanted_bits(columns)
        self._columns = columns
        self._most_text_bytes = most_text_bytes
        likely_records = likely_bytes // _LIKELY_RECORD_BYTES
        self._likely = (likely_records, likely_records, likely_bytes)
        self.forget()

    def forget(self) -> None:
        """Begin anew, with no rows."""
        self._filled = np.zeros(target.COUNTERS, np.int64)
        self._lanes = {name: _Lane(kind) for name, kind in _KINDS.items()}
        self._room = [-1, -1, -1]  # rows, headers, and bytes of each kind that fit in

    @property
    def rows(self) -> int:
        """Rows filled so far."""
        return int(self._filled[target.ROWS])

    @property
    def size_bytes(self) -> int:
        """What the rows take."""
        filled: list[int] = self._filled.tolist()
        content = filled[target.KEY_BYTES] + filled[target.VALUE_BYTES]
        headers = filled[target.HEADER_KEY_BYTES] + filled[target.HEADER_VALUE_BYTES]
        return content + headers + target.ROW_BYTES * (filled[target.ROWS] + filled[target.HEADER_ROWS])

    @property
    def headers(self) -> int:
        """Headers filled so far."""
        return int(self._filled[target.HEADER_ROWS])

    def reserve(self, rows: int, content_bytes: int) -> None:
        """Room for so many more rows, made from so many bytes; pages that stay untouched cost nothing."""
        filled: list[int] = self._filled.tolist()
        needed = (
            filled[target.ROWS] + rows,
            filled[target.HEADER_ROWS] + content_bytes // _LEAST_HEADER_BYTES,
            max(filled[counter] for counter in _CONTENT) + content_bytes,
        )
        room = self._room
        if needed[0] > room[0] or needed[1] > room[1] or needed[2] > room[2]:
            sizes = zip(needed, self._likely, room, strict=True)
            self._grow(filled, [max(need, likely, 2 * had) for need, likely, had in sizes])

    def _grow(self, filled: list[int], room: list[int]) -> None:
        for name, kind in _KINDS.items():
            if kind.column & self.wanted:
                self._lanes[name].grow(filled[kind.counter], room[_ROOM.get(kind.counter, _BYTES)])
        arrays = {name: lane.array for name, lane in self._lanes.items()}
        self.target = target.Target(**arrays, filled=self._filled)
        self._room = room

    def take_batch(self) -> pa.RecordBatch:
        """The filled rows; their columns are given away, not copied, and new ones begin.

        Raises:
            TooLarge: keys of headers that are no text pass `most_text_bytes`.
        """
        self.reserve(0, 0)  # no column is without memory
        lanes, counts = self._lanes, self._filled.tolist()
        self.forget()
        filled = Filled(
            counts=counts,
            buffers=lambda name: lanes[name].buffer(counts[_KINDS[name].counter]),
            most_text_bytes=self._most_text_bytes,
        )
        return assemble(self._columns, filled)
