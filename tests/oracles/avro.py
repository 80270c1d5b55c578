"""Reads Avro values by the specification, one after the other, into rows of the columns of `columns_of_avro`.

It knows schemas as JSON, and nothing of the code under test.
"""

import json
import math
import struct
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

FREE_ITEMS = 1024
MAX_DEPTH = 128
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of local timestamps
_MICROS = {"millis": 1000, "micros": 1}


class Refused(Exception):
    """The bytes are not a value of the schema, or the columns cannot hold the value."""


def parse(schema: Any) -> "Schema":
    """A schema with its named types."""
    named: dict[str, Any] = {}
    return Schema(_with_full_names(schema, "", named), named)


class Schema:
    """A schema as JSON, with its named types by name. All names in it are full: they contain their namespace."""

    def __init__(self, root: Any, named: Mapping[str, Any]) -> None:
        self.root = root
        self.named = named

    def resolved(self, schema: Any) -> Any:
        """The declaration of a type: an object, or a list for a union."""
        if isinstance(schema, str):
            return self.named.get(schema, {"type": schema})
        return schema

    def has_column(self, schema: Any, inside: tuple[str, ...] = ()) -> bool:
        """Whether a type is not always null."""
        schema = self.resolved(schema)
        if isinstance(schema, list):
            values = [branch for branch in schema if branch != "null"]
            return len(values) > 1 or any(
                self.is_record(branch) or self.has_column(branch, inside) for branch in values
            )
        if schema["type"] == "record":
            inner = (*inside, schema["name"])
            return schema["name"] in inside or any(self.has_column(field["type"], inner) for field in schema["fields"])
        return bool(schema["type"] != "null")

    def is_record(self, schema: Any) -> bool:
        """Whether a type is a record. In a union it is visible even if it has no fields."""
        schema = self.resolved(schema)
        return not isinstance(schema, list) and bool(schema["type"] == "record")

    def row(self, data: bytes) -> dict[str, Any] | None:
        """The row of a value, by column; None for a null record. Raises Refused."""
        reader = _Reader(self, data)
        value = reader.read(self.root, (), 0)
        if reader.position != len(data):
            raise Refused("bytes are left")
        if not self.has_column(self.root):
            return {}
        is_row = isinstance(value, _Struct) or value is None
        return value if is_row else {"value": value}


def _with_full_names(schema: Any, namespace: str, named: dict[str, Any]) -> Any:
    """The schema with full names. Each type that it declares is added to `named`."""
    if isinstance(schema, list):
        return [_with_full_names(branch, namespace, named) for branch in schema]
    if isinstance(schema, str):
        name = _full_name(schema, namespace)
        return name if name in named else schema
    full = dict(schema)
    if "name" in schema:
        full["name"] = _full_name(schema["name"], schema.get("namespace", namespace))
        full["namespace"] = namespace = full["name"].rpartition(".")[0]
        named[full["name"]] = full
    for key in schema.keys() & {"items", "values"}:
        full[key] = _with_full_names(schema[key], namespace, named)
    if "fields" in schema:
        full["fields"] = [
            {**field, "type": _with_full_names(field["type"], namespace, named)} for field in schema["fields"]
        ]
    return full


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


class _Struct(dict[str, Any]):
    """The value of a struct column; a map is another dict."""


class _Reader:
    def __init__(self, schema: Schema, data: bytes) -> None:
        self._schema = schema
        self._data = data
        self.position = 0
        self._free_items = FREE_ITEMS + len(data)

    def read(self, schema: Any, inside: tuple[str, ...], depth: int, *, as_json: bool = False) -> Any:
        schema = self._schema.resolved(schema)
        if isinstance(schema, list):
            return self._union(schema, inside, depth, as_json)
        kind = schema["type"]
        if kind == "record":
            return self._record(schema, inside, depth, as_json)
        if kind in ("array", "map"):
            return self._items(schema, inside, depth, as_json)
        return self._json_leaf(schema) if as_json else self._leaf(schema)

    def _union(self, branches: list[Any], inside: tuple[str, ...], depth: int, as_json: bool) -> Any:
        index = self._long()
        if not 0 <= index < len(branches):
            raise Refused("branch")
        value = self.read(branches[index], inside, depth, as_json=as_json)
        if value is None and self._schema.is_record(branches[index]):
            value = "{}"
        values = [branch for branch in branches if branch != "null"]
        is_merged = {json.dumps(branch) for branch in values} in ({'"int"', '"long"'}, {'"float"', '"double"'})
        if as_json or len(values) < 2 or is_merged or branches[index] == "null":
            return value
        members = _Struct((f"member{place}", None) for place in range(len(values)))
        members[f"member{values.index(branches[index])}"] = value
        return members

    def _record(self, schema: Any, inside: tuple[str, ...], depth: int, as_json: bool) -> Any:
        if as_json:
            depth = self._deeper(depth)
            return {field["name"]: self.read(field["type"], (), depth, as_json=True) for field in schema["fields"]}
        if schema["name"] in inside:
            value = self.read(schema, (), self._deeper(depth), as_json=True)
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        inner, row = (*inside, schema["name"]), _Struct()
        for field in schema["fields"]:
            value = self.read(field["type"], inner, depth)
            if self._schema.has_column(field["type"], inner):
                row[field["name"]] = value
        return row or None

    def _items(self, schema: Any, inside: tuple[str, ...], depth: int, as_json: bool) -> Any:
        is_map, depth = schema["type"] == "map", self._deeper(depth)
        pairs: list[Any] = []
        items = schema["values" if is_map else "items"]
        while count := self._long():
            if count < 0:
                self._long()
            if abs(count) > len(self._data) and abs(count) > self._free_items:
                raise Refused("count")
            for _ in range(abs(count)):
                before = self.position
                key = self._text() if is_map else None
                pairs.append((key, self.read(items, inside, depth, as_json=as_json)))
                self._free_items -= self.position == before
                if self._free_items < 0:
                    raise Refused("too many items without bytes")
        if is_map:
            if len(dict(pairs)) < len(pairs):
                raise Refused("a key twice")
            return dict(pairs) if as_json else pairs
        return [value for _, value in pairs]

    def _deeper(self, depth: int) -> int:
        if depth >= MAX_DEPTH:
            raise Refused("depth")
        return depth + 1

    def _leaf(self, schema: Any) -> Any:
        kind, logical = schema["type"], schema.get("logicalType", "")
        if kind in ("int", "long"):
            number = self._int() if kind == "int" else self._long()
            return _time(number, logical)
        if logical == "decimal":
            digits = int.from_bytes(self._sized(schema), "big", signed=True)
            if abs(digits) >= 10**38:
                raise Refused("decimal")
            return _decimal(digits, schema)
        if logical == "duration":
            parts = struct.unpack("<III", self._sized(schema))
            return _Struct(zip(("months", "days", "milliseconds"), parts, strict=True))
        return self._json_leaf(schema, is_bytes=True)

    def _json_leaf(self, schema: Any, *, is_bytes: bool = False) -> Any:  # noqa: C901, PLR0911 - one for each type
        """A value whose logical type does not matter; bytes are as in JSON without `is_bytes`."""
        kind, logical = schema["type"], schema.get("logicalType", "")
        match kind:
            case "null":
                return None
            case "int":
                return self._int()
            case "long":
                return self._long()
            case "boolean":
                [byte] = self._take(1)
                if byte > 1:
                    raise Refused("boolean")
                return bool(byte)
            case "float" | "double":
                layout = struct.Struct("<f" if kind == "float" else "<d")
                [number] = layout.unpack(self._take(layout.size))
                return number if is_bytes or math.isfinite(number) else str(number)
            case "string":
                return self._text()
            case "enum":
                index = self._long()
                if not 0 <= index < len(schema["symbols"]):
                    raise Refused("symbol")
                return schema["symbols"][index]
        data = self._sized(schema)
        if logical == "uuid":
            return str(uuid.UUID(bytes=data))
        if logical == "decimal":
            return format(_decimal(int.from_bytes(data, "big", signed=True), schema), "f")
        return data if is_bytes else data.decode("latin-1")

    def _sized(self, schema: Any) -> bytes:
        """The bytes of a fixed or bytes type."""
        return self._take(schema["size"] if schema["type"] == "fixed" else self._long())

    def _text(self) -> str:
        try:
            return self._take(self._long()).decode()
        except UnicodeDecodeError as error:
            raise Refused("text") from error

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.position:
            raise Refused("length")
        self.position += size
        return self._data[self.position - size : self.position]

    def _int(self) -> int:
        number = self._long()
        if not -(1 << 31) <= number < 1 << 31:
            raise Refused("int")
        return number

    def _long(self) -> int:
        number = 0
        for place in range(10):
            [byte] = self._take(1)
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if number >= 1 << 64:
                    break
                return (number >> 1) ^ -(number & 1)
        raise Refused("varint")


def _decimal(digits: int, schema: Any) -> Decimal:
    text = tuple(map(int, str(abs(digits))))
    return Decimal((int(digits < 0), text, -schema.get("scale", 0)))


def _time(number: int, logical: str) -> Any:
    if not logical:
        return number
    try:
        return _moment(number, logical)
    except OverflowError as error:  # Python has no dates before the year 1 and after 9999
        raise Refused("year") from error


def _moment(number: int, logical: str) -> Any:
    if logical == "date":
        return date(1970, 1, 1) + timedelta(days=number)
    micros = number // 1000 if logical.endswith("nanos") else number * _MICROS[logical.rpartition("-")[2]]
    if logical.startswith("time-"):
        return micros
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment if logical.startswith("local") else moment.replace(tzinfo=UTC)
