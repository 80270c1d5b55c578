"""Change events of Debezium with the schemas of Kafka Connect: in Avro, and in JSON with the schema in each event.

The same changes are loaded in both ways, so both tables must have the same rows, and the cells that Kafka Connect's
types promise. Some values are the first or last of their type, or just beside these.
"""

import base64
import json
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from pyspark.sql import SparkSession

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fuzz.leaves import lost
from tests.fuzz.tables import check_table
from tests.kafka_io.values.avro.making import framed, varint

_NAMES = (
    "a",
    "A",
    "b",
    "a_b",
    "a_2",
    "date",
    "value",
    "key",
    "op",
    "__op",
    "value__op",
    "__source",
    "_error",
    "_kafka_offset",
)
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_FIRST_US, _LAST_US = _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1
_INT64 = 1 << 63
_DAY_US = 86_400_000_000
BAD = "a bad record"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Type:
    """A type of Kafka Connect: its schemas in Avro and in JSON, how both write a value, and what a table has for it."""

    avro: Any
    json: Mapping[str, Any]
    values: Sequence[Any]
    in_avro: Callable[[Any], bytes]
    in_json: Callable[[Any], Any] = lambda value: value
    cell: Callable[[Any], Any] = lambda value: value
    as_text: bool = False
    """Whether Avro has the text of what JSON has as a time."""


def _sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def _text(value: str) -> bytes:
    return _sized(value.encode())


def _moment(micros: int) -> Any:
    return _EPOCH + timedelta(microseconds=micros) if _FIRST_US <= micros <= _LAST_US else BAD


def _day(days: int) -> Any:
    return (_EPOCH + timedelta(days=days)).date() if _FIRST_DAY <= days <= _LAST_DAY else BAD


def _integer(
    kind: str, bits: int, name: str, values: Sequence[int], cell: Callable[[Any], Any], logical: str = ""
) -> _Type:
    """An integer whose name says what it is."""
    avro: dict[str, Any] = {"type": kind, "connect.version": 1, "connect.name": name}
    return _Type(
        avro={**avro, "logicalType": logical} if logical else avro,
        json={"type": f"int{bits}", "name": name, "version": 1},
        values=values,
        in_avro=varint,
        cell=cell,
    )


def _decimal(scale: int) -> _Type:
    name, parameters = f"{_CONNECT}Decimal", {"scale": str(scale)}
    exact = Context(prec=60)

    def as_bytes(digits: int) -> bytes:
        return digits.to_bytes((digits if digits >= 0 else ~digits).bit_length() // 8 + 1, "big", signed=True)

    avro = {"type": "bytes", "scale": scale, "precision": 64, "connect.version": 1, "connect.parameters": parameters}
    return _Type(
        avro={**avro, "connect.name": name, "logicalType": "decimal"},
        json={"type": "bytes", "name": name, "version": 1, "parameters": parameters},
        values=(0, 1, -1, -128, 10**38 - 1, 1 - 10**38, 10**38, -(10**40)),
        in_avro=lambda digits: _sized(as_bytes(digits)),
        in_json=lambda digits: base64.b64encode(as_bytes(digits)).decode(),
        cell=lambda digits: Decimal(digits).scaleb(-scale, exact) if abs(digits) < 10**38 else BAD,
    )


def _plain(avro: Any, kind: Any, values: Sequence[Any], in_avro: Callable[[Any], bytes]) -> _Type:
    return _Type(avro=avro, json=kind if isinstance(kind, dict) else {"type": kind}, values=values, in_avro=in_avro)


_DAYS = (_FIRST_DAY - 1, _FIRST_DAY, -1, 0, _LAST_DAY, _LAST_DAY + 1)
_MICROS = (_FIRST_US - 1, _FIRST_US, -1, 0, 1, _LAST_US, _LAST_US + 1, _INT64 - 1)
_MILLIS = (_FIRST_US // 1000 - 1, _FIRST_US // 1000, -1, 0, _LAST_US // 1000, _LAST_US // 1000 + 1, -_INT64)
_NANOS = (-_INT64, -1, 0, 999, _INT64 - 1)
_TYPES = (
    *map(_decimal, (0, 2, 10, 38)),
    _integer("int", 32, f"{_CONNECT}Date", _DAYS, _day, "date"),
    _integer("int", 32, f"{_CONNECT}Time", (0, 86_399_999), lambda ms: 1000 * ms, "time-millis"),
    _integer("long", 64, f"{_CONNECT}Timestamp", _MILLIS, lambda ms: _moment(1000 * ms), "timestamp-millis"),
    _integer("int", 32, f"{_DEBEZIUM}Date", _DAYS, _day),
    _integer("int", 32, f"{_DEBEZIUM}Time", (0, 86_399_999), lambda ms: 1000 * ms),
    _integer("long", 64, f"{_DEBEZIUM}MicroTime", (0, _DAY_US), lambda us: us),
    _integer("long", 64, f"{_DEBEZIUM}NanoTime", (0, 1_999, 1000 * _DAY_US), lambda ns: ns // 1000),
    _integer("long", 64, f"{_DEBEZIUM}Timestamp", _MILLIS, lambda ms: _moment(1000 * ms)),
    _integer("long", 64, f"{_DEBEZIUM}MicroTimestamp", _MICROS, _moment),
    _integer("long", 64, f"{_DEBEZIUM}NanoTimestamp", _NANOS, lambda ns: _moment(ns // 1000)),
    _integer("int", 32, f"{_DEBEZIUM}Year", (-5, 2024), lambda year: year),
    _Type(
        avro={"type": "string", "connect.name": f"{_DEBEZIUM}ZonedTimestamp"},
        json={"type": "string", "name": f"{_DEBEZIUM}ZonedTimestamp"},
        values=("0001-01-01T00:00:00Z", "2013-01-01T06:00:00.5+01:00", "9999-12-31T23:59:59.999999Z"),
        in_avro=_text,
        as_text=True,
        cell=datetime.fromisoformat,
    ),
    _plain({"type": "string", "connect.name": f"{_DEBEZIUM}ZonedTime"}, "string", ("12:00:00Z", ""), _text),
    _plain({"type": "string", "connect.name": "io.debezium.data.Json"}, "string", ('{"a": [1]}', "null"), _text),
    _plain("string", "string", ("", "a", "\0", "x" * 70, "\U0001f600"), _text),
    _plain("int", "int32", (0, -(1 << 31), (1 << 31) - 1), varint),
    _plain({"type": "int", "connect.type": "int16"}, "int16", (0, -(1 << 15)), varint),
    _plain("long", "int64", (0, -_INT64, _INT64 - 1), varint),
    _plain("double", "double", (0.0, -0.0, 1.5, -1.7976931348623157e308), lambda value: struct.pack("<d", value)),
    _plain("boolean", "boolean", (True, False), lambda value: bytes([value])),
    _Type(
        avro="bytes",
        json={"type": "bytes"},
        values=(b"", b"\xff\0"),
        in_avro=_sized,
        in_json=lambda data: base64.b64encode(data).decode(),
    ),
    _plain(
        {"type": "array", "items": "string"},
        {"type": "array", "items": {"type": "string"}},
        ([], ["a", ""]),
        lambda items: (varint(len(items)) + b"".join(map(_text, items)) if items else b"") + b"\0",
    ),
)  # fmt: skip

Row = Mapping[str, tuple[_Type, Any]]
"""The type and the value of each field; None for null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An event: its operation, and the row before and after it."""

    op: str
    before: Row | None
    after: Row | None
    types: Mapping[str, _Type]

    @property
    def row(self) -> Row | None:
        """The row that the table has."""
        return self.before if self.op == "d" else self.after

    def avro_schema(self) -> str:
        """The schema of the envelope, as Kafka Connect's converter of Avro registers it."""
        fields = [{"name": name, "type": ["null", kind.avro], "default": None} for name, kind in self.types.items()]
        row = {"type": "record", "name": "Value", "fields": fields}
        source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
        members: Sequence[tuple[str, Any]] = (
            ("before", ["null", row]), ("after", ["null", "Value"]), ("source", source), ("op", "string"),
            ("ts_ms", ["null", "long"]),
        )  # fmt: skip
        envelope = [{"name": name, "type": kind} for name, kind in members]
        return json.dumps({"type": "record", "name": "Envelope", "namespace": "shop", "fields": envelope})

    def in_avro(self) -> bytes:
        """The body in Avro."""

        def row(values: Row | None) -> bytes:
            if values is None:
                return b"\0"
            cells = (b"\0" if value is None else b"\2" + kind.in_avro(value) for kind, value in values.values())
            return b"\2" + b"".join(cells)

        return row(self.before) + row(self.after) + varint(7) + _text(self.op) + b"\2" + varint(1_700_000_000_000)

    def in_json(self) -> bytes:
        """The event with its schema."""

        def row(values: Row | None) -> Any:
            cells = values or {}
            return None if values is None else {
                name: None if value is None else kind.in_json(value) for name, (kind, value) in cells.items()
            }  # fmt: skip

        fields = [{**kind.json, "optional": True, "field": name} for name, kind in self.types.items()]
        members: Sequence[Mapping[str, Any]] = (
            {"type": "struct", "fields": fields, "optional": True, "field": "before"},
            {"type": "struct", "fields": fields, "optional": True, "field": "after"},
            {"type": "struct", "fields": [{"type": "int64", "field": "lsn"}], "field": "source"},
            {"type": "string", "field": "op"},
            {"type": "int64", "optional": True, "field": "ts_ms"},
        )
        payload = {"before": row(self.before), "after": row(self.after), "source": {"lsn": 7}, "op": self.op}
        schema = {"type": "struct", "fields": members, "name": "shop.Envelope"}
        return json.dumps({"schema": schema, "payload": {**payload, "ts_ms": 1_700_000_000_000}}).encode()

    def expected(self) -> Sequence[Any] | None:
        """The cells of the row; None if it is a bad record."""
        rows = [row for row in (self.before, self.after) if row is not None]
        given = [kind.cell(value) for row in rows for kind, value in row.values() if value is not None]
        if BAD in given:
            return None
        return [kind.cell(value) for kind, value in (self.row or {}).values() if value is not None]


def changes(rng: random.Random) -> list[list[Change]]:
    """A few loads of changes; a later one can have more fields."""
    types = _types(rng, {})
    loads = []
    for _ in range(rng.randrange(1, 4)):
        loads.append([_change(rng, types) for _ in range(rng.randrange(1, 4))])
        types = _types(rng, types) if rng.randrange(2) else types
    return loads


def _types(rng: random.Random, before: Mapping[str, _Type]) -> dict[str, _Type]:
    """The fields of a table of the database, after it got more of them.

    They keep their types: a column of bytes keeps the bytes of a later decimal, and their scale is only in the schema.
    """
    return {**{name: rng.choice(_TYPES) for name in rng.sample(_NAMES, rng.randrange(1, 4))}, **before}


def _change(rng: random.Random, types: Mapping[str, _Type]) -> Change:
    def row() -> Row:
        return {name: (kind, rng.choice((None, *kind.values, *kind.values))) for name, kind in types.items()}

    op = rng.choice("crud")
    before = row() if op == "d" or (op == "u" and rng.randrange(2)) else None
    return Change(op=op, before=before, after=None if op == "d" else row(), types=types)


def seed_of_changes(rng: random.Random) -> bytes:
    """The seed of changes: they contain functions, so an input cannot be their text."""
    return rng.randbytes(8)


def check_connect(data: bytes, _rng: random.Random, session: SparkSession | None = None) -> str:
    """Check that both tables have the cells of each change, that they have the same rows, and that readers find them.

    Returns "read" if all values were decoded, else "refused".
    """
    loads = changes(random.Random(data))
    made = [change for load in loads for change in load]
    in_json = check_table(
        [[change.in_json() for change in load] for load in loads], {"format": "debezium"}, session=session
    )
    with EmbeddedSchemaRegistry() as registry:
        in_avro = check_table(
            [
                [framed(registry.register("v-value", change.avro_schema()), change.in_avro()) for change in load]
                for load in loads
            ],
            {"format": "debezium", "registry": "main"},
            registries={"main": {"url": registry.url}},
        )
    for change, *rows in zip(made, in_json, in_avro, strict=True):
        expected = change.expected()
        for row, is_avro in zip(rows, (False, True), strict=True):
            assert (row["_error"] is None) == (expected is not None), f"{row['_error']}: {change.in_json()!r}"
            own = {name: cell for name, cell in row.items() if not name.startswith("_kafka_")}
            missing = lost(_texts(change) if is_avro else expected, own) if expected is not None else []
            assert not missing, f"{'Avro' if is_avro else 'JSON'} lost {missing}: {own} of {change.in_json()!r}"
    return "refused" if any(row["_error"] is not None for row in in_json) else "read"


def _texts(change: Change) -> list[Any]:
    """The cells of a change in Avro, in which times with a zone are texts."""
    cells = (change.row or {}).values()
    return [value if kind.as_text else kind.cell(value) for kind, value in cells if value is not None]
