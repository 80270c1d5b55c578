"""The measurement of Avro decoding has a figure for each variant of each round; its bounds find a slower decoder."""

from tests.bench import avro_values
from tests.bench.judging import missed_ratios

QUIET = {
    "one schema": 300.0,
    "two schemas that alternate": 340.0,
    "one bad value in 1,000": 320.0,
    "fastavro and pyarrow": 13_000.0,
}


def test_every_variant_is_measured() -> None:
    rounds = avro_values.measure(50, 50, 2)
    assert len(rounds) == 2
    for round_ in rounds:
        assert set(round_) == {name for first, second, _ in avro_values.BOUNDS for name in (first, second)}
        assert min(round_.values()) > 0


def test_a_slower_machine_misses_no_bound() -> None:  # fault F16
    slower = {name: nanoseconds * 3 for name, nanoseconds in QUIET.items()}
    assert list(missed_ratios([QUIET, slower], avro_values.BOUNDS)) == []


def test_only_a_bound_that_does_not_hold_is_named() -> None:
    assert list(missed_ratios([{**QUIET, "one bad value in 1,000": 340.0}], avro_values.BOUNDS)) == [
        "one bad value in 1,000: 1.133 of the CPU of one schema in the best round, and not 1.100 at most"
    ]


def test_a_decoder_of_twice_the_time_is_named() -> None:
    slower = {name: nanoseconds * (1 if "fastavro" in name else 2) for name, nanoseconds in QUIET.items()}
    assert list(missed_ratios([slower], avro_values.BOUNDS)) == [
        "one schema: 0.046 of the CPU of fastavro and pyarrow in the best round, and not 0.040 at most"
    ]
