"""Measures the CPU of decoding Protobuf and JSON values: `python -m tests.bench.message_values`.

The records have the fields of `avro_values`. All variants run in each round, in random order, and only ratios within a
round are bounded. What other libraries need to parse the same values is the measure of the machine. Exit code 1: a
bound does not hold.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from kafka_io.values.decoding import ValueDecoder
from kafka_io.values.json.decoder import JsonDecoder
from kafka_io.values.json.settings import columns_of_settings
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.decoder import ProtobufDecoder
from kafka_io.values.protobuf.descriptors import message_class, parse_protobuf
from tests.bench.judging import missed_ratios

_VALUES, _ROUNDS = 60_000, 7
_BAD_EVERY = 1000
_FRAME = 6  # the bytes before a message in Confluent's frame
_ORDER = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1; string customer = 2; string sku = 3; string note = 4; Status status = 5; int32 quantity = 6;
  double price = 7; double latitude = 8; double longitude = 9; google.protobuf.Timestamp at = 10;
  optional string coupon = 11; optional double score = 12; bool gift = 13; Address address = 14;
  repeated string tags = 15; int32 day = 16; string total = 17;
  enum Status { NEW = 0; PAID = 1; }
  message Address { string street = 1; optional int32 zip = 2; }
}"""
_OTHER_ORDER = _ORDER.replace("optional double score = 12;", "optional string extra = 18;")
_COLUMNS = {
    "id": "long", "customer": "string", "sku": "string", "note": "string", "status": "string", "quantity": "long",
    "price": "double", "latitude": "double", "longitude": "double", "at": "timestamp", "coupon": "string",
    "score": "double", "gift": "boolean", "address": "struct<street: string, zip: long>", "tags": "array<string>",
    "day": "date", "total": "decimal(38, 2)",
}  # fmt: skip

ONE, BAD, TWO = "one schema", "one bad value in 1,000", "two schemas that alternate"
PARSED = "parsed by another library"
"""Google's classes parse Protobuf and make no columns. Python's own module parses JSON."""
BOUNDS = {
    "protobuf": ((ONE, PARSED, 1 / 1.4), (BAD, ONE, 1.1), (TWO, ONE, 1.15)),
    "json": ((ONE, PARSED, 1 / 4), (BAD, ONE, 1.1)),
}
"""A variant takes at most so many times the CPU of another."""


def main() -> None:
    """Measure, print, and compare with the bounds."""
    missed = []
    for name, rounds in measure(_VALUES, _ROUNDS).items():
        medians = {variant: statistics.median(round_[variant] for round_ in rounds) for variant in rounds[0]}
        for variant, nanoseconds in medians.items():
            ratio = nanoseconds / medians[ONE]
            _say(f"{name}, {variant}: {nanoseconds:,.0f} ns per value, {ratio:.2f} of one schema")
        missed += [f"{name}, {bound}" for bound in missed_ratios(rounds, BOUNDS[name])]
    for bound in missed:
        _say(f"bound: {bound}")
    sys.exit(bool(missed))


def measure(values: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """CPU nanoseconds per value, by format: of each variant, in each round after a first one."""
    rng = random.Random(7)
    variants = {("protobuf", name): made for name, made in _protobuf(rng, values).items()}
    variants |= {("json", name): made for name, made in _json(rng, values).items()}
    runs: dict[tuple[str, str], Callable[[], object]] = {
        name: partial(decoder.decode, array) for name, (decoder, array) in variants.items()
    }
    message = message_class(parse_protobuf(_ORDER).message("Order"))
    bodies = [value.as_py()[_FRAME:] for value in variants["protobuf", ONE][1]]
    documents = [value.as_py() for value in variants["json", ONE][1]]
    runs["protobuf", PARSED] = lambda: [message.FromString(body) for body in bodies]
    runs["json", PARSED] = lambda: list(map(json.loads, documents))
    times: dict[str, list[dict[str, float]]] = {"protobuf": [], "json": []}
    for _ in range(rounds + 1):
        for of_format in times.values():
            of_format.append({})
        for (format_, variant), run in rng.sample(list(runs.items()), len(runs)):
            start = time.process_time()
            run()
            times[format_][-1][variant] = (time.process_time() - start) / values * 1e9
    return {format_: of_format[1:] for format_, of_format in times.items()}


def _protobuf(rng: random.Random, values: int) -> dict[str, tuple[ValueDecoder, pa.BinaryArray]]:
    schemas = {1: parse_protobuf(_ORDER), 2: parse_protobuf(_OTHER_ORDER)}
    classes = {id_: message_class(schema.message("Order")) for id_, schema in schemas.items()}
    columns = columns_of_protobuf(schemas[1])
    records = [_record(rng) for _ in range(values)]
    first = [_message(classes[1], 1, record) for record in records]
    second = [_message(classes[2], 2, {**record, "score": None, "extra": "more"}) for record in records]
    arrays = {ONE: first, BAD: _with_bad(first), TWO: [(first, second)[row % 2][row] for row in range(values)]}
    return {name: (ProtobufDecoder(columns, schemas), pa.array(bodies, pa.binary())) for name, bodies in arrays.items()}


def _message(kind: Any, schema_id: int, record: Mapping[str, Any]) -> bytes:
    message = kind(**{name: value for name, value in record.items() if name != "at" and value is not None})
    message.at.FromJsonString(record["at"])
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + bytes(message.SerializeToString())


def _json(rng: random.Random, values: int) -> dict[str, tuple[ValueDecoder, pa.BinaryArray]]:
    names = {"day": "2024-01-02", "status": "PAID"}
    documents = [json.dumps({**_record(rng), **names}).encode() for _ in range(values)]
    columns = columns_of_settings(_COLUMNS)
    arrays = {ONE: documents, BAD: _with_bad(documents)}
    return {name: (JsonDecoder(columns), pa.array(bodies, pa.binary())) for name, bodies in arrays.items()}


def _with_bad(values: Sequence[bytes]) -> list[bytes]:
    return [value[:-3] if row % _BAD_EVERY == 7 else value for row, value in enumerate(values)]


def _record(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.getrandbits(50),
        "customer": f"customer-{rng.randrange(10**9)}",
        "sku": f"SKU{rng.randrange(10**12):012d}",
        "note": "please deliver it to the neighbours next door",
        "status": rng.randrange(2),
        "quantity": rng.randrange(100),
        "price": rng.random() * 100,
        "latitude": round(rng.random(), 6),
        "longitude": round(rng.random(), 6),
        "at": f"2024-01-01T{rng.randrange(24):02d}:{rng.randrange(60):02d}:12.345Z",
        "coupon": rng.choice((None, "SUMMER")),
        "score": rng.choice((None, 0.5)),
        "gift": True,
        "address": {"street": f"Main street {rng.randrange(1000)}", "zip": rng.choice((None, 12345))},
        "tags": ["a-tag", "another", "third"][: rng.randrange(4)],
        "day": 20_000,
        "total": f"{rng.randrange(10**8) / 100:.2f}",
    }


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
