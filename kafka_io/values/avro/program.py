"""Programs for the kernel `kernels/avro_rows`: a writer's schema resolved into the columns of a table.

The value of a field without a column is checked and dropped. A column without a field is null; the default of a
reader's schema is not used, because a default states nothing about records that were written without the field. A field
whose type its column does not hold makes its values fail with a reason.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from pyarrow import types

from kafka_io.errors import InvalidSchema
from kafka_io.values.avro.columns import DURATION, VALUE, TypeNode, field_of, has_own_columns
from kafka_io.values.avro.schema import (
    Array,
    AvroType,
    Decimal,
    Enumeration,
    FixedBytes,
    Map,
    Primitive,
    RecordType,
    Union,
)
from kafka_io.values.column_buffers import Node
from kafka_io.values.column_types import is_union
from kafka_io.values.columns import assign, assign_members, field_name, has_numbers_of
from kafka_io.values.kernels import avro_program as op
from kafka_io.values.kernels.column_buffers import ROOT

_MAX_OPS = 1_000_000
_NO_NODE = -1
_NULL = Primitive("null")
_NO_FIELDS = b"{}"
# Factors of SCALED to microseconds.
_SCALES = {
    "time-millis": 1000,
    "time-nanos": -1000,
    "timestamp-millis": 1000,
    "local-timestamp-millis": 1000,
    "timestamp-nanos": -1000,
    "local-timestamp-nanos": -1000,
}
# Units of dates and times that must be in the years 1 to 9999. The range of nanoseconds is smaller.
_UNITS_PER_DAY = {
    "date": 1,
    "timestamp-millis": 86_400_000,
    "local-timestamp-millis": 86_400_000,
    "timestamp-micros": 86_400_000_000,
    "local-timestamp-micros": 86_400_000_000,
}
_SKIPS = {
    "boolean": (op.SKIP_BOOLEAN, 0, 0),
    "int": (op.SKIP_LONG, 0, 1),
    "long": (op.SKIP_LONG, 0, 0),
    "float": (op.SKIP_FIXED, 4, 0),
    "double": (op.SKIP_FIXED, 8, 0),
    "bytes": (op.SKIP_BYTES, 0, 0),
    "string": (op.SKIP_TEXT, 0, 0),
}
_FEWEST_BYTES = {"null": 0, "float": 4, "double": 8}


class Programs:
    """The programs of all writers' schemas for the same buffers, as the arrays that the kernel takes.

    Attributes:
        reasons: why values are refused, by the number that REFUSE has.
        raw_types: the types of values that are kept as bytes, by the number that RAW_END has.

    Args:
        nodes: the buffers.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._entries: dict[int, int] = {}
        self._ops: list[tuple[int, int, int, int, int]] = []
        self._symbols: list[bytes] = []
        self._skipped_records: dict[RecordType, int] = {}
        self._pending: list[tuple[int, RecordType]] = []
        self.reasons: list[str] = []
        self.raw_types: list[AvroType] = []

    def add(self, schema_id: int, root: TypeNode) -> None:
        """Add the program of a schema.

        Raises:
            InvalidSchema: the schema is too large.
        """
        entry = len(self._ops)
        if root.is_struct_of_members:
            self._outermost_union(root)
        elif root.column is None or has_own_columns(root):
            self._value(root, ROOT)
        else:
            self._emit(op.STRUCT, ROOT)
            self._members(ROOT, [field_of(VALUE, root)], [root])
        self._emit(op.END)
        while self._pending:
            self._write_subroutine(*self._pending.pop())
        self._entries[schema_id] = entry

    def arrays(self) -> op.AvroProgram:
        """The programs as the kernel takes them."""
        ids = sorted(self._entries)
        return op.AvroProgram(
            ids=np.array(ids, np.int64),
            entries=np.array([self._entries[schema_id] for schema_id in ids], np.int64),
            ops=np.array(self._ops, np.int64).reshape(-1, op.PROGRAM_COLUMNS),
            symbols=np.frombuffer(b"".join(self._symbols), np.uint8),
            symbol_ends=np.cumsum([0, *map(len, self._symbols)], dtype=np.int64),
        )

    def path_of(self, place: int) -> str:
        """Name of the buffer that an op fills, for messages; empty if it fills none."""
        node = self._ops[place][op.NODE]
        return self._nodes[node].path if node >= 0 else ""

    def reason_of(self, place: int) -> str:
        """The reason of a REFUSE."""
        return self.reasons[self._ops[place][op.A]]

    def _emit(self, code: int, node: int = _NO_NODE, a: int = 0, b: int = 0, c: int = 0) -> int:
        """Append an op; returns its place."""
        if len(self._ops) >= _MAX_OPS:
            raise InvalidSchema("the Avro schemas of one table are too large together")
        self._ops.append((code, node, a, b, c))
        return len(self._ops) - 1

    def _point(self, place: int, target: int) -> None:
        """Set parameter A of an op."""
        code, node, _, b, c = self._ops[place]
        self._ops[place] = (code, node, target, b, c)

    def _value(self, kind: TypeNode, node: int) -> None:
        """Ops that read a value of a type into a buffer."""
        column = self._nodes[node].field.type
        avro = kind.avro
        if isinstance(avro, Union) and not kind.is_json:
            self._union(kind, node)
        elif kind.column is None:
            self._skip(avro)
            self._emit(op.NULL, node)
        elif is_union(column) and not (isinstance(avro, RecordType) and is_union(kind.column)):
            self._member(kind, self._assigned_members(node, [field_of("", kind)])[0], node)
        elif kind.is_json:
            self._raw(kind, node)
        elif isinstance(avro, RecordType) and column.equals(pa.string()):
            self._presence(kind, node)
        elif isinstance(avro, RecordType) and types.is_struct(column):
            self._emit(op.STRUCT, node)
            self._members(node, kind.record_fields, kind.inside)
        elif isinstance(avro, FixedBytes) and avro.logical == "duration" and types.is_struct(column):
            self._duration(kind, node)
        elif types.is_list(column) if isinstance(avro, Array) else isinstance(avro, Map) and types.is_map(column):
            self._list(node, kind.inside[0])
        else:
            self._leaf(kind, node)

    def _fields_inside(self, node: int) -> list[pa.Field]:
        """The members of a struct, or the columns if it is the root."""
        return [self._nodes[place].field for place in self._nodes[node].members]

    def _refuse(self, kind: TypeNode, node: int) -> None:
        buffer = self._nodes[node]
        self._emit(op.REFUSE, node, len(self.reasons))
        self.reasons.append(f"the column has type {buffer.field.type}, and the value {_name_of(kind.avro)}")

    def _members(self, node: int, fields: Sequence[pa.Field], inside: Sequence[TypeNode]) -> None:
        """Ops for the fields of a record in their order, and nulls for the columns that it lacks."""
        self._fill(node, fields, inside, assign(fields, self._fields_inside(node)))

    def _fill(
        self, node: int, fields: Sequence[pa.Field], inside: Sequence[TypeNode], assigned: Sequence[int | None]
    ) -> None:
        """Ops for these fields, each in the column with its index, and nulls for all other columns."""
        places, columns = self._nodes[node].members, self._fields_inside(node)
        free = {field_name(column): place for place, column in zip(places, columns, strict=True)}
        for index in assigned:
            if index is not None:
                free.pop(field_name(columns[index]), None)
        for field, kind, index in zip(fields, inside, assigned, strict=True):
            if index is not None:
                self._value(kind, places[index])
            elif kind.column is not None and field.name in free:
                self._refuse(kind, free[field.name])
            else:
                self._skip(kind.avro)
        for place in (place for index, place in enumerate(places) if index not in assigned):
            self._emit(op.NULL, place)

    def _union(self, kind: TypeNode, node: int) -> None:
        branches = kind.inside
        nulls = [index for index, branch in enumerate(branches) if branch.avro == _NULL]
        if len(branches) == 2 and len(nulls) == 1:
            place = self._emit(op.OPTION, node, 0, nulls[0])
            self._value(kind.values[0], node)
            self._point(place, len(self._ops))
            return
        is_grown = kind.is_struct_of_members and is_union(self._nodes[node].field.type)
        members = self._assigned_members(node, list(kind.column or ())) if is_grown else []
        values = iter(enumerate(kind.values))
        for branch in self._branches(len(branches)):
            if branch in nulls:
                self._emit(op.NULL, node)
                continue
            index, value = next(values)
            if is_grown:
                self._member(value, members[index], node)
            else:
                self._value(value, node)

    def _outermost_union(self, kind: TypeNode) -> None:
        """Ops of a union whose types are columns."""
        assert kind.column is not None
        fields = list(kind.column)
        values = iter(zip(fields, kind.values, assign(fields, self._fields_inside(ROOT)), strict=True))
        for branch in self._branches(len(kind.inside)):
            if kind.inside[branch].avro == _NULL:
                self._emit(op.NULL, ROOT)
            else:
                field, value, index = next(values)
                self._emit(op.STRUCT, ROOT)
                self._fill(ROOT, [field], [value], [index])

    def _branches(self, count: int) -> Iterator[int]:
        """Emit UNION and the table of its branches. The caller gets the number of each branch, and emits its ops."""
        table = self._emit(op.UNION, _NO_NODE, count) + 1
        for _ in range(count):
            self._emit(op.JUMP)
        ends = []
        for branch in range(count):
            self._point(table + branch, len(self._ops))
            yield branch
            ends.append(self._emit(op.JUMP))
        for place in ends:
            self._point(place, len(self._ops))

    def _assigned_members(self, node: int, types_of_union: Sequence[pa.Field]) -> list[int | None]:
        """Index of the member of a union's column that each type goes into; None if no member holds a type."""
        return assign_members(types_of_union, self._fields_inside(node))

    def _member(self, kind: TypeNode, index: int | None, node: int) -> None:
        """Ops that put a value into a member of a union's column; without a member it is refused."""
        if index is None:
            self._refuse(kind, node)
            return
        self._emit(op.STRUCT, node)
        members = self._nodes[node].members
        self._value(kind, members[index])
        for place in members:
            if place != members[index]:
                self._emit(op.NULL, place)

    def _list(self, node: int, items: TypeNode) -> None:
        """Ops of an array, or of a map: its items are pairs of a text and a value."""
        inner = self._nodes[node].members
        is_map = len(inner) > 1
        with self._items(_fewest_bytes(items.avro) + is_map, node, inner[-1]):
            if is_map:
                self._emit(op.TEXT, inner[0])
            self._value(items, inner[-1])

    @contextmanager
    def _items(self, fewest_bytes: int, node: int = _NO_NODE, inner: int = 0) -> Iterator[None]:
        """Emit the loop over the items; the caller emits the ops of one item. An item takes at least `fewest_bytes`."""
        self._emit(op.LIST, node)
        block = self._emit(op.BLOCK, node, 0, fewest_bytes, inner)
        self._emit(op.SKIP_LONG)
        yield
        self._emit(op.ITEM_END, _NO_NODE, block)
        self._point(block, len(self._ops))

    def _duration(self, kind: TypeNode, node: int) -> None:
        places = self._nodes[node].members
        assigned = assign(list(DURATION), self._fields_inside(node))
        self._emit(op.STRUCT, node)
        for part, index in zip(DURATION, assigned, strict=True):
            if index is None:
                self._emit(op.SKIP_FIXED, _NO_NODE, 4)
            elif self._nodes[places[index]].field.type == part.type:
                self._emit(op.LITTLE_UINT32, places[index])
            else:
                self._refuse(kind, places[index])
        for place in (place for index, place in enumerate(places) if index not in assigned):
            self._emit(op.NULL, place)

    def _raw(self, kind: TypeNode, node: int) -> None:
        """Ops that check a value and keep its bytes; `json_text` makes JSON of them."""
        if not _is_bytes(self._nodes[node].field.type):
            self._refuse(kind, node)
            return
        if kind.avro not in self.raw_types:
            self.raw_types.append(kind.avro)
        self._emit(op.RAW, node)
        self._skip(kind.avro)
        self._emit(op.RAW_END, node, self.raw_types.index(kind.avro))

    def _presence(self, kind: TypeNode, node: int) -> None:
        """Ops that check a record and put the text of one without fields; another record does not fit."""
        if kind.column != pa.string():
            self._refuse(kind, node)
            return
        self._skip(kind.avro)
        self._emit(op.SYMBOL, node, len(self._symbols), 1)
        self._symbols.append(_NO_FIELDS)

    def _leaf(self, kind: TypeNode, node: int) -> None:
        column, avro = self._nodes[node].field.type, kind.avro
        is_bytes, is_plain = _is_bytes(column), has_numbers_of(self._nodes[node].field, field_of("", kind))
        match avro:
            case Primitive("boolean") if types.is_boolean(column):
                self._emit(op.BOOLEAN, node)
            case Primitive("int" | "long") if types.is_float64(column) and types.is_int64(kind.column):
                self._emit(op.LONG_TO_DOUBLE, node, _SCALES.get(avro.logical, 1), int(avro.name == "int"))
            case Primitive("int" | "long") if column.equals(kind.column) or is_plain:
                scale, is_int = None if is_plain else _SCALES.get(avro.logical), int(avro.name == "int")
                units = 0 if is_plain else _UNITS_PER_DAY.get(avro.logical, 0)
                self._emit(op.LONG if scale is None else op.SCALED, node, scale or 0, is_int, units)
            case Primitive("float" | "double") if types.is_float64(column):
                self._emit(op.FLOAT if avro.name == "float" else op.DOUBLE, node)
            case Primitive("bytes" | "string" as name) if is_bytes:
                self._emit(op.TEXT if name == "string" or types.is_string(column) else op.BYTES_OP, node)
            case FixedBytes(_, "uuid") if types.is_string(column):
                self._emit(op.UUID, node, 16)
            case FixedBytes(size, "" | "uuid") if is_bytes:
                self._emit(op.FIXED_TEXT if types.is_string(column) else op.FIXED, node, size)
            case Enumeration(symbols) if is_bytes:
                self._emit(op.ENUM, node, len(self._symbols), len(symbols))
                self._symbols += [symbol.encode() for symbol in symbols]
            case Decimal(_, size) if column.equals(kind.column):
                self._emit(op.DECIMAL if size < 0 else op.DECIMAL_FIXED, node, max(size, 0))
            case _:
                self._refuse(kind, node)

    def _skip(self, avro: AvroType) -> None:
        """Ops that check a value and put it nowhere."""
        match avro:
            case Primitive(name):
                if avro != _NULL:
                    code, a, b = _SKIPS[name]
                    self._emit(code, _NO_NODE, a, b)
            case Decimal(_, size) if size < 0:
                self._emit(op.SKIP_BYTES)
            case Decimal(_, size) | FixedBytes(size):
                self._emit(op.SKIP_FIXED, _NO_NODE, size)
            case Enumeration(symbols):
                self._emit(op.SKIP_ENUM, _NO_NODE, 0, len(symbols))
            case Array(items):
                self._skip_list(items, is_map=False)
            case Map(items):
                self._skip_list(items, is_map=True)
            case Union(branches):
                self._skip_union(branches)
            case RecordType():
                # A record may contain itself, and many places may skip the same one.
                self._pending.append((self._emit(op.CALL), avro))

    def _skip_union(self, branches: Sequence[AvroType]) -> None:
        for branch in self._branches(len(branches)):
            self._skip(branches[branch])

    def _skip_list(self, items: AvroType, *, is_map: bool) -> None:
        with self._items(_fewest_bytes(items) + is_map):
            if is_map:
                self._emit(op.SKIP_TEXT)
            self._skip(items)

    def _write_subroutine(self, call: int, record: RecordType) -> None:
        """Point a CALL to the ops that skip a record, and emit these if they do not exist yet."""
        if record not in self._skipped_records:
            self._skipped_records[record] = len(self._ops)
            for field in record.fields:
                self._skip(field.type)
            self._emit(op.RETURN)
        self._point(call, self._skipped_records[record])


def _is_bytes(column: pa.DataType) -> bool:
    return bool(types.is_string(column) or types.is_binary(column))


def _fewest_bytes(avro: AvroType, depth: int = 0) -> int:
    """Minimum size of a value of a type in bytes. It limits how many items an array can have."""
    match avro:
        case Primitive(name):
            return _FEWEST_BYTES.get(name, 1)
        case FixedBytes(size):
            return size
        case Decimal(_, size):
            return size if size >= 0 else 1
        case RecordType():
            # Deeper fields do not matter for a limit, and a record may contain itself.
            return 0 if depth else sum(_fewest_bytes(field.type, depth + 1) for field in avro.fields)
        case _:
            return 1


def _name_of(avro: AvroType) -> str:
    match avro:
        case Primitive(name, logical):
            return logical or name
        case Decimal(scale):
            return f"a decimal with scale {scale}"
        case FixedBytes(_, logical):
            return logical or "fixed"
        case RecordType():
            return "record"
        case _:
            return type(avro).__name__.lower()
