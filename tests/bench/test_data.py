"""The generated records are the same in every run and have the size of their case."""

import json

import pytest

from tests.bench import data
from tests.bench.cases import ALL, Case


def test_an_event_is_json_and_the_same_in_every_run() -> None:
    assert json.loads(data.event(41))["id"] == 1_000_000_041
    assert data.event(41) == data.event(41)
    assert data.event(41) != data.event(42)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_values_are_json_of_about_the_size_of_the_case(case: Case) -> None:
    value = next(data.values(case))
    json.loads(value)
    assert 0.9 * case.value_bytes <= len(value) <= 1.1 * case.value_bytes
