"""Fingerprints of schemas are those that other programs write into single objects."""

import json
import random
from typing import Any

import pytest
from fastavro.schema import fingerprint as oracle
from fastavro.schema import to_parsing_canonical_form

from kafka_io.values.avro.fingerprint import canonical_form, fingerprint
from kafka_io.values.avro.schema import parse_avro
from tests.kafka_io.values.avro.making import SchemaMaker

# fault F14

VECTORS = {
    '"null"': 0x63DD24E7CC258F8A,
    '"boolean"': 0x9F42FC78A4D4F764,
    '"int"': 0x7275D51A3F395C8F,
    '"long"': 0xD054E14493F41DB7,
    '"float"': 0x4D7C02CB3EA8D790,
    '"double"': 0x8E7535C032AB957E,
    '"bytes"': 0x4FC016DAC3201965,
    '"string"': 0x8F014872634503C7,
    "[]": 0xEEC6E173D23FB9D1,
}
"""CRC-64-AVRO of schemas, from the file `schema-tests.txt` of Apache Avro, which has them as signed numbers."""


@pytest.mark.parametrize("text", VECTORS)
def test_fingerprints_are_those_of_avros_own_tests(text: str) -> None:
    assert fingerprint(parse_avro(text)) == VECTORS[text].to_bytes(8, "little")


@pytest.mark.parametrize(
    ("schema", "canonical"),
    [
        ({"type": "int", "logicalType": "date", "other": 1}, '"int"'),
        ({"type": {"type": "long"}}, '"long"'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, '"bytes"'),
        (
            {"size": 12, "logicalType": "duration", "name": "D", "type": "fixed", "aliases": ["E"]},
            '{"name":"D","type":"fixed","size":12}',
        ),
        (
            {"type": "fixed", "name": "a.D", "size": 8, "logicalType": "decimal", "precision": 9},
            '{"name":"a.D","type":"fixed","size":8}',
        ),
        (["null", {"type": "array", "items": {"type": "map", "values": "string"}}],
         '["null",{"type":"array","items":{"type":"map","values":"string"}}]'),
        (
            {"type": "record", "doc": "A list.", "name": "List", "namespace": "a.b", "fields": [
                {"name": "next", "type": ["null", "List"], "default": None, "doc": "The next one.", "order": "ignore"},
                {"name": "kind", "type": {"type": "enum", "name": "x.Kind", "symbols": ["A", "B"], "default": "A"}},
                {"name": "other", "type": "x.Kind"}]},
            ('{"name":"a.b.List","type":"record","fields":[{"name":"next","type":["null","a.b.List"]},'
            '{"name":"kind","type":{"name":"x.Kind","type":"enum","symbols":["A","B"]}},'
            '{"name":"other","type":"x.Kind"}]}'),
        ),
        ({"type": "error", "name": "E", "fields": []}, '{"name":"E","type":"record","fields":[]}'),
    ],
)  # fmt: skip
def test_the_canonical_form_has_only_what_decoding_needs(schema: Any, canonical: str) -> None:
    assert canonical_form(parse_avro(json.dumps(schema))) == canonical


@pytest.mark.parametrize("seed", range(60))
def test_canonical_forms_and_fingerprints_are_those_of_fastavro(seed: int) -> None:
    schema = SchemaMaker(random.Random(seed), has_namespaces=bool(seed % 2)).record()
    avro, canonical = parse_avro(json.dumps(schema)), to_parsing_canonical_form(schema)
    assert canonical_form(avro) == canonical
    assert fingerprint(avro).hex() == oracle(canonical, "CRC-64-AVRO")
