"""JSON documents with the frames of a schema registry, whole and mutated: the rows of the oracles of both."""

import random
from contextlib import suppress
from functools import cache

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.json.decoder import FramedJsonDecoder
from tests.fuzz.frames import FRAME_BYTES, schema_id_of
from tests.fuzz.json_values import COLUMNS, document, with_broken_bytes
from tests.fuzz.sized import joined, parted
from tests.kafka_io.values.avro.making import framed, mutated
from tests.oracles import json_values

_KNOWN = {1, 2, 70_000}
_UNKNOWN = (0, 3, 2**31 - 1)
_MOST_VALUES = 12


@cache
def _decoder() -> FramedJsonDecoder:
    """One decoder for all inputs, so that each of them finds the memory of the one before."""
    return FramedJsonDecoder(COLUMNS, _KNOWN)


def mutated_framed_documents(rng: random.Random) -> bytes:
    """A few framed documents; many have bytes changed, in the frame or in the document."""
    return joined(_value(rng) for _ in range(rng.randrange(1, _MOST_VALUES)))


def _value(rng: random.Random) -> bytes:
    number = rng.choice(_UNKNOWN) if not rng.randrange(6) else rng.choice(sorted(_KNOWN))
    value = framed(number, with_broken_bytes(document(rng), rng))
    return value if rng.randrange(4) else mutated(rng, value[: FRAME_BYTES + 1]) + value[FRAME_BYTES + 1 :]


def read_framed_documents(data: bytes, _limits: DecodeLimits) -> None:
    """Only decode."""
    _decoder().decode(pa.array(parted(data), pa.binary()))


def check_framed_documents(data: bytes, _rng: random.Random) -> str:
    """Check that each value gives the oracle's row, is refused, or has an unknown schema; in a slice of an array.

    Returns "read" if no value was refused, else "refused".
    """
    values = [*parted(data), None]
    decoded = _decoder().decode(pa.array([b"\0\0\0\0\1{}", *values], pa.binary()).slice(1))
    decoded.rows.validate(full=True)
    assert decoded.rows.num_rows == len(values)
    refused = [failure.row for failure in decoded.failures]
    assert refused == sorted(set(refused))
    unknown = set[int]()
    for row, (value, cells) in enumerate(zip(values, decoded.rows.to_pylist(), strict=True)):
        schema_id = None if value is None else schema_id_of(value)
        expected = None
        if value is None or (schema_id is not None and schema_id not in _KNOWN):
            expected = dict.fromkeys(COLUMNS.names)
            unknown |= set() if schema_id is None else {schema_id}
        elif schema_id is not None:
            with suppress(json_values.Refused):
                expected = json_values.row(value[FRAME_BYTES:], COLUMNS)
        assert (row in refused) == (expected is None), value
        assert cells == (expected or dict.fromkeys(COLUMNS.names)), value
    assert decoded.unknown_schemas == unknown
    return "refused" if refused else "read"
