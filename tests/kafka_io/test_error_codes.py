"""Every error code of every generation becomes one exception with its number and whether it is retriable."""

import json
import pickle

import pytest

from kafka_io.error_codes import ErrorCode, ErrorCode07, KafkaErrorCode
from kafka_io.errors import (
    AuthorizationFailed,
    BrokerBusy,
    BrokerError,
    CoordinatorMoved,
    LeaderMoved,
    OffsetOutOfRange,
    Where,
)
from tests.golden_messages import load
from tests.golden_v07 import WIRE

WHERE = Where(topic="clicks", partition="0-1", offset=41)
EXPECTED: dict[int, type[BrokerError]] = {
    -1: BrokerError,
    1: OffsetOutOfRange,
    2: BrokerError,
    3: BrokerError,
    4: BrokerError,
}
# What Kafka's own clients think of each code: name, whether to try again, whether to read metadata before.
KAFKA: dict[int, tuple[str, bool, bool]] = {code: (name, *kind) for code, name, *kind in load("errors") if code != 0}
# The retriable codes after which the client must look up the leader or the coordinator again.
COORDINATOR = {15, 16}
# Kafka's clients ask the same broker again until it knows the new leader (75), or look the controller up on their own
# account (41).
LEADER = {code for code, (_, _, refresh) in KAFKA.items() if refresh} | {41, 75}
AUTHORIZATION = {29, 30, 31, 53, 65}


def kind_of(code: int) -> type[BrokerError]:
    """The expected exception for a code from 0.8 on."""
    if code in COORDINATOR:
        return CoordinatorMoved
    if code in LEADER:
        return LeaderMoved
    if code in AUTHORIZATION:
        return AuthorizationFailed
    if code == 1:
        return OffsetOutOfRange
    return BrokerBusy if KAFKA[code][1] else BrokerError


def test_the_table_has_exactly_the_expected_codes() -> None:  # fault W14
    assert set(ErrorCode07) == EXPECTED.keys()


@pytest.mark.parametrize("code", sorted(EXPECTED))
def test_a_known_code_becomes_its_exception(code: int) -> None:  # fault W14
    with pytest.raises(BrokerError) as raised:
        ErrorCode07.check(code, WHERE)
    error = raised.value
    assert (type(error), error.code, error.where, error.retriable) == (EXPECTED[code], code, WHERE, False)
    row = next(row for row in ErrorCode07 if row == code)
    assert error.reason == f"{row.sentence} (error {code} {row.name})"


def test_every_code_of_kafka_4_1_is_in_the_table_under_its_name() -> None:  # fault W14
    names = {code.value: code.name for code in ErrorCode if code is not ErrorCode.NONE}
    assert names == {code: name for code, (name, _, _) in KAFKA.items()}


def test_every_code_has_its_own_sentence() -> None:
    for codes in (ErrorCode07, ErrorCode):
        sentences = [code.sentence for code in codes]
        assert len(set(sentences)) == len(sentences)
        assert all(sentence.isascii() and not sentence.endswith(".") for sentence in sentences)


@pytest.mark.parametrize("code", sorted(KAFKA))
def test_a_code_is_retriable_if_kafkas_own_clients_retry_it(code: int) -> None:  # fault W14
    with pytest.raises(BrokerError) as raised:
        ErrorCode.check(code, WHERE)
    error = raised.value
    assert (type(error), error.retriable) == (kind_of(code), KAFKA[code][1])
    assert error.reason == f"{ErrorCode[KAFKA[code][0]].sentence} (error {code} {KAFKA[code][0]})"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, copy.where, str(copy)) == (type(error), code, WHERE, str(error))


@pytest.mark.parametrize("code", [999, -2, 134, 2**15 - 1])
@pytest.mark.parametrize("codes", [ErrorCode07, ErrorCode], ids=["0.7", "modern"])
def test_an_unknown_code_keeps_its_number(code: int, codes: type[KafkaErrorCode]) -> None:  # fault W13
    with pytest.raises(BrokerError, match=rf"\(error {code} \?\)") as raised:
        codes.check(code, WHERE)
    assert (raised.value.code, raised.value.where, raised.value.retriable) == (code, WHERE, False)


def test_code_zero_is_no_error() -> None:
    ErrorCode07.check(0, WHERE)
    ErrorCode.check(0, WHERE)


def test_the_table_has_every_code_that_a_genuine_broker_sent() -> None:  # fault W14
    records = [record for file in WIRE.glob("*.json") for record in json.loads(file.read_text())]
    codes = {(record.get("response") or {}).get("error_code") for record in records}
    assert codes - {None, 0} <= set(ErrorCode07)
    assert codes & {-1, 1, 3}
