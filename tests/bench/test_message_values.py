"""The measurement of Protobuf and JSON has a figure for each variant, and says which bound does not hold."""

import random

from tests.bench import message_values
from tests.bench.message_values import BAD, ONE, TWO


def test_every_variant_is_measured() -> None:
    measured = message_values.measure(50, 1)
    assert {name: set(variants) for name, variants in measured.items()} == {
        "protobuf": {ONE, BAD, TWO},
        "json": {ONE, BAD},
    }


def test_all_values_decode_but_the_bad_ones() -> None:
    for make in (message_values._protobuf, message_values._json):
        for variant, (decoder, values) in make(random.Random(1), 50).items():
            decoded = decoder.decode(values)
            assert (len(decoded.failures), decoded.unknown_schemas) == (int(variant == BAD), frozenset())


def test_only_bounds_that_do_not_hold_are_named() -> None:
    measured = {"protobuf": {ONE: 601.0, BAD: 602.0, TWO: 720.0}, "json": {ONE: 900.0, BAD: 901.0}}
    assert message_values.missed_bounds(measured) == [
        "protobuf takes 601 ns per value, and not 600 at most",
        "protobuf, two schemas that alternate: 1.198 of one schema, and not 1.15 at most",
    ]
