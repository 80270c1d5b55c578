"""The odd cases of Avro have the rows that they promise."""

import json

import pyarrow as pa
import pytest

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.columns import grow
from tests.fuzz.odd_avro import BAD, OddAvro, odd_avro_cases
from tests.kafka_io.values.avro.making import framed


# faults A12, E02
@pytest.mark.parametrize("case", list(odd_avro_cases()), ids=lambda case: case.name)
def test_an_odd_value_has_its_row_or_is_a_bad_record(case: OddAvro) -> None:
    schema = parse_avro(json.dumps(case.schema))
    decoder = AvroDecoder(grow(pa.schema([]), columns_of_avro(schema)), {1: schema})
    decoded = decoder.decode(pa.array([framed(1, body) for body in case.bodies], pa.binary()))
    bad = {failure.row for failure in decoded.failures}
    rows = [BAD if row in bad else content["x"] for row, content in enumerate(decoded.rows.to_pylist())]
    assert list(map(repr, rows)) == list(map(repr, case.expected))
