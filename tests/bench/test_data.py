"""The generated records are the same in every run and have the size of their case."""

import json
from itertools import islice

import pyarrow as pa
import pytest

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from tests.bench import data
from tests.bench.cases import ALL, AVRO, Case
from tests.bench.orders import COLUMNS, FIELDS, schema_of


def test_orders_in_avro_are_the_same_in_every_run_and_have_their_columns() -> None:
    first, second = (list(islice(data.values(AVRO), 20)) for _ in range(2))
    assert first == second
    schema = parse_avro(json.dumps(schema_of(FIELDS)))
    columns = columns_of_avro(schema)
    assert dict(zip(columns.names, columns.types, strict=True)) == dict(zip(COLUMNS.names, COLUMNS.types, strict=True))
    decoded = AvroDecoder(columns, {data.SCHEMA_ID: schema}).decode(pa.array(first, pa.binary()))
    assert (list(decoded.failures), len(set(decoded.rows["id"].to_pylist()))) == ([], 20)


def test_an_event_is_json_and_the_same_in_every_run() -> None:
    assert json.loads(data.event(41))["id"] == 1_000_000_041
    assert data.event(41) == data.event(41)
    assert data.event(41) != data.event(42)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_values_are_of_about_the_size_of_the_case(case: Case) -> None:
    value = next(data.values(case))
    assert case.format == "avro" or json.loads(value)
    assert 0.9 * case.value_bytes <= len(value) <= 1.1 * case.value_bytes
