"""Random Avro schemas and values of every type, written by the specification."""

import random
import struct
from collections.abc import Callable
from typing import Any

_INT, _LONG = 1 << 31, 1 << 63
# Days and microseconds of the years 1 and 9999, as Python has no others.
_DAYS = (-719_162, 2_932_896)
_MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_LOGICAL = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    *({"type": "long", "logicalType": f"{local}timestamp-{unit}"} for local in ("", "local-") for unit in
      ("millis", "micros", "nanos")),
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4},
)  # fmt: skip
_RANGES = {
    "date": _DAYS,
    "timestamp-millis": (_MICROS[0] // 1000, _MICROS[1] // 1000),
    "timestamp-micros": _MICROS,
    "timestamp-nanos": (-_LONG, _LONG - 1),
}
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_TEXTS = ("", "a", "ab\n", "\u20ac", "\U0001f600 smile", "plain ascii of some length", "\x00")
_NUMBERS = (0.0, -0.0, 1.5, -1e300, 5e-324, float("inf"), float("-inf"), 0.1)


class SchemaMaker:
    """Makes schemas as JSON; named types get names of their own."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = 0
        self._open: list[str] = []

    def record(self, depth: int = 3) -> dict[str, Any]:
        """A record with up to five fields; it may contain itself."""
        name = self._name()
        self._open.append(name)
        fields = [{"name": f"f{place}", "type": self.any(depth - 1)} for place in range(self._rng.randrange(6))]
        self._open.pop()
        return {"type": "record", "name": name, "fields": fields}

    def any(self, depth: int) -> Any:
        """Any type, at most so deep."""
        makers: list[Callable[[int], Any]] = [self._leaf] * 4
        if depth > 0:
            makers += [self._array, self._map, self._optional, self._union, self.record, self._recursion]
        return self._rng.choice(makers)(depth)

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def _leaf(self, _depth: int) -> Any:
        named = (
            {"type": "fixed", "name": self._name(), "size": self._rng.choice((0, 1, 3, 20))},
            {"type": "fixed", "name": self._name(), "size": 12, "logicalType": "duration"},
            {"type": "fixed", "name": self._name(), "size": 16, "logicalType": "uuid"},
            {"type": "fixed", "name": self._name(), "size": 9, "logicalType": "decimal", "precision": 20, "scale": 0},
            {"type": "enum", "name": self._name(), "symbols": ["RED", "GREEN", "A_LONGER_SYMBOL"]},
        )
        return self._rng.choice((*_PRIMITIVES, *_PRIMITIVES, *_LOGICAL, *named))

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self.any(depth - 1)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self.any(depth - 1)}

    def _optional(self, depth: int) -> Any:
        inner = self.any(depth - 1)
        if isinstance(inner, list) or inner == "null":
            inner = "string"
        return ["null", inner] if self._rng.randrange(2) else [inner, "null"]

    def _union(self, depth: int) -> Any:
        simple = self._rng.sample(_PRIMITIVES, self._rng.randrange(1, 4))
        complex_types = (self._array(depth - 1), self._map(depth - 1), self.record(depth - 1))
        return [*simple, *self._rng.sample(complex_types, self._rng.randrange(3))]

    def _recursion(self, _depth: int) -> Any:
        return ["null", self._rng.choice(self._open)] if self._open else "long"


class ValueMaker:
    """Writes values of a schema. Types refer to others by name."""

    def __init__(self, rng: random.Random, named: dict[str, Any]) -> None:
        self._rng = rng
        self._named = named

    def value(self, schema: Any, depth: int = 6) -> bytes:  # noqa: C901, PLR0911 - one for each type
        """A random value."""
        rng = self._rng
        schema = self._named.get(schema, {"type": schema}) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            is_deep = depth <= 0 and "null" in schema
            branch = schema.index("null") if is_deep else rng.randrange(len(schema))
            return varint(branch) + self.value(schema[branch], depth - 1)
        match schema["type"]:
            case "null":
                return b""
            case "boolean":
                return bytes([rng.randrange(2)])
            case "int" | "long" as kind:
                return varint(self._number(schema, _INT if kind == "int" else _LONG))
            case "float":
                return struct.pack("<f", rng.choice((0.5, -0.0, float("inf"), 1e-45)))
            case "double":
                return struct.pack("<d", rng.choice(_NUMBERS))
            case "bytes":
                size = rng.choice((0, 1, 5, 15)) if "logicalType" in schema else rng.choice((0, 1, 40))
                return _sized(rng.randbytes(size))
            case "string":
                return _sized(rng.choice(_TEXTS).encode())
            case "fixed":
                return rng.randbytes(schema["size"])
            case "enum":
                return varint(rng.randrange(len(schema["symbols"])))
            case "array" | "map":
                return self._blocks(schema, depth)
            case _:
                return b"".join(self.value(field["type"], depth - 1) for field in schema["fields"])

    def _number(self, schema: Any, limit: int) -> int:
        low, high = _RANGES.get(schema.get("logicalType", "").removeprefix("local-"), (-limit, limit - 1))
        if schema.get("logicalType", "").startswith("time-"):
            low, high = 0, 86_399_999
        return self._rng.choice((low, high, max(low, min(high, 0)), max(low, -1), self._rng.randint(low, high)))

    def _blocks(self, schema: Any, depth: int) -> bytes:
        data = b""
        for _ in range(self._rng.choice((0, 1, 1, 2)) if depth > 0 else 0):
            count = self._rng.randrange(1, 4)
            items = b"".join(self._item(schema, depth - 1) for _ in range(count))
            # A negative count means that the size of the block follows.
            data += (varint(-count) + varint(len(items)) if self._rng.randrange(3) == 0 else varint(count)) + items
        return data + b"\0"

    def _item(self, schema: Any, depth: int) -> bytes:
        if schema["type"] == "array":
            return self.value(schema["items"], depth)
        key = f"{self._rng.choice(_TEXTS)}{self._rng.random()}"  # no key twice
        return _sized(key.encode()) + self.value(schema["values"], depth)


def varint(number: int) -> bytes:
    """A zigzag varint."""
    zigzag = (number << 1) ^ (number >> 63)
    data = bytearray()
    while zigzag >= 0x80:
        data.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    data.append(zigzag)
    return bytes(data)


def mutated(rng: random.Random, value: bytes) -> bytes:
    """A value with bytes changed, added, or cut off."""
    data = bytearray(value)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                del data[place:]
            case 1:
                data[place:place] = rng.randbytes(rng.randrange(1, 4))
            case 2:
                data[place : place + 1] = rng.choice(
                    (b"\x00", b"\x01", b"\x02", b"\x7f", b"\x80", b"\xff" * 9, b"\xc3")
                )
            case _:
                del data[place : place + 1]
    return bytes(data)


def framed(schema_id: int, body: bytes) -> bytes:
    """A body with the frame of Confluent's serializers."""
    return b"\0" + schema_id.to_bytes(4, "big") + body


def _sized(data: bytes) -> bytes:
    return varint(len(data)) + data
