"""Random Avro schemas and values of every type, written by the specification."""

import math
import random
import struct
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.oracles import avro as oracle

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
    {"type": "string", "logicalType": "uuid"},
)  # fmt: skip
_RANGES = {
    "date": _DAYS,
    "timestamp-millis": (_MICROS[0] // 1000, _MICROS[1] // 1000),
    "timestamp-micros": _MICROS,
    "timestamp-nanos": (-_LONG, _LONG - 1),
}
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_TEXTS = ("", "a", "ab\n", "\u20ac", "\U0001f600 smile", "plain ascii of some length", "\x00")
_NAMESPACES = ("", "a", "a.b")
_MOST_DIGITS = 38
_NUMBERS = (0.0, -0.0, 1.5, -1e300, 5e-324, float("inf"), float("-inf"), 0.1)


class SchemaMaker:
    """Makes schemas as JSON.

    Args:
        rng: the source of randomness.
        has_namespaces: named types are in several namespaces, of which each has the same names, and later fields refer
            to types that earlier ones declare. Then a part of the schema is not a schema of its own.
    """

    def __init__(self, rng: random.Random, *, has_namespaces: bool = False) -> None:
        self._rng = rng
        self._has_namespaces = has_namespaces
        self._names: Counter[str] = Counter()
        self._namespace = ""
        self._open: list[str] = []
        self._declared: list[str] = []

    def record(self, depth: int = 3) -> dict[str, Any]:
        """A record with up to five fields; it may contain itself."""
        name, outer_namespace = self._declaration(), self._namespace
        self._open.append(self._declared.pop())
        self._namespace = self._open[-1].rpartition(".")[0]
        fields = [{"name": f"f{place}", "type": self.any(depth - 1)} for place in range(self._rng.randrange(6))]
        self._declared.append(self._open.pop())
        self._namespace = outer_namespace
        return {"type": "record", **name, "fields": fields}

    def any(self, depth: int) -> Any:
        """Any type, at most so deep."""
        makers: list[Callable[[int], Any]] = [self._leaf] * 4
        if depth > 0:
            makers += [self._array, self._map, self._optional, self._union, self.record, self._recursion]
            makers += [self._reference] if self._has_namespaces else []
        return self._rng.choice(makers)(depth)

    def leaf(self) -> Any:
        """A type without other types inside it."""
        return self._leaf(0)

    def _name(self) -> str:
        """A name that no type has, without a namespace."""
        self._names[""] += 1
        return f"N{self._names['']}"

    def _declaration(self) -> dict[str, str]:
        """A name that no type has, in one of the forms that a declaration can have."""
        if not self._has_namespaces:
            self._declared.append(self._name())
            return {"name": self._declared[-1]}
        namespace = self._rng.choice((self._namespace, *_NAMESPACES))
        self._names[namespace] += 1
        name = f"N{self._names[namespace]}"
        self._declared.append(f"{namespace}.{name}" if namespace else name)
        forms = [{"name": name, "namespace": namespace}]
        if namespace:  # a name with a dot is full, whatever the namespace is
            forms += [{"name": self._declared[-1]}, {"name": self._declared[-1], "namespace": "ignored"}]
        if namespace == self._namespace:
            forms.append({"name": name})
        return self._rng.choice(forms)

    def _leaf(self, _depth: int) -> Any:
        makers: list[Callable[[], Any]] = [self._primitive] * 16 + [self._logical] * 10 + [self._named] * 4
        return self._rng.choice([*makers, self._decimal, self._decimal])()

    def _primitive(self) -> str:
        return self._rng.choice(_PRIMITIVES)

    def _logical(self) -> Any:
        return self._rng.choice(_LOGICAL)

    def _named(self) -> Any:
        """An enum or a fixed type."""
        kinds: tuple[dict[str, Any], ...] = (
            {"type": "fixed", "size": self._rng.choice((0, 1, 3, 20))},
            {"type": "fixed", "size": 12, "logicalType": "duration"},
            {"type": "fixed", "size": 16, "logicalType": "uuid"},
            {"type": "enum", "symbols": ["RED", "GREEN", "A_LONGER_SYMBOL"]},
        )
        return {**self._rng.choice(kinds), **self._declaration()}

    def _decimal(self) -> Any:
        """A decimal in bytes or in a fixed type, whose precision can be greater than a column has."""
        rng = self._rng
        kind: dict[str, Any] = {"type": "bytes"}
        most_digits = _MOST_DIGITS + 9
        if rng.randrange(2):
            size = rng.randrange(1, 21)
            kind = {"type": "fixed", **self._declaration(), "size": size}
            most_digits = math.floor(math.log10(2) * (8 * size - 1))
        precision = rng.choice((rng.randint(1, most_digits), min(most_digits, _MOST_DIGITS)))
        scale = rng.choice((0, rng.randint(0, min(precision, _MOST_DIGITS))))
        return {**kind, "logicalType": "decimal", "precision": precision, **({"scale": scale} if scale else {})}

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self.any(depth - 1)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self.any(depth - 1)}

    def _optional(self, depth: int) -> Any:
        known = len(self._declared)
        inner = self.any(depth - 1)
        if isinstance(inner, list) or inner == "null":
            del self._declared[known:]
            inner = "string"
        return ["null", inner] if self._rng.randrange(2) else [inner, "null"]

    def _union(self, depth: int) -> Any:
        simple = self._rng.sample(_PRIMITIVES, self._rng.randrange(1, 4))
        makers = self._rng.sample((self._array, self._map, self.record), self._rng.randrange(3))
        named = [self._named() for _ in range(self._rng.randrange(2))]
        return [*simple, *(maker(depth - 1) for maker in makers), *named]

    def _recursion(self, _depth: int) -> Any:
        """A reference to a record around it."""
        return ["null", self._referred(self._rng.choice(self._open))] if self._open else "long"

    def _reference(self, _depth: int) -> Any:
        """A reference to a type that was declared before."""
        return self._referred(self._rng.choice(self._declared)) if self._declared else "long"

    def _referred(self, full_name: str) -> str:
        """A name that refers to a type; "long" if the namespace around it allows none."""
        namespace, _, name = full_name.rpartition(".")
        if namespace == self._namespace:
            return self._rng.choice((name, full_name))
        return full_name if namespace else "long"


class ValueMaker:
    """Writes values of a schema. Types refer to others by name. Bytes with `"content": "text"` are texts.

    Args:
        rng: the source of randomness.
        named: the types by name.
        is_odd: some values are those that columns just do not hold, and keys of maps occur twice.
    """

    def __init__(self, rng: random.Random, named: dict[str, Any], *, is_odd: bool = False) -> None:
        self._rng = rng
        self._named = named
        self._odds = 12 if is_odd else 0

    def value(self, schema: Any) -> bytes:
        """A random value."""
        return self._value(oracle.parse(schema).root, 6)

    def _value(self, schema: Any, depth: int) -> bytes:  # noqa: C901, PLR0911, PLR0912 - one for each type
        rng = self._rng
        schema = self._named.get(schema, {"type": schema}) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            is_deep = depth <= 0 and "null" in schema
            branch = schema.index("null") if is_deep else rng.randrange(len(schema))
            return varint(branch) + self._value(schema[branch], depth - 1)
        match schema["type"]:
            case "null":
                return b""
            case "boolean":
                return bytes([rng.randrange(2)])
            case "int" | "long" as kind:
                return varint(self._number(schema, _INT if kind == "int" else _LONG))
            case "float" | "double" as kind if self._is_odd():
                return struct.pack(f"<{kind[0]}", math.nan)
            case "float":
                return struct.pack("<f", rng.choice((0.5, -0.0, float("inf"), 1e-45)))
            case "double":
                return struct.pack("<d", rng.choice(_NUMBERS))
            case "bytes" | "fixed" if schema.get("logicalType") == "decimal":
                return self._digits(schema)
            case "bytes" if schema.get("content") != "text":
                return _sized(rng.randbytes(rng.choice((0, 1, 40))))
            case "string" if schema.get("logicalType") == "uuid":
                return _sized(str(uuid.UUID(int=rng.getrandbits(128))).encode())
            case "string" | "bytes":
                return _sized(rng.choice(_TEXTS).encode())
            case "fixed":
                return rng.randbytes(schema["size"])
            case "enum":
                return varint(rng.randrange(len(schema["symbols"])))
            case "array" | "map":
                return self._blocks(schema, depth)
            case _:
                return b"".join(self._value(field["type"], depth - 1) for field in schema["fields"])

    def _is_odd(self) -> bool:
        return bool(self._odds) and not self._rng.randrange(self._odds)

    def _number(self, schema: Any, limit: int) -> int:
        low, high = _RANGES.get(schema.get("logicalType", "").removeprefix("local-"), (-limit, limit - 1))
        if schema.get("logicalType", "").startswith("time-"):
            low, high = 0, 86_399_999
        if self._is_odd():
            return self._rng.choice((max(low - 1, -limit), min(high + 1, limit - 1)))
        return self._rng.choice((low, high, max(low, min(high, 0)), max(low, -1), self._rng.randint(low, high)))

    def _digits(self, schema: Any) -> bytes:
        """A decimal that has the precision of its type, and that a column holds."""
        limit = 10 ** min(schema["precision"], _MOST_DIGITS + self._is_odd()) - 1
        digits = self._rng.choice((0, 1, -1, limit, -limit, self._rng.randint(-limit, limit)))
        if schema["type"] == "fixed":
            return digits.to_bytes(schema["size"], "big", signed=True)
        fewest = (digits if digits >= 0 else ~digits).bit_length() // 8 + 1
        size = fewest + self._rng.choice((0, 0, 1, 20))
        return _sized(digits.to_bytes(self._rng.choice((0, size)) if digits == 0 else size, "big", signed=True))

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
            return self._value(schema["items"], depth)
        distinct = "" if self._odds else self._rng.random()
        key = f"{self._rng.choice(_TEXTS)}{distinct}"
        return _sized(key.encode()) + self._value(schema["values"], depth)


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
