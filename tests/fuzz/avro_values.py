"""Random Avro schemas with values, half of them mutated, and the law that decoding them keeps."""

import json
import math
import random
from typing import Any

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.decoding import DecodedValues
from tests.fuzz.sized import joined, parted
from tests.kafka_io.values.avro.making import SchemaMaker, ValueMaker, framed, mutated
from tests.oracles import avro as oracle

_MOST_VALUES = 30


def mutated_values(rng: random.Random) -> bytes:
    """A schema as a line of JSON, and values of it, each after its size."""
    maker = SchemaMaker(rng)
    schema = maker.record() if rng.randrange(4) else maker.any(2)
    values = ValueMaker(rng, dict(oracle.parse(schema).named))
    bodies = [values.value(schema) for _ in range(rng.randrange(1, _MOST_VALUES))]
    mixed = (mutated(rng, body) if rng.randrange(2) else body for body in bodies)
    return json.dumps(schema).encode() + b"\n" + joined(mixed)


def read_values(data: bytes, _limits: DecodeLimits) -> None:
    """Only decode."""
    decode(*_parts(data))


def check_values(data: bytes, _rng: random.Random) -> str:
    """Check that each value has the row of the oracle, or fails if the oracle refuses it.

    Returns "read" if no value failed, else "refused".
    """
    return check_rows(*_parts(data))


def check_rows(schema: Any, bodies: list[bytes]) -> str:
    """The same law for a schema as JSON and the bodies of its values."""
    decoded = decode(schema, bodies)
    failed = {failure.row for failure in decoded.failures}
    judge = oracle.parse(schema)
    for row, body in enumerate(bodies):
        expected = expected_row(judge, decoded.rows.schema.names, body)
        try:
            actual = None if row in failed else row_of(decoded, row)
        except OverflowError:  # Python has no such date
            assert expected is not None
            continue
        assert same(actual, expected), f"row {row} is {actual}, and not {expected}"
    return "refused" if failed else "read"


def decode(schema: Any, bodies: list[bytes]) -> DecodedValues:
    """The rows of these bodies; those of failed values are null."""
    avro = parse_avro(json.dumps(schema))
    values = pa.array([framed(1, body) for body in bodies], pa.binary())
    decoded = AvroDecoder(columns_of_avro(avro), {1: avro}).decode(values)
    decoded.rows.validate(full=True)
    assert decoded.rows.num_rows == len(bodies)
    for failure in decoded.failures:
        assert failure.reason.isprintable()
        assert not any(column[failure.row].is_valid for column in decoded.rows.columns)
    return decoded


def row_of(decoded: DecodedValues, row: int) -> dict[str, Any]:
    """A row by column."""
    if not decoded.rows.num_columns:
        return {}
    [cells] = decoded.rows.slice(row, 1).to_pylist()
    return dict(cells)


def expected_row(schema: oracle.Schema, names: list[str], body: bytes) -> dict[str, Any] | None:
    """The row of a body by the specification; None if it is refused."""
    try:
        row = schema.row(body)
    except oracle.Refused:
        return None
    return dict.fromkeys(names) if row is None else row


def same(left: Any, right: Any) -> bool:
    """Whether two rows are equal; NaN equals NaN, and 0.0 does not equal -0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right and type(left) is type(right))


def _parts(data: bytes) -> tuple[Any, list[bytes]]:
    """The schema and the bodies."""
    line, _, joined_bodies = data.partition(b"\n")
    return json.loads(line), parted(joined_bodies)
