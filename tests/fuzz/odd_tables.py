"""JSON documents and change events with odd names and values, loaded into tables: readers find all that they hold."""

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from kafka_io.records.decoded_batch import DecodeLimits
from tests.fuzz.sized import joined, parted
from tests.fuzz.tables import check_table

NAMES = (
    "a", "A", "b", "a.b", "a_b", "a\0b", "\0", "", " ", "x y", "a,b", "`", '"', "^a", "a*", "é", "É", "1", "a_2",
    "list", "element", "list.element", "member0", "key", "value", "date", "offset", "schema", "payload",
    "_error", "_raw", "_tombstone", "_kafka_offset", "_KAFKA_key_a", "__op", "__source", "value__op", "_deleted",
)  # fmt: skip
"""Names of keys: dots, NUL, case twins, reserved names, and names of members in files."""
SCALARS = (
    None, True, False, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 10**37, -(10**38), 10**40,
    0.5, -0.0, 0.1, 1e22, 5e-324, -1.7976931348623157e308,
    "", "a", "\0", "é€😀", "x" * 70, "\U0010ffff" * 65, "1", "null", "true", "2024-02-29", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
)  # fmt: skip
_DEEP = 20
_JSON, _DEBEZIUM = b"j", b"d"
_FORMATS: Mapping[bytes, Mapping[str, Any]] = {_JSON: {"format": "json"}, _DEBEZIUM: {"format": "debezium"}}
_OPS = ("c", "c", "u", "r", "d", "d", "t", "m")


def odd_loads(rng: random.Random) -> bytes:
    """The format, and the values of a few loads."""
    kind = rng.choice((_JSON, _DEBEZIUM))
    make = odd_object if kind == _JSON else odd_event
    loads = [
        joined(json.dumps(make(rng), ensure_ascii=rng.random() < 0.5).encode() for _ in range(rng.randrange(1, 4)))
        for _ in range(rng.randrange(1, 4))
    ]
    return kind + joined(loads)


def odd_object(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """An object with odd keys and values."""
    return {rng.choice(NAMES): _value(rng, depth - 1) for _ in range(rng.randrange(5))}


def _value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(6) if depth > 0 else 0
    if kind == 5:
        return odd_object(rng, depth)
    if kind == 4:
        return [_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 3 and not rng.randrange(5):
        return json.loads("[" * _DEEP + "1" + "]" * _DEEP)
    return rng.choice(SCALARS)


def odd_event(rng: random.Random) -> dict[str, Any]:
    """A change event with odd rows, some of them as text, in an envelope or in `payload`."""

    def row() -> Any:
        own = odd_object(rng, 2)
        return rng.choice((None, {}, own, own, own, json.dumps(own)))

    event = {
        "op": rng.choice(_OPS),
        "before": row(),
        "after": row(),
        "ts_ms": rng.choice((None, 0, 1_700_000_000_000)),
        "source": rng.choice((None, {}, {"lsn": 1}, odd_object(rng, 1))),
        "transaction": rng.choice((None, None, {}, {"id": "571", "total_order": 1})),
        "message": rng.choice((None, None, {"prefix": "p", "content": "Ymxh"})),
        "updateDescription": rng.choice((None, None, {"updatedFields": '{"a": 1}', "removedFields": ["b"]})),
    }
    event = {name: field for name, field in event.items() if name == "op" or rng.randrange(6)}
    return rng.choice((event, event, {"schema": None, "payload": event}))


def read_nothing(_data: bytes, _limits: DecodeLimits) -> None:
    """The other kinds of inputs measure the decoders."""


def check_odd_loads(data: bytes, _rng: random.Random, session: SparkSession | None = None) -> str:
    """Check that each row has what its value has, and that all readers find it by it.

    Returns "read" if all values were decoded, else "refused".
    """
    loads = [parted(load) for load in parted(data[1:])]
    rows = check_table(loads, _FORMATS[data[:1]], session=session)
    for value, row in zip((value for load in loads for value in load), rows, strict=True):
        own = {name: cell for name, cell in row.items() if not name.startswith("_kafka_")}
        if row["_error"] is None:
            kept = set(_leaves(own))
            lost = [leaf for leaf in _leaves(_content(data[:1], json.loads(value))) if leaf not in kept]
            assert not lost, f"{value!r} lost {lost}: {own}"
        else:
            assert row["_raw"] == value
    return "refused" if any(row["_error"] is not None for row in rows) else "read"


def _content(kind: bytes, document: Any) -> Any:
    """What of a value must be in its row."""
    if kind == _JSON:
        return document
    event = document if "op" in document else document["payload"]
    used, unused = ("before", "after") if event["op"] == "d" else ("after", "before")
    row = event.get(used)
    others = {name: field for name, field in event.items() if name not in {used, unused}}
    return {**others, used: json.loads(row) if isinstance(row, str) else row}


def _leaves(value: Any) -> Iterator[Any]:
    """The scalars in a value, also those in JSON texts, in a form in which equal numbers are equal."""
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
        with suppress(ValueError, RecursionError):
            inner = json.loads(value)
            yield from _leaves(inner) if inner != value else ()
    elif isinstance(value, int | float | Decimal):
        yield Decimal(repr(value) if isinstance(value, float) else value)
