"""The columns of a Protobuf message type.

    Protobuf                                  column
    bool                                      bool
    int32, int64, sint*, sfixed*, uint32,     long
    fixed32
    uint64, fixed64                           decimal(38, 0), because not all of them fit into a long
    float, double                             double
    string                                    string
    bytes                                     binary
    enum                                      string: the name, or the number if it has no name
    message, group                            struct
    repeated, map                             list, map
    google.protobuf.Timestamp                 timestamp[us, UTC]
    google.protobuf.Duration                  long: microseconds
    google.protobuf.Int64Value and others     as the value; null if it is not set
    google.protobuf.Struct, Value, ListValue  string: JSON
    an extension                              as a field, after the fields; with its full name if its name is taken
    a message that contains itself, or is     string: JSON
    nested deeper than readers of Delta allow
    a message without fields                  string: {}, because it says which member of a oneof is set; as the values
                                              of a map it is null

Nanoseconds are cut to microseconds, towards the past. A field that is not set
is null if Protobuf can distinguish this from its default, as for `optional`, messages and members of a oneof; otherwise
it has the default. A field of proto2 that declares a default has that default.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor as Field

from kafka_io.errors import InvalidSchema
from kafka_io.values.column_types import LIST_COST, MAP_COST, MAX_NESTING, STRUCT_COST
from kafka_io.values.columns import described
from kafka_io.values.protobuf.descriptors import ProtobufSchema, fields_of

_MAX_NODES = 10_000
_LONGS = (
    Field.TYPE_INT32,
    Field.TYPE_INT64,
    Field.TYPE_SINT32,
    Field.TYPE_SINT64,
    Field.TYPE_SFIXED32,
    Field.TYPE_SFIXED64,
    Field.TYPE_UINT32,
    Field.TYPE_FIXED32,
)
_SCALARS = {
    Field.TYPE_BOOL: pa.bool_(),
    **dict.fromkeys(_LONGS, pa.int64()),
    **dict.fromkeys((Field.TYPE_UINT64, Field.TYPE_FIXED64), pa.decimal128(38, 0)),
    **dict.fromkeys((Field.TYPE_FLOAT, Field.TYPE_DOUBLE), pa.float64()),
    Field.TYPE_STRING: pa.string(),
    Field.TYPE_BYTES: pa.binary(),
    Field.TYPE_ENUM: pa.string(),
}
_GOOGLE = "google/protobuf/"
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_WRAPPERS = "google/protobuf/wrappers.proto"
_STRUCTS = "google/protobuf/struct.proto"
_TIMES = {TIMESTAMP: pa.timestamp("us", "UTC"), DURATION: pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufNode:
    """The type of a field, or of the items of a list or map, where it is used.

    Args:
        column: the type of the column; None for a message without fields that is a value of a map.
        descriptor: the field; None for the outermost message.
        message: of a message, its descriptor.
        kind: `scalar`, `message`, `wrapper`, `time`, `json`, `list` or `map`.
        inside: of a message that becomes a struct, its fields in the order of their declaration; of a wrapper, its
            value; of a list, its items; of a map, its keys and values.
        fields: of a message that becomes a struct, the Arrow fields of `inside`.
    """

    column: pa.DataType | None
    kind: str
    descriptor: Any = None
    message: Any = None
    inside: "tuple[ProtobufNode, ...]" = ()
    fields: tuple[pa.Field, ...] = field(default=(), repr=False)


def columns_of_protobuf(schema: ProtobufSchema, message: str | None = None) -> pa.Schema:
    """The columns of a message type, by default of the first one of the file.

    >>> from kafka_io import parse_protobuf
    >>> columns_of_protobuf(parse_protobuf('syntax = "proto3"; message Order { int32 id = 1; }'))
    id: int64

    Raises:
        InvalidSchema: there is no such message, or it has more than 10,000 fields.
    """
    node = type_node(schema, schema.message(message or schema.first_message))
    return pa.schema([field for field in node.fields if field.type != pa.null()])


def type_node(schema: ProtobufSchema, message: Any) -> ProtobufNode:
    """A message type as a tree without cycles; the kind of the root is always `message`.

    Raises:
        InvalidSchema: the message has more than 10,000 fields.
    """
    return _Unfolding(schema).struct(message, None, MAX_NESTING)


def is_google(message: Any, name: str) -> bool:
    """Whether a message type is Google's type of this name, not another one that a schema declares with the name."""
    return bool(message.full_name == name and message.file.name.startswith(_GOOGLE))


def _names(fields: Sequence[Any]) -> list[str]:
    """The names of columns. An extension has its full name if a field before it has its name (fault F13)."""
    names: list[str] = []
    for each in fields:
        names.append(each.full_name if each.name in names else each.name)
    return names


class _Unfolding:
    """Copies a type to each place that uses it, within a limit, because nested types multiply the copies."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self._nodes = 0
        self._open: list[str] = []

    def struct(self, message: Any, descriptor: Any, room: int) -> ProtobufNode:
        """A message as a struct of its fields, which have so much room for nesting (see `column_types`)."""
        self._open.append(message.full_name)
        self._check_limits()
        members = fields_of(message)
        inside = tuple(self._field(field, room) for field in members)
        self._open.pop()
        comments = self._schema.comments
        fields = tuple(
            described(name, node.column or pa.null(), comment=comments.get(field.full_name, ""))
            for name, field, node in zip(_names(members), members, inside, strict=True)
        )
        with_column = [field for field, node in zip(fields, inside, strict=True) if node.column is not None]
        column = pa.struct(with_column) if with_column else None
        return ProtobufNode(
            column=column, kind="message", descriptor=descriptor, message=message, inside=inside, fields=fields
        )

    def _check_limits(self) -> None:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise InvalidSchema(f"the Protobuf message has more than {_MAX_NODES} fields")

    def _field(self, descriptor: Any, room: int) -> ProtobufNode:
        self._check_limits()
        message = descriptor.message_type
        if message is not None and message.GetOptions().map_entry:
            key, value = (self._single(field, room - MAP_COST) for field in message.fields)
            kind = pa.map_(key.column, pa.string() if value.column is None else value.column)
            return ProtobufNode(column=kind, kind="map", descriptor=descriptor, message=message, inside=(key, value))
        item = self._single(descriptor, room - (LIST_COST if is_repeated(descriptor) else 0))
        if item.column is None:
            item = replace(item, column=pa.string(), kind="json")
        if not is_repeated(descriptor):
            return item
        column = pa.list_(pa.field("element", item.column))
        return ProtobufNode(column=column, kind="list", descriptor=descriptor, message=message, inside=(item,))

    def _single(self, descriptor: Any, room: int) -> ProtobufNode:
        """The type of a field as if it were not repeated."""
        message = descriptor.message_type
        if message is None:
            return ProtobufNode(column=_SCALARS[descriptor.type], kind="scalar", descriptor=descriptor)
        for name, column in _TIMES.items():
            if is_google(message, name):
                return ProtobufNode(column=column, kind="time", descriptor=descriptor, message=message)
        if message.file.name == _WRAPPERS:
            value = self._field(message.fields[0], room)
            return ProtobufNode(
                column=value.column, kind="wrapper", descriptor=descriptor, message=message, inside=(value,)
            )
        # A struct needs room for its own lists and maps too: only messages can be JSON.
        is_too_deep = room < STRUCT_COST + max(LIST_COST, MAP_COST)
        if message.file.name == _STRUCTS or message.full_name in self._open or is_too_deep:
            return ProtobufNode(column=pa.string(), kind="json", descriptor=descriptor, message=message)
        return self.struct(message, descriptor, room - STRUCT_COST)


def is_repeated(descriptor: Any) -> bool:
    """Whether a field is a list or map."""
    return bool(descriptor.is_repeated)
