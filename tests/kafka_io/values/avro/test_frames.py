"""Avro values of a single schema: plain ones, single objects, and those with the frames of other registries."""

import io
import json
import random
import uuid
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.fingerprint import fingerprint
from kafka_io.values.avro.frames import SchemaPrefix
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.decoding import DecodedValues
from tests.kafka_io.values.avro.making import SchemaMaker, ValueMaker, framed
from tests.oracles import avro as oracle

# fault F14

CLICK: dict[str, Any] = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "id", "type": "long"}, {"name": "page", "type": ["null", "string"]}],
}
AVRO = parse_avro(json.dumps(CLICK))
OTHER = parse_avro('"int"')
GLUE, AZURE = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", "0123456789abcdef0123456789abcdef"
FRAMES = {
    "": b"",
    "single_object": b"\xc3\1" + fingerprint(AVRO),
    f"glue:{GLUE}": b"\3\0" + uuid.UUID(GLUE).bytes,
    f"azure:{AZURE}": b"\0\0\0\0" + AZURE.encode(),
}
BODY = b"\x0e\2\4hi"


def decode(frame: str, *values: bytes | None) -> DecodedValues:
    decoded = AvroDecoder(columns_of_avro(AVRO), AVRO, frame).decode(pa.array([*values], pa.binary()))
    decoded.rows.validate(full=True)
    return decoded


def reason(frame: str, value: bytes) -> str:
    [failure] = decode(frame, value).failures
    return failure.reason


@pytest.mark.parametrize("frame", FRAMES)
def test_the_body_after_a_frame_is_decoded_with_the_only_schema(frame: str) -> None:
    values = [FRAMES[frame] + BODY, None, FRAMES[frame] + b"\x0f\0", FRAMES[frame] + BODY[:-1]]
    decoded = decode(frame, *values)
    assert decoded.rows.to_pylist()[:3] == [
        {"id": 7, "page": "hi"},
        {"id": None, "page": None},
        {"id": -8, "page": None},
    ]
    assert ([failure.row for failure in decoded.failures], decoded.unknown_schemas) == ([3], frozenset())


@pytest.mark.parametrize("frame", FRAMES)
def test_values_of_a_sliced_array_are_decoded(frame: str) -> None:
    values = pa.array([b"other", FRAMES[frame] + BODY, None], pa.binary()).slice(1)
    decoded = AvroDecoder(columns_of_avro(AVRO), AVRO, frame).decode(values)
    assert (decoded.rows.column("id").to_pylist(), decoded.failures) == ([7, None], [])
    assert AvroDecoder(columns_of_avro(AVRO), AVRO, frame).decode(values.slice(2)).rows.num_rows == 0


def test_a_single_object_of_fastavro_is_decoded() -> None:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, CLICK, {"id": 7, "page": "hi"})
    crc = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(CLICK), "CRC-64-AVRO")
    assert decode("single_object", b"\xc3\1" + bytes.fromhex(crc) + stream.getvalue()).rows.to_pylist() == [
        {"id": 7, "page": "hi"}
    ]
    assert decode("", stream.getvalue()).rows.to_pylist() == [{"id": 7, "page": "hi"}]


def test_a_value_with_another_schema_is_refused_with_both_names() -> None:
    own, other = fingerprint(AVRO), fingerprint(OTHER)
    assert reason("single_object", b"\xc3\1" + other + BODY) == (
        f"the value has the fingerprint {other.hex()}, and the schema of `avro_file` has {own.hex()}"
    )
    assert reason(f"glue:{GLUE}", b"\3\0" + bytes(16) + BODY) == (
        f"the value has the UUID 00000000-0000-0000-0000-000000000000, and the schema of `avro_file` has {GLUE}"
    )
    assert reason(f"azure:{AZURE}", b"\0\0\0\0" + 32 * b"f" + BODY) == (
        f"the value has the id {32 * 'f'}, and the schema of `avro_file` has {AZURE}"
    )


def test_a_value_without_its_frame_is_refused() -> None:
    assert reason("single_object", BODY) == (
        "the value is not a single object of Avro: its first bytes are not C3 01 and an id"
    )
    assert reason("single_object", b"") == reason("single_object", b"\xc3\1") == reason("single_object", BODY)
    assert reason(f"glue:{GLUE}", b"\3\5" + uuid.UUID(GLUE).bytes + BODY) == (
        "the value has the frame of AWS Glue's registry and is compressed, which is not supported"
    )
    assert "a value of Azure's registry: its first bytes are not 00 00 00 00 and" in reason(f"azure:{AZURE}", BODY)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("single_object", "a single object of Avro"),
        (f"glue:{GLUE}", "a value of AWS Glue's registry"),
        (f"azure:{AZURE}", "a value of Azure's registry"),
    ],
)
def test_a_plain_value_that_does_not_decode_and_looks_framed_says_so(frame: str, words: str) -> None:
    assert reason("", FRAMES[frame] + BODY).endswith(f"; the value begins as {words} does, see `avro_frame`")
    assert "avro_frame" not in reason("", BODY[:-1])


def test_a_plain_value_that_begins_as_a_frame_does_is_decoded() -> None:
    assert decode("", b"\xc3\1\2\x10" + bytes(8)).rows.to_pylist() == [{"id": -98, "page": "\0" * 8}]


@pytest.mark.parametrize("frame", ["", "single_object"])
@pytest.mark.parametrize("seed", range(20))
def test_values_of_any_schema_are_decoded_as_with_the_frame_of_a_registry(seed: int, frame: str) -> None:
    rng = random.Random(seed)
    schema = SchemaMaker(rng).record()
    avro = parse_avro(json.dumps(schema))
    columns = columns_of_avro(avro)
    values = ValueMaker(rng, dict(oracle.parse(schema).named))
    bodies = [values.value(schema) for _ in range(20)]
    prefix = b"\xc3\1" + fingerprint(avro) if frame else b""
    registered = AvroDecoder(columns, {7: avro}).decode(pa.array([framed(7, body) for body in bodies], pa.binary()))
    local = AvroDecoder(columns, avro, frame).decode(pa.array([prefix + body for body in bodies], pa.binary()))
    assert local.rows.equals(registered.rows)
    assert [failure.row for failure in local.failures] == [failure.row for failure in registered.failures]


@settings(deadline=None)
@given(values=st.lists(st.none() | st.binary(max_size=40), max_size=8), frame=st.sampled_from([*FRAMES]))
def test_any_bytes_have_a_body_or_a_failure(values: list[bytes | None], frame: str) -> None:
    values += [FRAMES[frame] + value for value in values if value is not None]
    frames = SchemaPrefix(frame, AVRO).frames(pa.array(values, pa.binary()))
    failed = {failure.row for failure in frames.failures}
    for row, value in enumerate(values):
        has_frame = value is not None and value.startswith(FRAMES[frame])
        assert (frames.ids[row] == 0) == (frames.starts[row] >= 0) == has_frame
        assert (row in failed) == (value is not None and not has_frame)
