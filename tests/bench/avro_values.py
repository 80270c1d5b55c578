"""Measures the CPU of decoding Avro values, beside fastavro and pyarrow: `python -m tests.bench.avro_values`.

The record has 17 fields and about 200 bytes. All variants run in each round, in random order, and only ratios within a
round are bounded. Exit code 1: a bound does not hold.
"""

import io
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import pyarrow as pa

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from tests.bench.judging import missed_ratios
from tests.bench.orders import FIELDS, framed, order, schema_of

_VALUES, _SLOW_VALUES, _ROUNDS = 60_000, 3_000, 7
_BAD_EVERY = 1000

BOUNDS = (
    ("one schema", "fastavro and pyarrow", 1 / 25),
    ("two schemas that alternate", "one schema", 1.15),
    ("one bad value in 1,000", "one schema", 1.1),
)
"""A variant takes at most so many times the CPU of another."""


def main() -> None:
    """Measure, print, and compare with the bounds."""
    rounds = measure(_VALUES, _SLOW_VALUES, _ROUNDS)
    medians = {name: statistics.median(round_[name] for round_ in rounds) for name in rounds[0]}
    for name, nanoseconds in medians.items():
        _say(f"{name}: {nanoseconds:,.0f} ns per value, {nanoseconds / medians['one schema']:.2f} of one schema")
    missed = list(missed_ratios(rounds, BOUNDS))
    for bound in missed:
        _say(f"bound: {bound}")
    sys.exit(bool(missed))


def measure(values: int, slow_values: int, rounds: int) -> list[dict[str, float]]:
    """CPU nanoseconds per value, by variant, in each round after a first one."""
    old, new = schema_of(FIELDS), schema_of({**_without("score"), "price": "int", "extra": ["null", "string"]})
    rng = random.Random(7)
    records = [order(rng) for _ in range(values)]
    first = [framed(1, old, record) for record in records]
    second = [framed(2, new, {**record, "price": 3, "extra": "more"}) for record in records]
    arrays = {
        "one schema": first,
        "two schemas that alternate": [(first, second)[row % 2][row] for row in range(values)],
        "one bad value in 1,000": [value[:-3] if row % _BAD_EVERY == 7 else value for row, value in enumerate(first)],
    }
    variants: dict[str, tuple[Callable[[], Any], int]] = {}
    schemas = {1: parse_avro(json.dumps(old)), 2: parse_avro(json.dumps(new))}
    for name, bodies in arrays.items():
        decoder, array = AvroDecoder(columns_of_avro(schemas[1]), schemas), pa.array(bodies, pa.binary())
        variants[name] = (lambda decoder=decoder, array=array: decoder.decode(array), values)  # type: ignore[misc]
    variants["fastavro and pyarrow"] = (lambda: _by_fastavro(old, first[:slow_values]), slow_values)
    times: list[dict[str, float]] = []
    for _ in range(rounds + 1):
        times.append({})
        # What ran before leaves its traces in the caches.
        for name, (run, count) in rng.sample(list(variants.items()), len(variants)):
            start = time.process_time()
            run()
            times[-1][name] = (time.process_time() - start) / count * 1e9
    return times[1:]


def _by_fastavro(schema: Any, values: Sequence[bytes]) -> pa.Table:
    parsed = fastavro.parse_schema(schema)
    return pa.Table.from_pylist([fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed) for value in values])


def _without(name: str) -> dict[str, Any]:
    return {key: kind for key, kind in FIELDS.items() if key != name}


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
