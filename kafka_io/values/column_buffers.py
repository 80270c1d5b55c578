"""Column buffers as Arrow columns: their memory, which is kept between calls, and the batch that is made from them.

The buffers of a schema are numbered in preorder, see `kernels/column_buffers`. Three more buffers follow them: numbers
that a kernel leaves to Arrow, each with the node and the item that it belongs to.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import TooLarge
from kafka_io.values.kernels.column_buffers import (
    BUFFER_KIND,
    BYTES,
    CELL,
    CONTENT,
    END,
    FAILED,
    FAILURE_COLUMNS,
    FULL,
    FULL_NODE,
    ITEMS,
    LIST,
    MAP,
    NODE_COLUMNS,
    NOTES,
    NUMBER,
    PAIR,
    RAW_PREFIX,
    RAW_VALUE,
    ROOT,
    STRUCT,
    TEXT,
    VALID,
    BufferArrays,
    RowArrays,
)

_FIRST_ITEMS, _FIRST_BYTES = 256, 4096
_KEPT_BYTES = 128 << 20
_FORECAST = 1.125  # a little more room than the rows so far suggest
_MAX_INT32 = (1 << 31) - 1
_LATE_BUFFERS = (TEXT, NUMBER, NUMBER)
_EXACT_TYPES = {
    pa.int64(): NUMBER,
    pa.float64(): NUMBER,
    pa.bool_(): NUMBER,
    pa.date32(): NUMBER,
    pa.timestamp("us"): NUMBER,
    pa.timestamp("us", tz="UTC"): NUMBER,
    pa.string(): TEXT,
    pa.binary(): TEXT,
}


class Node(NamedTuple):
    """The column buffer of one node of a schema.

    Args:
        path: its name in messages: `order.lines[].price`.
        field: its field. That of node 0 is a struct of all columns.
        buffer_kind: the kind of the buffer, see `kernels/column_buffers`.
        members: the nodes directly inside it.
        around: the node that it is directly inside; that of node 0 is itself.
    """

    path: str
    field: pa.Field
    buffer_kind: int
    members: Sequence[int]
    around: int


def nodes_of(columns: pa.Schema) -> list[Node]:
    """The buffers of a schema in preorder.

    Raises:
        TypeError: a column has a type that no decoder fills.
    """
    nodes: list[Node] = []
    _add(nodes, "", pa.field("", pa.struct(list(columns))), ROOT)
    return nodes


def _add(nodes: list[Node], path: str, field: pa.Field, around: int) -> None:
    buffer_kind = _buffer_kind_of(path, field.type)
    place, members = len(nodes), list[int]()
    nodes.append(Node(path, field, buffer_kind, members, around))
    for suffix, inner in _inside(field.type):
        members.append(len(nodes))
        _add(nodes, f"{path}{suffix}" if path else suffix.lstrip("."), inner, place)


def _buffer_kind_of(path: str, kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return STRUCT
    if pa.types.is_list(kind):
        return LIST
    if pa.types.is_map(kind):
        return MAP
    if pa.types.is_decimal128(kind):
        return PAIR
    buffer_kind = _EXACT_TYPES.get(kind)
    if buffer_kind is None:
        raise TypeError(f"column {path} has type {kind}, which no decoder of values fills")
    return buffer_kind


def _inside(kind: pa.DataType) -> Iterator[tuple[str, pa.Field]]:
    """The fields directly inside a type, with what they add to the path."""
    if pa.types.is_struct(kind):
        yield from ((f".{inner.name}", inner) for inner in kind)
    elif pa.types.is_list(kind):
        yield "[]", kind.value_field
    elif pa.types.is_map(kind):
        yield from ((".key", kind.key_field), (".value", kind.item_field))


class ColumnBuffers:
    """The buffers of one schema while kernels fill them.

    Attributes:
        nodes: the schema's buffers.
        table: what kernels know of the nodes, see `kernels/column_buffers`.
        cells, valid, content: the memory. `grow` replaces it.
        counts: items of each buffer.
    """

    def __init__(self, columns: pa.Schema) -> None:
        self.columns = columns
        self.nodes = nodes_of(columns)
        kinds = [node.buffer_kind for node in self.nodes]
        self._late = len(kinds)
        self.table = np.zeros((self._late + len(_LATE_BUFFERS), NODE_COLUMNS), np.int64)
        self.table[:, BUFFER_KIND] = [*kinds, *_LATE_BUFFERS]
        self.table[self._late :, END] = range(self._late + 1, len(self.table) + 1)
        for index in reversed(range(self._late)):
            members = self.nodes[index].members
            self.table[index, END] = self.table[members[-1], END] if members else index + 1
        self.counts = np.zeros(len(self.table), np.int64)
        self._saved = np.zeros_like(self.counts)
        with_rows = set(self._with_items_of(ROOT))
        self._inner = np.array([node for node in range(len(self.table)) if node not in with_rows], np.int64)
        self._rows = 0
        self._forget()

    def _forget(self) -> None:
        self.table[:, ITEMS] = self.table[:, BYTES] = 0
        self._allocate()

    def fill(self, rows: int, decode: Callable[[BufferArrays, RowArrays], int]) -> npt.NDArray[np.int64]:
        """Fill the buffers with `rows` rows; returns the table of failures of `kernels/column_buffers`.

        `decode` calls a kernel and returns its status. It is called again after each time that a buffer was full.
        """
        self.start(rows)
        failures, notes = np.empty((rows, FAILURE_COLUMNS), np.int64), np.zeros(NOTES, np.int64)
        row_arrays = RowArrays(self._inner, self._saved, failures)
        while True:
            buffers = BufferArrays(self.table, self.cells, self.valid, self.content, self.counts, notes)
            if decode(buffers, row_arrays) != FULL:
                return failures[: notes[FAILED]]
            node, size_bytes, items = notes[FULL_NODE:].tolist()
            self.grow(node, size_bytes, items - int(self.counts[node]))

    def start(self, rows: int) -> None:
        """Empty all buffers and make room for `rows` rows."""
        self._rows = rows
        self.counts[:] = 0
        items = self.table[:, ITEMS]
        if items[ROOT] < rows or not items[ROOT]:
            row_buffers = list(self._with_items_of(ROOT))
            texts = self.table[:, BUFFER_KIND] == TEXT
            items[:] = np.maximum(items, _FIRST_ITEMS)
            items[row_buffers] = np.maximum(items[row_buffers], rows)
            self.table[texts, BYTES] = np.maximum(self.table[texts, BYTES], _FIRST_BYTES)
            self._allocate()
        self.cells[self.table[self.table[:, BUFFER_KIND] >= TEXT, CELL]] = 0

    def grow(self, node: int, needed_bytes: int, needed_items: int = 1) -> None:
        """Make room for more bytes and items in a buffer that a kernel found full.

        All buffers grow to what the whole batch will need if its other rows are like those so far. Otherwise each
        buffer would be found full many times by itself, and all of them would be copied each time.
        """
        used, items = self._used(), self.counts[node] + needed_items
        enough_bytes = self.table[node, BYTES] + needed_bytes
        self._make_room_for_batch(used)
        if node >= self._late or items > self.table[node, ITEMS]:
            grown = list(range(self._late, len(self.table)) if node >= self._late else self._with_items_of(node))
            self.table[grown, ITEMS] = np.maximum(2 * self.table[grown, ITEMS], items)
        if self.table[node, BUFFER_KIND] == TEXT and self.table[node, BYTES] < enough_bytes:
            self.table[node, BYTES] = self.table[node, BYTES] + enough_bytes
        before = (self.table.copy(), self.cells, self.valid, self.content)
        self._allocate()
        self._restore(used, *before)

    def _make_room_for_batch(self, used: npt.NDArray[np.int64]) -> None:
        """Plan room for all rows, unless that is very much memory: the first rows may be the only large ones."""
        done = int(self.counts[ROOT])
        scale = _FORECAST * self._rows / done if done else 0.0
        forecast_bytes, forecast_items = used * scale, self.counts * scale
        forecast_items[list(self._with_items_of(ROOT))] = 0  # `start` has made room for all rows
        if forecast_bytes.sum() + 8 * forecast_items.sum() <= _KEPT_BYTES:
            for column, forecast in ((BYTES, forecast_bytes), (ITEMS, forecast_items)):
                self.table[:, column] = np.maximum(self.table[:, column], forecast.astype(np.int64))

    def _with_items_of(self, node: int) -> Iterator[int]:
        """The node and the nodes inside it that have as many items; the items of a list or map inside are others."""
        yield node
        if self.table[node, BUFFER_KIND] == STRUCT:
            for member in self.nodes[node].members:
                yield from self._with_items_of(member)

    def _cells_of(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The number of cells that each buffer needs for its number of items."""
        kinds = self.table[:, BUFFER_KIND]
        return np.where(kinds == STRUCT, 0, np.where(kinds == PAIR, 2 * counts, counts + (kinds >= TEXT)))

    def _allocate(self) -> None:
        """New memory for the room that the table states."""
        cells, items = self._cells_of(self.table[:, ITEMS]), self.table[:, ITEMS]
        for column, sizes in ((CELL, cells), (VALID, items), (CONTENT, self.table[:, BYTES])):
            self.table[1:, column] = np.cumsum(sizes)[:-1]
        self.cells = np.empty(int(cells.sum()), np.int64)
        self.valid = np.empty(int(items.sum()), np.uint8)
        self.content = np.empty(int(self.table[:, BYTES].sum()), np.uint8)

    def _used(self) -> npt.NDArray[np.int64]:
        """Bytes of content in each buffer."""
        used = np.zeros(len(self.table), np.int64)
        texts = np.flatnonzero(self.table[:, BUFFER_KIND] == TEXT)
        used[texts] = self.cells[self.table[texts, CELL] + self.counts[texts]]
        return used

    def _restore(
        self,
        used: npt.NDArray[np.int64],
        table: npt.NDArray[np.int64],
        cells: npt.NDArray[np.int64],
        valid: npt.NDArray[np.uint8],
        content: npt.NDArray[np.uint8],
    ) -> None:
        """Copy what the buffers held before `_allocate`."""
        sizes = self._cells_of(self.counts)
        for old, new, size, count, size_bytes in zip(table, self.table, sizes, self.counts, used, strict=True):
            self.cells[new[CELL] :][:size] = cells[old[CELL] :][:size]
            self.valid[new[VALID] :][:count] = valid[old[VALID] :][:count]
            self.content[new[CONTENT] :][:size_bytes] = content[old[CONTENT] :][:size_bytes]

    def replace_raw(self, text_of: Callable[[str, int, int, bytes], bytes]) -> None:
        """Replace each raw value by a text.

        `text_of` gets the path of the buffer, the number of the value's type, its row and its bytes.
        """
        for node, buffer in enumerate(self.nodes):
            if buffer.buffer_kind == TEXT:
                count = int(self.counts[node])
                raw = np.flatnonzero(self.valid[self.table[node, VALID] :][:count] == RAW_VALUE)
                if len(raw):
                    rows = dict(zip(raw.tolist(), self._rows_of(node, raw), strict=True))
                    self._rewrite(node, list(self._texts(node, count, rows, text_of)))

    def _texts(
        self, node: int, count: int, raw: Mapping[int, int], text_of: Callable[[str, int, int, bytes], bytes]
    ) -> Iterator[bytes]:
        """All texts of a buffer, with new ones for the items of `raw`, which has their rows."""
        ends = self.cells[self.table[node, CELL] :][: count + 1].tolist()
        content = self.content[self.table[node, CONTENT] :][: ends[-1]].tobytes()
        for item in range(count):
            text = content[ends[item] : ends[item + 1]]
            if item in raw:
                type_number = int.from_bytes(text[:RAW_PREFIX], "little")
                text = text_of(self.nodes[node].path, type_number, raw[item], text[RAW_PREFIX:])
            yield text

    def _rewrite(self, node: int, texts: list[bytes]) -> None:
        size = sum(map(len, texts))
        if size > self.table[node, BYTES]:
            self.grow(node, size)
        self.cells[self.table[node, CELL] :][: len(texts) + 1] = np.cumsum([0, *map(len, texts)])
        self.content[self.table[node, CONTENT] :][:size] = np.frombuffer(b"".join(texts), np.uint8)

    def repeated_keys(self) -> dict[int, str]:
        """The rows with a map in which a key occurs twice, and the path of that map.

        DuckDB opens no table that has one (fault E27).
        """
        rows: dict[int, str] = {}
        for node, buffer in enumerate(self.nodes):
            if buffer.buffer_kind == MAP and self.counts[node + 1] > 1:
                rows |= dict.fromkeys(self._rows_of(node, self._with_repeated_key(node)), buffer.path)
        return rows

    def _ends_of(self, node: int) -> npt.NDArray[np.int64]:
        """The ends of the lists or maps of a buffer, after a first 0."""
        return self.cells[self.table[node, CELL] :][: int(self.counts[node]) + 1]

    def _with_repeated_key(self, node: int) -> npt.NDArray[np.int64]:
        """The maps of a buffer in which a key occurs twice."""
        keys = self._column(node + 1, self.nodes[node + 1].field.type, int(self.counts[node + 1]))
        numbers = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
        maps = np.repeat(np.arange(self.counts[node]), np.diff(self._ends_of(node)))
        in_maps = maps * len(numbers) + numbers
        # The maps of a topic mostly have the same keys in the same order.
        if (np.diff(in_maps) > 0).all():
            return maps[:0]
        in_maps.sort()
        return np.unique(in_maps[:-1][np.diff(in_maps) == 0] // len(numbers))

    def _rows_of(self, node: int, items: npt.NDArray[np.int64]) -> list[int]:
        """The rows that have these items of a buffer."""
        while node != ROOT:
            node = self.nodes[node].around
            if self.nodes[node].buffer_kind in (LIST, MAP):
                items = np.searchsorted(self._ends_of(node)[1:], items, side="right")
        return list(items.tolist())

    def take(self) -> pa.RecordBatch:
        """The rows as an Arrow batch with memory of its own.

        Raises:
            TooLarge: a column does not fit into Arrow's 32-bit offsets.
        """
        self._fill_late()
        root = self._array(ROOT)
        if self.cells.nbytes + self.valid.nbytes + self.content.nbytes > _KEPT_BYTES:
            self._forget()
        arrays = [root.field(index) for index in range(root.type.num_fields)]
        if not arrays:
            return pa.RecordBatch.from_struct_array(root)
        return pa.RecordBatch.from_arrays(arrays, schema=self.columns)

    def _fill_late(self) -> None:
        """Compute the numbers that kernels left as texts."""
        count = int(self.counts[self._late])
        if not count:
            return
        texts = self._column(self._late, pa.string(), count)
        nodes, items = (self.cells[self.table[self._late + i, CELL] :][:count].copy() for i in (1, 2))
        for node in np.unique(nodes):
            is_of_node = nodes == node
            numbers = texts.filter(pa.array(is_of_node))
            if self.table[node, BUFFER_KIND] == PAIR:
                # A decimal is two cells, the lower half first.
                halves = np.frombuffer(numbers.cast(pa.decimal128(38, 0)).buffers()[1], np.int64)
                cells = self.table[node, CELL] + 2 * items[is_of_node]
                self.cells[cells], self.cells[cells + 1] = halves[: 2 * len(cells) : 2], halves[1 : 2 * len(cells) : 2]
            else:
                doubles = numbers.cast(pa.float64()).to_numpy()
                self.cells[self.table[node, CELL] + items[is_of_node]] = doubles.view(np.int64)

    def _array(self, index: int) -> pa.Array:
        """A buffer as an Arrow array."""
        node, count = self.nodes[index], int(self.counts[index])
        kind, valid = node.field.type, self._bitmap(index, count)
        if node.buffer_kind == STRUCT:
            members = [self._array(member) for member in node.members]
            return pa.Array.from_buffers(kind, count, [valid], children=members)
        if node.buffer_kind == LIST:
            return pa.Array.from_buffers(
                kind, count, [valid, self._ends(index, count)], children=[self._array(index + 1)]
            )
        if node.buffer_kind == MAP:
            entry = pa.struct([kind.key_field, kind.item_field])
            pairs = [self._array(member) for member in node.members]
            entries = pa.Array.from_buffers(entry, len(pairs[0]), [None], children=pairs)
            return pa.Array.from_buffers(kind, count, [valid, self._ends(index, count)], children=[entries])
        return self._column(index, kind, count)

    def _column(self, index: int, kind: pa.DataType, count: int) -> pa.Array:
        """A buffer without buffers inside it as an Arrow array."""
        valid, cells = self._bitmap(index, count), self.cells[self.table[index, CELL] :]
        if pa.types.is_decimal128(kind):
            return pa.Array.from_buffers(kind, count, [valid, _copied(cells[: 2 * count])])
        if kind in (pa.string(), pa.binary()):
            content = self.content[self.table[index, CONTENT] :][: cells[count]]
            return pa.Array.from_buffers(kind, count, [valid, self._ends(index, count), _copied(content)])
        if kind == pa.bool_():
            return pa.Array.from_buffers(kind, count, [valid, _bits(cells[:count] != 0)])
        return pa.Array.from_buffers(kind, count, [valid, _copied(cells[:count], kind.bit_width // 8)])

    def _bitmap(self, index: int, count: int) -> pa.Buffer | None:
        valid = self.valid[self.table[index, VALID] :][:count]
        return None if valid.all() else _bits(valid)

    def _ends(self, index: int, count: int) -> pa.Buffer:
        ends = self.cells[self.table[index, CELL] :][: count + 1]
        if ends[-1] > _MAX_INT32:
            raise TooLarge(
                f"column {self.nodes[index].path} has more than 2 GiB in one batch; decode fewer values at once"
            )
        return _copied(ends, 4)


def _copied(cells: npt.NDArray[Any], item_bytes: int = 0) -> pa.Buffer:
    """A copy in memory of Arrow's pool, which reuses what batches release; numbers are narrowed to 4 bytes if asked."""
    if item_bytes == 4:
        buffer = pa.allocate_buffer(4 * len(cells))
        np.frombuffer(buffer, np.int32)[:] = cells
        return buffer
    buffer = pa.allocate_buffer(cells.nbytes)
    np.frombuffer(buffer, cells.dtype)[:] = cells
    return buffer


def _bits(flags: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
