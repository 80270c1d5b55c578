"""JSON documents, whole and mutated: a decoder gives the row of Python's own json, or refuses what it refuses."""

import json
import random
from functools import cache
from typing import Any

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.json.decoder import JsonDecoder
from tests.oracles import json_values

_UTC = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema(
    {
        "id": pa.int64(),
        "real": pa.float64(),
        "price": pa.decimal128(38, 2),
        "text": pa.string(),
        "flag": pa.bool_(),
        "day": pa.date32(),
        "at": _UTC,
        "data": pa.binary(),
        "lines": pa.list_(pa.struct({"sku": pa.string(), "count": pa.int64()})),
        "map": pa.map_(pa.string(), pa.float64()),
    }
)
_TEXTS = ("", "a", "é€😀", 'quote " and \\', "line\n\x00", "x" * 40)
_BROKEN = (b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"e9", b"\x00")


@cache
def _decoder() -> JsonDecoder:
    """One decoder for all inputs, so that each of them finds the memory of the one before."""
    return JsonDecoder(COLUMNS)


def mutated_documents(rng: random.Random) -> bytes:
    """A few documents for the columns, one per line; most have bytes changed."""
    return b"\n".join(with_broken_bytes(document(rng), rng).replace(b"\n", b" ") for _ in range(rng.randrange(1, 4)))


def document(rng: random.Random) -> bytes:
    """A document with some of the columns; some of its values do not fit."""
    members: dict[str, Any] = {
        "id": rng.choice((0, -1, 2**63 - 1, 2**63, rng.getrandbits(62))),
        "real": rng.choice((0.1 + 0.2, 1e308, 5e-324, 7, rng.random() * 10 ** rng.randrange(-30, 30))),
        "price": rng.choice((1.25, "12.30", 10**30, 0.001)),
        "text": rng.choice(_TEXTS),
        "flag": rng.choice((True, False, None)),
        "day": f"20{rng.randrange(100):02d}-{rng.randrange(14):02d}-{rng.randrange(33):02d}",
        "at": f"2024-02-{rng.randrange(1, 32):02d}T{rng.randrange(25):02d}:00:00{rng.choice(('Z', '+01:30', ''))}",
        "data": rng.choice(("", "AP8=", "AP8", "!!!!")),
        "lines": [{"sku": rng.choice(_TEXTS), "count": rng.randrange(9)} for _ in range(rng.randrange(3))],
        "map": {rng.choice(_TEXTS): rng.random() for _ in range(rng.randrange(3))},
        "other": {"deep": [[{}], None]},
    }
    names = rng.sample(list(members), rng.randrange(len(members) + 1))
    document = json.dumps({name: members[name] for name in names}, ensure_ascii=rng.random() < 0.5)
    if names and not rng.randrange(8):  # a key that occurs twice
        document = f"{document[:-1]}, {json.dumps({names[0]: None})[1:]}"
    return document.encode()


def with_broken_bytes(text: bytes, rng: random.Random) -> bytes:
    """The text with up to five places overwritten by what breaks JSON."""
    data = bytearray(text)
    for _ in range(rng.choice((0, 0, 1, 2, 5))):
        place = rng.randrange(len(data) + 1)
        data[place : place + rng.randrange(3)] = rng.choice(_BROKEN)
    return bytes(data)


def read_documents(data: bytes, _limits: DecodeLimits) -> None:
    """Only decode."""
    _decoder().decode(pa.array(data.split(b"\n"), pa.binary()))


def check_documents(data: bytes, _rng: random.Random) -> str:
    """Check that each line gives the oracle's row, or is refused with a reason; returns "read" or "refused"."""
    values = data.split(b"\n")
    decoded = _decoder().decode(pa.array(values, pa.binary()))
    decoded.rows.validate(full=True)
    refused = {failure.row for failure in decoded.failures}
    assert len(decoded.rows) == len(values)
    for row, (value, cells) in enumerate(zip(values, decoded.rows.to_pylist(), strict=True)):
        try:
            expected = json_values.row(value, COLUMNS)
        except json_values.Refused:
            expected = dict.fromkeys(COLUMNS.names)
            assert row in refused, value
        else:
            assert row not in refused, value
        assert cells == expected, value
    return "refused" if refused else "read"
