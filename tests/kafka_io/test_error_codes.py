"""Every error code of 0.7 becomes one exception, and says which it was."""

import json

import pytest

from kafka_io.error_codes import V07, check
from kafka_io.errors import BrokerError, OffsetOutOfRange, Where
from tests.golden_v07 import WIRE

WHERE = Where(topic="clicks", partition="0-1", offset=41)
EXPECTED: dict[int, type[BrokerError]] = {
    -1: BrokerError,
    1: OffsetOutOfRange,
    2: BrokerError,
    3: BrokerError,
    4: BrokerError,
}


def test_the_table_has_the_rows_this_test_knows() -> None:  # W14
    assert V07.keys() == EXPECTED.keys()


@pytest.mark.parametrize("code", sorted(EXPECTED))
def test_a_known_code_becomes_its_exception(code: int) -> None:  # W14
    with pytest.raises(BrokerError) as caught:
        check(code, WHERE)
    error = caught.value
    assert (type(error), error.code, error.where, error.retriable) == (EXPECTED[code], code, WHERE, False)
    assert error.reason == f"{V07[code].sentence} (error {code} {V07[code].name})"


@pytest.mark.parametrize("code", [999, -2, 5, 2**15 - 1])
def test_an_unknown_code_keeps_its_number(code: int) -> None:  # W13
    with pytest.raises(BrokerError, match=rf"\(error {code} \?\)") as caught:
        check(code, WHERE)
    assert (caught.value.code, caught.value.where, caught.value.retriable) == (code, WHERE, False)


def test_zero_is_no_error() -> None:
    check(0, WHERE)


def test_the_table_knows_every_code_a_genuine_broker_sent() -> None:  # W14
    records = [record for file in WIRE.glob("*.json") for record in json.loads(file.read_text())]
    codes = {(record.get("response") or {}).get("error_code") for record in records}
    assert codes - {None, 0} <= V07.keys()
    assert codes & {-1, 1, 3}
