"""Random Protobuf schemas with values, half of them mutated, and the law that decoding them keeps."""

import json
import random
from typing import Any

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.decoding import DecodedValues
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.decoder import ProtobufDecoder
from kafka_io.values.protobuf.descriptors import ProtobufSchema, parse_protobuf
from tests.kafka_io.values.avro.making import mutated
from tests.kafka_io.values.protobuf.making import MessageMaker, ProtoMaker
from tests.oracles import protobuf as oracle

_SIZE_BYTES = 4
_MOST_VALUES = 30


def mutated_messages(rng: random.Random) -> bytes:
    """The text of a `.proto` file in one line, and messages of its first type, each after its size."""
    text = ProtoMaker(rng).text()
    message = parse_protobuf(text).message_at((0,))
    maker = MessageMaker(rng)
    data = text.encode() + b"\n"
    for _ in range(rng.randrange(1, _MOST_VALUES)):
        body = maker.body(message)
        body = mutated(rng, body) if rng.randrange(2) else body
        data += len(body).to_bytes(_SIZE_BYTES, "big") + body
    return data


def read_messages(data: bytes, _limits: DecodeLimits) -> None:
    """Only decode."""
    decode(*_parts(data))


def check_messages(data: bytes, _rng: random.Random) -> str:
    """Check that each value has the row of google.protobuf, or fails if that refuses it.

    Returns "read" if no value failed, else "refused".
    """
    schema, bodies = _parts(data)
    decoded = decode(schema, bodies)
    check_rows(schema, bodies, decoded)
    return "refused" if decoded.failures else "read"


def decode(schema: ProtobufSchema, bodies: list[bytes]) -> DecodedValues:
    """The rows of these bodies; those of failed values are null."""
    values = pa.array(bodies, pa.binary())
    decoded = ProtobufDecoder(columns_of_protobuf(schema), schema).decode(values)
    decoded.rows.validate(full=True)
    assert decoded.rows.num_rows == len(bodies)
    for failure in decoded.failures:
        assert failure.reason.isprintable()
        assert not any(column[failure.row].is_valid for column in decoded.rows.columns)
    return decoded


def check_rows(schema: ProtobufSchema, bodies: list[bytes], decoded: DecodedValues) -> None:
    """Check the rows of bodies of the schema's first message type."""
    message = schema.message_at((0,))
    failed = {failure.row: failure.reason for failure in decoded.failures}
    for row, body in enumerate(bodies):
        try:
            expected: Any = oracle.row(message, body)
        except oracle.Refused:
            assert row in failed, f"row {row} is not refused: {body.hex()}"
            continue
        if not oracle.is_strict(message, body):
            # What is wrong may be in a part that a later one replaces, and then both are right.
            assert row in failed or oracle.usual_form(message, body) != body
            if row in failed:
                continue
        assert row not in failed, f"row {row} is refused: {failed[row]}: {body.hex()}"
        actual = decoded.rows.slice(row, 1).to_pylist()[0] if decoded.rows.num_columns else {}
        assert oracle.same(actual, expected, json.loads), f"row {row} is {actual}, and not {expected}: {body.hex()}"


def _parts(data: bytes) -> tuple[ProtobufSchema, list[bytes]]:
    """The schema and the bodies."""
    line, _, remaining = data.partition(b"\n")
    bodies = []
    while remaining:
        size = int.from_bytes(remaining[:_SIZE_BYTES], "big")
        bodies.append(remaining[_SIZE_BYTES : _SIZE_BYTES + size])
        remaining = remaining[_SIZE_BYTES + size :]
    return parse_protobuf(line.decode()), bodies
