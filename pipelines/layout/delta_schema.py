"""Arrow columns as fields of Delta's schema, which is JSON, and back: with comments, aliases and names of fields."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafka_io.values.column_types import TYPE
from kafka_io.values.columns import ALIASES, COMMENT, CONNECT, FIELD
from kafka_io.values.json.reading import JSON_READING

DeltaField = Mapping[str, Any]
"""A field of Delta's schema as JSON values: `name`, `type`, `nullable`, `metadata`."""

_PREFIX = "penstock."
"""The prefix of Arrow's metadata keys in Delta's metadata. `comment` has none, because every engine shows it."""
_SIMPLE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_NARROW: Mapping[str, pa.DataType] = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32()}
"""The types of metadata columns that no column for a field has."""
_PRECISION = 38
_COMMENT = COMMENT.decode()
_OWN_KEYS = {key.decode() for key in (ALIASES, CONNECT, FIELD, TYPE, JSON_READING)}


def delta_fields(columns: Iterable[pa.Field]) -> Sequence[DeltaField]:
    """The columns as fields of Delta's schema."""
    return [
        {"name": column.name, "type": _delta_type(column.type), "nullable": True, "metadata": delta_metadata(column)}
        for column in columns
    ]


def arrow_columns(fields: Iterable[DeltaField]) -> pa.Schema:
    """The inverse of `delta_fields`. It leaves out fields whose type no column of a typed table can have."""
    return pa.schema([column for field in fields if (column := _arrow_field(field)) is not None])


def delta_metadata(column: pa.Field) -> Mapping[str, str]:
    """The metadata of a column in Delta's schema."""
    return {_delta_key(key.decode()): text.decode() for key, text in sorted((column.metadata or {}).items())}


def _delta_key(key: str) -> str:
    return key if key == _COMMENT or key.startswith(_PREFIX) else _PREFIX + key


def _arrow_key(key: str) -> str:
    return key.removeprefix(_PREFIX) if key.removeprefix(_PREFIX) in _OWN_KEYS else key


def _delta_type(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": delta_fields(kind)}
    if pa.types.is_map(kind):
        key, value = _delta_type(kind.key_type), _delta_type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next(name for name, simple in {**_SIMPLE, **_NARROW}.items() if simple == kind)


def _arrow_field(field: DeltaField) -> pa.Field | None:
    kind = _arrow_type(field["type"])
    if kind is None:
        return None
    stored = field.get("metadata", {})
    metadata = {_arrow_key(key): str(text) for key, text in stored.items() if key == _COMMENT or _PREFIX in key}
    return pa.field(field["name"], kind, metadata=metadata or None)


def _arrow_type(type_: Any) -> pa.DataType | None:
    if not isinstance(type_, str):
        return _NESTED[type_["type"]](type_)
    if type_.startswith("decimal("):
        precision, scale = type_.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale)) if int(precision) == _PRECISION else None
    return _SIMPLE.get(type_)


def _struct(type_: DeltaField) -> pa.DataType | None:
    members = [member for field in type_["fields"] if (member := _arrow_field(field)) is not None]
    return pa.struct(members) if len(members) == len(type_["fields"]) else None


def _list(type_: DeltaField) -> pa.DataType | None:
    element = _arrow_type(type_["elementType"])
    return None if element is None else pa.list_(pa.field("element", element))


def _map(type_: DeltaField) -> pa.DataType | None:
    key, value = _arrow_type(type_["keyType"]), _arrow_type(type_["valueType"])
    return None if key is None or value is None else pa.map_(key, value)


_NESTED: Mapping[str, Callable[[DeltaField], pa.DataType | None]] = {"struct": _struct, "array": _list, "map": _map}


def type_text(type_: Any) -> str:
    """A type of Delta's schema as people write it, such as `struct<street: string, numbers: array<long>>`."""
    if isinstance(type_, str):
        return type_
    if type_["type"] == "struct":
        members = (f"{field['name']}: {type_text(field['type'])}" for field in type_["fields"])
        return f"struct<{', '.join(members)}>"
    if type_["type"] == "map":
        return f"map<{type_text(type_['keyType'])}, {type_text(type_['valueType'])}>"
    return f"array<{type_text(type_['elementType'])}>"


def names_of(type_: Any) -> Iterator[str]:
    """The names of all columns of a type of Delta's schema, and of all fields inside them."""
    if isinstance(type_, str):
        return
    for field in type_.get("fields", ()):
        yield field["name"]
        yield from names_of(field["type"])
    for part in ("elementType", "keyType", "valueType"):
        yield from names_of(type_.get(part, ""))
