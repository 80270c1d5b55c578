"""Odd schemas and values of Avro, with the rows that a table must have for them, or None for a bad record.

Other tests can load each case and ask readers for its rows.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kafka_io.values.avro.making import varint

_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_EMPTY = {"type": "record", "name": "Empty", "fields": list[Any]()}
_OTHER = {**_EMPTY, "name": "Other"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OddAvro:
    """A schema with bodies of its values, and the content of its only field `x` in each row; BAD for a bad record."""

    name: str
    schema: Any
    bodies: Sequence[bytes]
    expected: Sequence[Any]


BAD = "a bad record"


def _case(name: str, kind: Any, *pairs: tuple[bytes, Any]) -> OddAvro:
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}
    return OddAvro(
        name=name, schema=schema, bodies=[body for body, _ in pairs], expected=[content for _, content in pairs]
    )


def odd_avro_cases() -> Iterator[OddAvro]:
    """All cases."""
    yield _case("no fields", ["null", _EMPTY], (b"\2", "{}"), (b"\0", None))
    members = {"member0": None, "member1": None}
    yield _case(
        "unions of no fields",
        [_EMPTY, _OTHER],
        (b"\0", {**members, "member0": "{}"}),
        (b"\2", {**members, "member1": "{}"}),
    )
    nan, minus_zero = struct.pack("<d", float("nan")), struct.pack("<d", -0.0)
    yield _case("numbers", "double", (nan, float("nan")), (minus_zero, -0.0))
    yield _case("lists", {"type": "array", "items": "double"}, (b"\0", []), (b"\2" + nan + b"\0", [float("nan")]))
    date = {"type": "int", "logicalType": "date"}
    yield _case("dates", date, (varint(_FIRST_DAY - 1), BAD), (varint(_LAST_DAY + 1), BAD))
    for logical in ("timestamp-micros", "local-timestamp-micros"):
        ends = varint(_FIRST_DAY * _DAY_US - 1), varint((_LAST_DAY + 1) * _DAY_US)
        yield _case(logical, {"type": "long", "logicalType": logical}, *((body, BAD) for body in ends))
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38}
    yield _case("decimals", decimal, (varint(17) + b"\1" + bytes(16), BAD))
    yield _case("texts", "string", (b"\2\0", "\0"), (b"\4\xc3\xbc", "\u00fc"), (b"\2\xff", BAD))
