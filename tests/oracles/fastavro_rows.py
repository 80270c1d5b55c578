"""Rows of Avro values that fastavro decodes. This module reads no bytes: it puts fastavro's values into columns."""

import io
import json
import math
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import fastavro

from tests.oracles import avro

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def without_logical_types(schema: Any) -> Any:
    """A schema whose values fastavro reads as they are written."""
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if isinstance(schema, dict):
        return {key: without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return schema


class FastavroSchema(avro.Schema):
    """A schema as JSON, whose values fastavro reads."""

    def __init__(self, schema: Any) -> None:
        parsed = avro.parse(schema)
        super().__init__(parsed.root, parsed.named)
        # fastavro does not mark a union as parsed, so it would parse one for each value. A record has the same bytes.
        fields = [{"name": "value", "type": _Branches().visible(schema)}]
        with_branches = {"type": "record", "name": "Root", "fields": fields}
        self._logical = fastavro.parse_schema(with_branches)
        self._plain = fastavro.parse_schema(without_logical_types(with_branches))

    def row(self, data: bytes) -> dict[str, Any] | None:
        """The row of a value, by column; None for a null record. Raises Refused."""
        value = self._value(self.root, _read(self._logical, data), _read(self._plain, data), ())
        if not self.has_column(self.root):
            return {}
        return value if isinstance(value, dict) or value is None else {"value": value}

    def _value(self, schema: Any, value: Any, plain: Any, inside: tuple[str, ...]) -> Any:
        """A value in its column. `plain` is the value without logical types; JSON has only few of them."""
        schema = self.resolved(schema)
        if isinstance(schema, list):
            return self._of_union(schema, value, plain, inside)
        match schema["type"]:
            case "record":
                return self._struct(schema, value, plain, inside)
            case "array":
                pairs = zip(value, plain, strict=True)
                return [self._value(schema["items"], item, plain_item, inside) for item, plain_item in pairs]
            case "map":
                values = schema["values"]
                return [(key, self._value(values, item, plain[key], inside)) for key, item in value.items()]
        return _leaf(schema, value)

    def _of_union(self, branches: list[Any], value: Any, plain: Any, inside: tuple[str, ...]) -> Any:
        values = _values(branches)
        if value is None or len(values) == 1:
            return None if value is None else self._visible(values[0], value, plain, inside)
        member, branch, value, plain = _branch(values, value, plain)
        column = self._visible(branch, value, plain, inside)
        is_merged = sorted(map(str, values)) in (["int", "long"], ["double", "float"])
        return column if is_merged else {**dict.fromkeys(map(_member, range(len(values)))), member: column}

    def _visible(self, schema: Any, value: Any, plain: Any, inside: tuple[str, ...]) -> Any:
        """A value of a union; a record without fields is a text."""
        column = self._value(schema, value, plain, inside)
        return "{}" if column is None and self.is_record(schema) else column

    def _struct(self, schema: Any, value: Any, plain: Any, inside: tuple[str, ...]) -> Any:
        if schema["name"] in inside:
            return json.dumps(self._in_json(schema, value, plain), ensure_ascii=False, separators=(",", ":"))
        inner, row = (*inside, schema["name"]), {}
        for field in schema["fields"]:
            name, kind = field["name"], field["type"]
            if self.has_column(kind, inner):
                row[name] = self._value(kind, value[name], plain[name], inner)
        return row or None

    def _in_json(self, schema: Any, value: Any, plain: Any) -> Any:
        """A value inside a recursive type."""
        schema = self.resolved(schema)
        if isinstance(schema, list):
            values = _values(schema)
            if value is None or len(values) == 1:
                return None if value is None else self._in_json(values[0], value, plain)
            return self._in_json(*_branch(values, value, plain)[1:])
        match schema["type"]:
            case "record":
                return {
                    field["name"]: self._in_json(field["type"], value[field["name"]], plain[field["name"]])
                    for field in schema["fields"]
                }
            case "array":
                pairs = zip(value, plain, strict=True)
                return [self._in_json(schema["items"], item, plain_item) for item, plain_item in pairs]
            case "map":
                return {key: self._in_json(schema["values"], item, plain[key]) for key, item in value.items()}
        return _json_leaf(schema, value, plain)


class _Branches:
    """Puts each type of a union into a record with one field `memberN`.

    The bytes of the values stay the same, because a record is its fields, and fastavro says which branch it has read.
    """

    def __init__(self) -> None:
        self._count = 0

    def visible(self, schema: Any) -> Any:
        """The schema with such records."""
        if isinstance(schema, list):
            branches = {branch: self.visible(schema[branch]) for branch in range(len(schema))}
            values = [branch for branch in branches if schema[branch] != "null"]
            for index, branch in enumerate(values if len(values) > 1 else ()):
                self._count += 1
                fields = [{"name": _member(index), "type": branches[branch]}]
                branches[branch] = {"type": "record", "name": f"Branch{self._count}", "fields": fields}
            return list(branches.values())
        if isinstance(schema, dict):
            inner = {key: self.visible(schema[key]) for key in schema.keys() & {"items", "values"}}
            if "fields" in schema:
                inner["fields"] = [{**field, "type": self.visible(field["type"])} for field in schema["fields"]]
            return {**schema, **inner}
        return schema


def _member(index: int) -> str:
    return f"member{index}"


def _values(branches: list[Any]) -> list[Any]:
    return [branch for branch in branches if branch != "null"]


def _branch(values: list[Any], value: Mapping[str, Any], plain: Mapping[str, Any]) -> tuple[str, Any, Any, Any]:
    """The member that a union's value has, its type, and its value with and without logical types."""
    [member] = value
    return member, values[int(member.removeprefix("member"))], value[member], plain[member]


def _read(schema: Any, data: bytes) -> Any:
    stream = io.BytesIO(data)
    try:
        record: Any = fastavro.schemaless_reader(stream, schema, None)
    except Exception as error:  # it raises whatever comes
        raise avro.Refused(str(error)) from error
    if stream.tell() != len(data):
        raise avro.Refused("bytes are left")
    return record["value"]


def _leaf(schema: Any, value: Any) -> Any:
    """A value of a type without inner types, in its column. Some logical types are unknown to fastavro."""
    logical = schema.get("logicalType", "")
    if logical == "duration":
        parts = (("months", 0), ("days", 4), ("milliseconds", 8))
        return {name: int.from_bytes(value[start : start + 4], "little") for name, start in parts}
    if logical.endswith("timestamp-nanos"):
        moment = _EPOCH + timedelta(microseconds=value // 1000)
        return moment.replace(tzinfo=None) if logical.startswith("local") else moment
    if isinstance(value, time):
        return (value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + value.microsecond
    if logical == "uuid":
        return str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value)
    return value


def _json_leaf(schema: Any, value: Any, plain: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(plain, bytes):
        return str(uuid.UUID(bytes=plain)) if schema.get("logicalType") == "uuid" else plain.decode("latin-1")
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else str(plain)
    return plain
