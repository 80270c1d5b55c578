"""The measurement of Avro decoding has a figure for each variant, and says which bound does not hold."""

from tests.bench import avro_values


def test_every_variant_is_measured() -> None:
    measured = avro_values.measure(50, 50, 1)
    assert set(measured) == {name for first, second, _ in avro_values.BOUNDS for name in (first, second)}
    assert min(measured.values()) > 0


def test_only_a_bound_that_does_not_hold_is_named() -> None:
    measured = {
        "one schema": 300.0,
        "two schemas that alternate": 340.0,
        "one bad value in 1,000": 340.0,
        "fastavro and pyarrow": 15_000.0,
    }
    assert avro_values.missed_bounds(measured) == [
        "one bad value in 1,000 takes 1.1333 of the CPU of one schema, and not 1.1000 at most"
    ]


def test_a_value_that_takes_too_long_is_named() -> None:
    measured = dict.fromkeys(("two schemas that alternate", "one bad value in 1,000", "one schema"), 301.0)
    assert avro_values.missed_bounds({**measured, "fastavro and pyarrow": 15_000.0}) == [
        "one schema takes 301 ns per value, and not 300 at most"
    ]
