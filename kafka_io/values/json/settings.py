"""Columns of JSON values that are listed in the settings."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from kafka_io.values.columns import FIELD
from kafka_io.values.json.reading import JsonReading, json_field

_UTC = pa.timestamp("us", tz="UTC")
_TYPES: Mapping[str, tuple[pa.DataType, JsonReading | None]] = {
    "string": (pa.string(), None),
    "long": (pa.int64(), None),
    "bigint": (pa.int64(), None),
    "int": (pa.int64(), None),
    "integer": (pa.int64(), None),
    "double": (pa.float64(), None),
    "float": (pa.float64(), None),
    "boolean": (pa.bool_(), None),
    "bool": (pa.bool_(), None),
    "binary": (pa.binary(), None),
    "date": (pa.date32(), None),
    "date_days": (pa.date32(), JsonReading.EPOCH_DAYS),
    "timestamp": (_UTC, None),
    "timestamp_ntz": (pa.timestamp("us"), None),
    "timestamp_s": (_UTC, JsonReading.EPOCH_SECONDS),
    "timestamp_ms": (_UTC, JsonReading.EPOCH_MILLIS),
    "timestamp_us": (_UTC, JsonReading.EPOCH_MICROS),
    "timestamp_ns": (_UTC, JsonReading.EPOCH_NANOS),
    "json": (pa.string(), JsonReading.TEXT),
}
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*\d+\s*(?:,\s*(\d+)\s*)?\)")
_TOKEN = re.compile(r"\s*((?:decimal|numeric)\s*\([^)]*\)|\w+|[<>:,]|\S)", re.IGNORECASE)
_MAX_SCALE = 38
_MAX_DEPTH = 32


def columns_of_settings(columns: Mapping[str, str | Mapping[str, str]]) -> pa.Schema:
    """The columns of a list of names and types, as the settings have it.

    A type is written as in Spark: `long`, `double`, `decimal(38, 2)`, `string`, `boolean`, `binary`, `date`,
    `timestamp` (a text with a zone), `timestamp_ntz` (without one), `array<long>`, `map<string, double>`,
    `struct<street: string, number: long>`. Besides there are `json` for values of any type, which are kept as JSON
    text, `timestamp_s`, `timestamp_ms`, `timestamp_us` and `timestamp_ns` for integers since 1970, and `date_days` for
    days since 1970. Integers are stored as long, floats as double, decimals with 38 digits. Instead of a type a column
    can have a table with `type`, and with `comment` or with `key`, if the key in the JSON is not the column's name.

    >>> columns_of_settings({"id": "long", "price": "decimal(10, 2)", "at": "timestamp_ms"}).types
    [DataType(int64), Decimal128Type(decimal128(38, 2)), TimestampType(timestamp[us, tz=UTC])]

    Raises:
        ValueError: a type is unknown.
    """
    if not columns:
        raise ValueError("the list of columns is empty")
    return pa.schema([_column(name, description) for name, description in columns.items()])


def _column(name: str, description: str | Mapping[str, str]) -> pa.Field:
    options = {"type": description} if isinstance(description, str) else dict(description)
    unknown = set(options) - {"type", "comment", "key"}
    if unknown or "type" not in options:
        problem = f"an unknown option {min(unknown)}" if unknown else "no type"
        raise ValueError(f"column {name} has {problem}; options are type, comment and key")
    parser = _TypeParser(name, options["type"])
    kind, reading = parser.whole()
    field = json_field(name, kind, reading, options.get("comment", ""))
    if "key" in options and options["key"] != name:
        field = field.with_metadata({**(field.metadata or {}), FIELD: options["key"].encode()})
    return field


class _TypeParser:
    """Reads the type of one column.

    Args:
        name: the column, for errors.
        text: the type.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._tokens = [match[1] for match in _TOKEN.finditer(text.strip())]
        self._next = 0

    def whole(self) -> tuple[pa.DataType, JsonReading | None]:
        """The type that the whole text declares."""
        read = self._type(0)
        if self._next < len(self._tokens):
            raise self._wrong()
        return read

    def _type(self, depth: int) -> tuple[pa.DataType, JsonReading | None]:
        token = self._take()
        name = token.lower()
        nested: dict[str, Callable[[int], pa.DataType]] = {
            "array": self._array,
            "list": self._array,
            "map": self._map,
            "struct": self._struct,
        }
        if name in nested and depth < _MAX_DEPTH:
            self._take("<")
            kind = nested[name](depth + 1)
            self._take(">")
            return kind, None
        decimal = _DECIMAL.fullmatch(name)
        if decimal and int(decimal[1] or 0) <= _MAX_SCALE:
            return pa.decimal128(38, int(decimal[1] or 0)), None
        if name not in _TYPES:
            raise self._wrong()
        return _TYPES[name]

    def _array(self, depth: int) -> pa.DataType:
        return pa.list_(json_field("item", *self._type(depth)))

    def _map(self, depth: int) -> pa.DataType:
        if self._take().lower() != "string":
            raise self._wrong()
        self._take(",")
        return pa.map_(pa.string(), json_field("value", *self._type(depth)))

    def _struct(self, depth: int) -> pa.DataType:
        members: list[pa.Field] = []
        while not members or self._tokens[self._next : self._next + 1] == [","]:
            if members:
                self._take(",")
            name = self._take()
            self._take(":")
            members.append(json_field(name, *self._type(depth)))
        return pa.struct(members)

    def _take(self, expected: str | None = None) -> Any:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or (expected is not None and token != expected):
            raise self._wrong()
        self._next += 1
        return token

    def _wrong(self) -> ValueError:
        return ValueError(
            f"column {self._name} has the unknown type {self._text!r}; types are {', '.join(sorted(_TYPES))}, "
            "decimal(precision, scale), array<type>, map<string, type> and struct<name: type, ...>"
        )
