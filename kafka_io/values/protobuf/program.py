"""Programs for the kernel `kernels/protobuf_rows`: message types of writers resolved into the columns of a table.

The value of a field without a column is checked and dropped. A column without a field is null. A field whose type its
column does not hold makes the values that set it fail with a reason.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as Field
from pyarrow import types

from kafka_io.errors import InvalidSchema
from kafka_io.values.column_buffers import Node
from kafka_io.values.column_types import is_union
from kafka_io.values.columns import assign, field_name
from kafka_io.values.kernels import protobuf_program as op
from kafka_io.values.kernels.column_buffers import ROOT
from kafka_io.values.protobuf.columns import DURATION, ProtobufNode, is_google, is_repeated
from kafka_io.values.protobuf.descriptors import fields_of

_MAX_FIELDS = 1_000_000
_NO_NODE = -1
_ABSENT = (op.PUT_NULL, 0)
# The wire type and the op of scalars.
_SCALARS = {
    Field.TYPE_DOUBLE: (op.FIXED64, op.LONG),
    Field.TYPE_FLOAT: (op.FIXED32, op.FLOAT),
    Field.TYPE_INT64: (op.VARINT, op.LONG),
    Field.TYPE_INT32: (op.VARINT, op.INT32),
    Field.TYPE_UINT64: (op.VARINT, op.UINT64),
    Field.TYPE_UINT32: (op.VARINT, op.UINT32),
    Field.TYPE_SINT64: (op.VARINT, op.SINT64),
    Field.TYPE_SINT32: (op.VARINT, op.SINT32),
    Field.TYPE_BOOL: (op.VARINT, op.BOOL),
    Field.TYPE_ENUM: (op.VARINT, op.ENUM),
    Field.TYPE_FIXED64: (op.FIXED64, op.UINT64),
    Field.TYPE_SFIXED64: (op.FIXED64, op.LONG),
    Field.TYPE_FIXED32: (op.FIXED32, op.UINT32),
    Field.TYPE_SFIXED32: (op.FIXED32, op.LONG),
    Field.TYPE_STRING: (op.LENGTH, op.STRING),
    Field.TYPE_BYTES: (op.LENGTH, op.BYTES_OP),
}


def wire_type_of(descriptor: Any) -> int:
    """The wire type of a field that is not packed."""
    if descriptor.message_type is None:
        return _SCALARS[descriptor.type][0]
    return op.GROUP if descriptor.type == Field.TYPE_GROUP else op.LENGTH


class MessagePrograms:
    """The programs of all writers' message types for the same buffers, as the arrays that the kernel takes.

    Attributes:
        reasons: why values are refused, by the number that REFUSE has.
        json_types: the classes of messages that become JSON, by the number that JSON has.

    Args:
        nodes: the buffers.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._messages: list[list[int]] = []
        self._fields: list[tuple[int, ...]] = []
        self._names: list[str] = []
        self._closes: list[tuple[int, int, int]] = []
        self._texts: list[bytes] = []
        self._enum_numbers: list[int] = []
        self._enum_texts: list[int] = []
        self._enums: dict[Any, tuple[int, int]] = {}
        self._skipped: dict[Any, int] = {}
        self._pending: list[tuple[int, Any]] = []
        self.reasons: list[str] = []
        self.json_types: list[Any] = []

    def add(self, root: ProtobufNode) -> int:
        """Add the program of a message type; returns its index.

        Raises:
            InvalidSchema: the message types are too large together.
        """
        entry = self._struct(root, ROOT)
        while self._pending:
            self._write_skipped(*self._pending.pop())
        return entry

    def arrays(self) -> op.ProtobufProgram:
        """The programs as the kernel takes them."""
        return op.ProtobufProgram(
            messages=np.array(self._messages, np.int64).reshape(-1, op.MESSAGE_COLUMNS),
            fields=np.array(self._fields, np.int64).reshape(-1, op.FIELD_COLUMNS),
            closes=np.array(self._closes, np.int64).reshape(-1, op.CLOSE_COLUMNS),
            texts=np.frombuffer(b"".join(self._texts), np.uint8),
            text_ends=np.cumsum([0, *map(len, self._texts)], dtype=np.int64),
            enum_numbers=np.array(self._enum_numbers, np.int64),
            enum_texts=np.array(self._enum_texts, np.int64),
        )

    def path_of(self, field: int) -> str:
        """The name of a field, for error messages. It is empty if no field is known."""
        if field < 0:
            return ""
        node = self._fields[field][op.NODE]
        return self._nodes[node].path if node >= 0 else self._names[field]

    def reason_of(self, field: int) -> str:
        """The reason of a REFUSE."""
        return self.reasons[self._fields[field][op.A]]

    # Messages

    def _open(self, kind: int, node: int) -> int:
        """Add a message whose fields and ends follow; returns its index."""
        self._messages.append([0, 0, 0, 0, node, kind])
        return len(self._messages) - 1

    def _finish(self, message: int, fields: list[tuple[Any, tuple[int, ...]]], closes: list[tuple[int, ...]]) -> int:
        """Give a message its fields, each with its descriptor, and its ends."""
        if len(self._fields) + len(fields) > _MAX_FIELDS:
            raise InvalidSchema("the Protobuf messages of one table are too large together")
        fields.sort(key=lambda pair: int(pair[0].number))
        first, first_close = len(self._fields), len(self._closes)
        rings = _rings([descriptor for descriptor, _ in fields], first)
        for (descriptor, field), ring in zip(fields, rings, strict=True):
            self._fields.append((*field, ring))
            self._names.append(str(descriptor.name))
        self._closes += [(close[0], close[1], close[2]) for close in closes]
        self._messages[message][: op.MESSAGE_NODE] = [first, len(self._fields), first_close, len(self._closes)]
        return message

    def _struct(self, kind: ProtobufNode, node: int) -> int:
        """A message that fills a struct; its index."""
        message = self._open(op.STRUCT, node)
        places = self._nodes[node].members
        columns = [self._nodes[place].field for place in places]
        assigned = assign(kind.fields, columns)
        free = {field_name(column): place for place, column in zip(places, columns, strict=True)}
        for index in assigned:
            if index is not None:
                free.pop(field_name(columns[index]), None)
        fields, closes = [], {place: (place, _ABSENT) for place in places}
        for field, inside, index in zip(kind.fields, kind.inside, assigned, strict=True):
            place = _NO_NODE if index is None else places[index]
            if index is None and inside.column is not None and field.name in free:
                place = free[field.name]
                program = self._refused(inside, place)
            else:
                program = self._field(inside, place)
                if place >= 0:
                    closes[place] = (place, self._absent(inside, place))
            fields.append((inside.descriptor, program))
        return self._finish(message, fields, [(code, place, value) for place, (code, value) in closes.values()])

    def _absent(self, kind: ProtobufNode, node: int) -> tuple[int, int]:
        """The value that a buffer gets if the message does not set its field."""
        descriptor = kind.descriptor
        if kind.kind in {"list", "map"}:
            return op.PUT_LIST, 0
        if kind.kind != "scalar" or (descriptor.has_presence and not descriptor.has_default_value):
            return _ABSENT
        return self._default(kind, node)

    def _default(self, kind: ProtobufNode, node: int) -> tuple[int, int]:
        """What happens at the end of a message that does not set a scalar: its buffer gets the default."""
        descriptor, column = kind.descriptor, self._nodes[node].field.type
        value = descriptor.default_value
        if descriptor.type == Field.TYPE_ENUM:
            number = descriptor.enum_type.values_by_number.get(value)
            return op.PUT_TEXT, self._text((number.name if number else str(value)).encode())
        if descriptor.type in {Field.TYPE_STRING, Field.TYPE_BYTES}:
            return op.PUT_TEXT, self._text(value if isinstance(value, bytes) else value.encode())
        if types.is_decimal(column):
            return op.PUT_PAIR, value - (1 << 64) if value >= 1 << 63 else value
        if types.is_float64(column):
            return op.PUT_NUMBER, int(np.float64(value).view(np.int64))
        return op.PUT_NUMBER, int(value)

    def _text(self, text: bytes) -> int:
        self._texts.append(text)
        return len(self._texts) - 1

    # Fields

    def _field(self, kind: ProtobufNode, node: int) -> tuple[int, ...]:
        """A field whose value goes into a buffer, or is skipped if that is -1."""
        if node < 0:
            return self._skipped_field(kind.descriptor)
        column = self._nodes[node].field.type
        if is_union(column):
            return self._refused(kind, node)
        if kind.kind == "map":
            return self._map(kind, node)
        if kind.kind == "list":
            item = self._nodes[node].members[0]
            if is_union(self._nodes[item].field.type):
                return self._refused(kind, node)
            return self._single(kind.inside[0], item, op.REPEATED)
        return self._single(kind, node, 0)

    def _single(self, kind: ProtobufNode, node: int, flags: int) -> tuple[int, ...]:
        """A field as if it were not repeated."""
        descriptor = kind.descriptor
        if kind.kind == "scalar":
            return self._scalar(kind, node, flags)
        code, a = op.MESSAGE, 0
        if kind.kind == "time":
            code = op.DURATION if is_google(kind.message, DURATION) else op.TIMESTAMP
        elif kind.kind == "json":
            code, a = op.JSON, self._json(kind.message)
        else:
            a = self._wrapper(kind, node) if kind.kind == "wrapper" else self._struct(kind, node)
        return (descriptor.number, wire_type_of(descriptor), code, node, a, _NO_NODE, flags | op.MERGED)

    def _scalar(self, kind: ProtobufNode, node: int, flags: int) -> tuple[int, ...]:
        descriptor, a, b = kind.descriptor, 0, _NO_NODE
        wire, code = _SCALARS[descriptor.type]
        if descriptor.type == Field.TYPE_ENUM:
            a, b = self._enum(descriptor.enum_type)
            flags |= op.CLOSED if descriptor.enum_type.is_closed else 0
        if node >= 0:
            column = self._nodes[node].field.type
            if types.is_int64(kind.column) and types.is_float64(column):
                flags |= op.TO_DOUBLE
            if code == op.BYTES_OP and types.is_string(column):
                code = op.STRING
        if is_repeated(descriptor) and wire != op.LENGTH:
            flags |= op.PACKABLE
        return (descriptor.number, wire, code, node, a, b, flags)

    def _enum(self, enum: Any) -> tuple[int, int]:
        """The first place of an enum's numbers, and how many there are. Of two names of a number the first counts."""
        if enum not in self._enums:
            names = {number: value.name for number, value in reversed([(v.number, v) for v in enum.values])}
            self._enums[enum] = (len(self._enum_numbers), len(names))
            for number, name in sorted(names.items()):
                self._enum_numbers.append(number)
                self._enum_texts.append(self._text(name.encode()))
        return self._enums[enum]

    def _json(self, message: Any) -> int:
        if message not in self.json_types:
            self.json_types.append(message)
        return self.json_types.index(message)

    def _wrapper(self, kind: ProtobufNode, node: int) -> int:
        """A message with one field, whose value is that of the buffer; its index."""
        [value] = kind.inside
        message = self._open(op.FLAT, node)
        code, default = self._default(value, node)
        return self._finish(message, [(value.descriptor, self._scalar(value, node, 0))], [(code, node, default)])

    def _map(self, kind: ProtobufNode, node: int) -> tuple[int, ...]:
        """A map: its entries are messages with a key and a value."""
        key, value = kind.inside
        key_node, value_node = self._nodes[node].members
        if is_union(self._nodes[value_node].field.type):
            return self._refused(kind, node)
        entry = self._open(op.ENTRY, key_node)
        closes = [(*self._default(key, key_node), key_node)]
        if value.column is None:
            field = self._skipped_field(value.descriptor)
            closes.append((*_ABSENT, value_node))
        else:
            field = self._single(value, value_node, 0)
            closes.append((*self._absent_value(value, value_node, field), value_node))
        fields = [(key.descriptor, self._scalar(key, key_node, 0)), (value.descriptor, field)]
        self._finish(entry, fields, [(code, place, number) for code, number, place in closes])
        return (kind.descriptor.number, op.LENGTH, op.MESSAGE, key_node, entry, value_node, op.REPEATED)

    def _absent_value(self, kind: ProtobufNode, node: int, field: tuple[int, ...]) -> tuple[int, int]:
        """The value of a map entry that has only a key: the default of a scalar, or a message without fields."""
        if kind.kind == "scalar":
            return self._default(kind, node)
        if kind.kind == "time":
            return op.PUT_NUMBER, 0
        return (op.PUT_JSON if kind.kind == "json" else op.PUT_MESSAGE), field[op.A]

    def _refused(self, kind: ProtobufNode, node: int) -> tuple[int, ...]:
        """A field that makes its values fail."""
        buffer = self._nodes[node]
        self.reasons.append(f"the column has type {buffer.field.type}, and the value {kind.column}")
        return (kind.descriptor.number, op.LENGTH, op.REFUSE, _NO_NODE, len(self.reasons) - 1, _NO_NODE, 0)

    # Fields without a buffer

    def _skipped_field(self, descriptor: Any) -> tuple[int, ...]:
        """A field whose value is checked and put nowhere."""
        repeated = op.REPEATED if is_repeated(descriptor) else 0
        if descriptor.message_type is None:
            return self._scalar(ProtobufNode(column=None, kind="scalar", descriptor=descriptor), _NO_NODE, repeated)
        # A message may contain itself, and many places may skip the same one.
        message = self._skipped.get(descriptor.message_type)
        if message is None:
            message = self._skipped[descriptor.message_type] = self._open(op.SKIPPED, _NO_NODE)
            self._pending.append((message, descriptor.message_type))
        return (descriptor.number, wire_type_of(descriptor), op.MESSAGE, _NO_NODE, message, _NO_NODE, repeated)

    def _write_skipped(self, message: int, descriptor: Any) -> None:
        fields = [(field, self._skipped_field(field)) for field in fields_of(descriptor)]
        self._finish(message, fields, [])


def _rings(descriptors: Sequence[Any], first: int) -> list[int]:
    """For each field the next one of its oneof, if it has several; else -1."""
    members: dict[str, list[int]] = {}
    for index, descriptor in enumerate(descriptors):
        oneof = descriptor.containing_oneof
        if oneof is not None and len(oneof.fields) > 1:
            members.setdefault(oneof.full_name, []).append(index)
    rings = [_NO_NODE] * len(descriptors)
    for places in members.values():
        for place, following in zip(places, [*places[1:], places[0]], strict=True):
            rings[place] = first + following
    return rings
