"""The rows that google.protobuf's own classes give for Protobuf values: the oracle of the Protobuf decoder."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_S = 315_576_000_000
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
_SECOND_NS = 1_000_000_000
_WIRES = {
    **dict.fromkeys((Field.TYPE_DOUBLE, Field.TYPE_FIXED64, Field.TYPE_SFIXED64), 1),
    **dict.fromkeys((Field.TYPE_FLOAT, Field.TYPE_FIXED32, Field.TYPE_SFIXED32), 5),
    **dict.fromkeys((Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE), 2),
    Field.TYPE_GROUP: 3,
}


class Refused(Exception):
    """The value has no row."""


@dataclass(frozen=True)
class Json:
    """A column of JSON text, as what it contains."""

    value: Any


class Entries(dict[Any, Any]):
    """The entries of a map; a message is another dict."""


def row(message: Any, body: bytes) -> dict[str, Any]:
    """The row of a value.

    Raises:
        Refused: google.protobuf does not read it, or a part of it fits into no column.
    """
    value = GetMessageClass(message)()
    try:
        value.ParseFromString(body)
        return _struct(value, ())
    except (DecodeError, UnicodeDecodeError) as error:
        raise Refused from error


def usual_form(message: Any, body: bytes) -> bytes:
    """The value as google.protobuf writes it."""
    value = GetMessageClass(message)()
    value.ParseFromString(body)
    return bytes(value.SerializePartialToString())


def is_strict(message: Any, body: bytes) -> bool:
    """Whether all fields of a value that google.protobuf reads have their wire type, and all its texts are UTF-8."""
    try:
        _walk(message, body, 0, 0, ())
    except Refused:
        return False
    return True


def fields_of(message: Any) -> list[Any]:
    """The fields of a message type, and after them its extensions in the order of their numbers."""
    extensions = message.file.pool.FindAllExtensions(message)
    return [*message.fields, *sorted(extensions, key=lambda extension: int(extension.number))]


def content_of(value: Any, field: Any) -> Any:
    """The value of a field or an extension of a message."""
    return value.Extensions[field] if field.is_extension else getattr(value, field.name)


def _struct(value: Any, open_types: tuple[str, ...]) -> dict[str, Any]:
    names, members = (*open_types, value.DESCRIPTOR.full_name), dict[str, Any]()
    for field in fields_of(value.DESCRIPTOR):
        members[field.full_name if field.name in members else field.name] = _field(value, field, names)
    return members


def _is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _kind(message: Any, names: tuple[str, ...]) -> str:
    if message.file.name.startswith("google/protobuf/"):
        known = {"Timestamp": "timestamp", "Duration": "duration"}
        if message.name in known:
            return known[message.name]
        if message.file.name.endswith("wrappers.proto"):
            return "wrapper"
        if message.file.name.endswith("struct.proto"):
            return "json"
    return "json" if message.full_name in names else "struct"


def _has_column(message: Any, names: tuple[str, ...]) -> bool:
    """Whether a type has a column as the value of a map: a message without fields has none."""
    return message is None or _kind(message, names) != "struct" or bool(fields_of(message))


def _field(value: Any, field: Any, names: tuple[str, ...]) -> Any:
    content = content_of(value, field)
    if _is_map(field):
        item = field.message_type.fields_by_name["value"]
        has_column = _has_column(item.message_type, names)
        return Entries((key, _single(content[key], item, names) if has_column else None) for key in content)
    if field.is_repeated:
        return [_single(element, field, names) for element in content]
    has_field = value.HasExtension(field) if field.is_extension else field.has_presence and value.HasField(field.name)
    if field.has_presence and not has_field and not field.has_default_value:
        return None
    return _single(content, field, names)


def _single(content: Any, field: Any, names: tuple[str, ...]) -> Any:  # noqa: PLR0911 - one for each kind of type
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(content)
        return named.name if named else str(content)
    if field.type in {Field.TYPE_UINT64, Field.TYPE_FIXED64}:
        return Decimal(content)
    if field.message_type is None:
        return content
    match _kind(field.message_type, names):
        case "timestamp":
            return _timestamp(content)
        case "duration":
            return _duration(content)
        case "wrapper":
            return _single(content.value, content.DESCRIPTOR.fields_by_name["value"], names)
        case "struct" if fields_of(field.message_type):
            return _struct(content, names)
    return _json(content)


def _timestamp(content: Any) -> datetime:
    if not (_FIRST_S <= content.seconds <= _LAST_S and 0 <= content.nanos < _SECOND_NS):
        raise Refused
    return _EPOCH + timedelta(seconds=content.seconds, microseconds=content.nanos // 1000)


def _duration(content: Any) -> int:
    seconds, nanos = content.seconds, content.nanos
    if abs(seconds) > _LONGEST_S or abs(nanos) >= _SECOND_NS or seconds * nanos < 0:
        raise Refused
    return int((seconds * _SECOND_NS + nanos) // 1000)


def _json(content: Any) -> Json:
    try:
        return Json(json_format.MessageToDict(content, preserving_proto_field_name=True))
    except (json_format.Error, ValueError, TypeError, RecursionError) as error:
        raise Refused from error


# The bytes as they are


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[position] & 0x7F) << shift
        shift += 7
        position += 1
        if data[position - 1] < 0x80:
            return number, position


def _walk(message: Any, data: bytes, position: int, group: int, names: tuple[str, ...]) -> int:
    """Check a message, or a group up to its end; `message` is None for one that the schema does not know."""
    names = (*names, message.full_name) if message else names
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 4:
            assert number == group
            return position
        field = {own.number: own for own in fields_of(message)}.get(number) if message else None
        if wire == 3 and field is None:
            position = _walk(None, data, position, number, names)
            continue
        if field is not None:
            expected = _WIRES.get(field.type, 0)
            if wire != expected and not (wire == 2 and expected in {0, 1, 5} and field.is_repeated):
                raise Refused
        if wire == 3:
            assert field is not None
            position = _walk(field.message_type, data, position, number, names)
            continue
        size = 0
        if wire == 0:
            _, position = _varint(data, position)
        else:
            size, position = _varint(data, position) if wire == 2 else ({1: 8, 5: 4}[wire], position)
        if field is not None:
            _check(field, data[position : position + size], names)
        position += size
    return position


def _check(field: Any, content: bytes, names: tuple[str, ...]) -> None:
    if field.type == Field.TYPE_STRING:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise Refused from error
    elif field.type == Field.TYPE_MESSAGE and (_is_map(field) or _kind(field.message_type, names) != "json"):
        _walk(field.message_type, content, 0, 0, names)


def same(actual: Any, expected: Any, parse_json: Any) -> bool:
    """Whether a cell has what is expected; NaN equals NaN, and 0.0 does not equal -0.0."""
    if isinstance(expected, Json):
        return isinstance(actual, str) and bool(parse_json(actual) == expected.value)
    if isinstance(expected, float) and isinstance(actual, float):
        return repr(actual) == repr(expected) or (math.isnan(actual) and math.isnan(expected))
    if isinstance(expected, Mapping) and isinstance(actual, list):  # a map
        pairs = dict(actual)
        return len(actual) == len(expected) and _same_members(pairs, expected, parse_json)
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return _same_members(actual, expected, parse_json)
    if isinstance(expected, list) and isinstance(actual, list):
        pairs_of = zip(actual, expected, strict=False)
        return len(actual) == len(expected) and all(same(item, wanted, parse_json) for item, wanted in pairs_of)
    return bool(actual == expected and type(actual) is type(expected))


def _same_members(actual: Mapping[Any, Any], expected: Mapping[Any, Any], parse_json: Any) -> bool:
    return actual.keys() == expected.keys() and all(same(actual[key], expected[key], parse_json) for key in actual)
