"""A batch of an idempotent producer is stored once and in order (KIP-98)."""

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from tests.kafka_io.testing.modern.log.conftest import OpenLog
from tests.kafka_io.testing.modern.talk import batch

LAST_SEQUENCE = 2**31 - 1


def test_a_repeated_batch_gets_the_offset_of_the_stored_one(open_log: OpenLog) -> None:
    log = open_log()
    sequences = range(0, 15, 3)
    offsets = [log.append(batch(3, producer=(7, 0, sequence))) for sequence in sequences]
    repeated_offsets = [log.append(batch(3, producer=(7, 0, sequence))) for sequence in sequences]
    assert (repeated_offsets, log.end) == (offsets, 15)


def test_sequence_numbers_are_restored_when_the_log_is_opened(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=10)
    for sequence in (0, 3):
        log.append(batch(3, producer=(7, 0, sequence)))
    log.close()
    reopened_log = open_log()
    assert reopened_log.append(batch(3, producer=(7, 0, 3))) == 3
    assert reopened_log.append(batch(3, producer=(7, 0, 6))) == 6


@pytest.mark.parametrize(
    ("producer", "code"),
    [
        ((7, 1, 4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # a batch is missing
        ((7, 1, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # neither the same nor the next
        ((7, 2, 3), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # a new epoch begins at 0
        ((7, 0, 3), ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_batch_out_of_order_is_refused(open_log: OpenLog, producer: tuple[int, int, int], code: ErrorCode) -> None:
    log = open_log()
    log.append(batch(3, producer=(7, 1, 0)))
    with pytest.raises(BrokerError) as caught:
        log.append(batch(3, producer=producer))
    assert (caught.value.code, log.end) == (code, 3)


def test_the_sequence_number_after_the_largest_one_is_0(open_log: OpenLog) -> None:
    log = open_log()
    log.append(batch(3, producer=(7, 0, LAST_SEQUENCE - 2)))
    assert log.append(batch(1, producer=(7, 0, 0))) == 3


def test_each_producer_has_its_own_sequence_numbers(open_log: OpenLog) -> None:
    log = open_log()
    assert [log.append(batch(1, producer=(producer_id, 0, 0))) for producer_id in (1, 2, -1, -1)] == [0, 1, 2, 3]
