"""Finds fields of a message that google.protobuf passes over, because their wire type is not that of the schema."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from kafka_io.values.kernels import protobuf_program as op
from kafka_io.values.protobuf.columns import ProtobufNode, is_repeated
from kafka_io.values.protobuf.descriptors import fields_of, message_class
from kafka_io.values.protobuf.program import wire_type_of


def misread_field(value: Any, node: ProtobufNode) -> str | None:
    """The path of the first field whose wire type is another one than in the schema; None without one.

    google.protobuf keeps such a field as an unknown one, and would leave it out when it writes the message again. It
    also keeps the entries of maps that have an unknown part, and the numbers that a closed enum lacks; their wire types
    are right. JSON is made of what google.protobuf reads, so nothing inside it is looked at.

    Args:
        value: a message that google.protobuf has read.
        node: its type; of an entry of a map, that of the map.
    """
    fields = {field.number: field for field in fields_of(value.DESCRIPTOR)}
    members = {member.descriptor.number: member for member in node.inside}
    for unknown in UnknownFieldSet(value):
        field = fields.get(unknown.field_number)
        if field is not None and unknown.wire_type not in _wire_types(field):
            return str(field.name)
        member = members.get(unknown.field_number)
        if member is not None and member.kind == "map":
            entry = message_class(member.message).FromString(unknown.data)
            if path := misread_field(entry, member):
                return f"{member.descriptor.name}.{path}"
    for name, message, member in _messages_in(value, node):
        if path := misread_field(message, member):
            return f"{name}.{path}"
    return None


def _wire_types(field: Any) -> set[int]:
    """The wire types that a field may have: numbers of a repeated one may be packed into one text."""
    wire = wire_type_of(field)
    return {wire, op.LENGTH} if is_repeated(field) and wire != op.GROUP else {wire}


def _messages_in(value: Any, node: ProtobufNode) -> Iterator[tuple[str, Any, ProtobufNode]]:
    """The messages directly inside a message, each with its path and its type."""
    for member in node.inside:
        item = member.inside[-1] if member.kind in {"map", "list"} else member
        if item.message is None or item.kind == "json":
            continue
        name = str(member.descriptor.name)
        if member.kind == "map":
            yield from ((f"{name}.value", message, item) for message in getattr(value, name).values())
        elif member.kind == "list":
            yield from ((name, message, item) for message in _content(value, member.descriptor))
        elif _is_set(value, member.descriptor):
            yield name, _content(value, member.descriptor), item


def _content(value: Any, field: Any) -> Any:
    return value.Extensions[field] if field.is_extension else getattr(value, field.name)


def _is_set(value: Any, field: Any) -> bool:
    return bool(value.HasExtension(field) if field.is_extension else value.HasField(field.name))
