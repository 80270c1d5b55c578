"""Memory serves again when nothing points to it any more, and never before."""

import pytest

from kafka_io.records.memory_pool import PooledMemory


def test_memory_goes_back_when_the_loan_and_its_buffers_are_gone() -> None:
    loan = PooledMemory(5000)
    place = loan.bytes.ctypes.data
    buffer = loan.buffer(10)
    loan.bytes[:10] = 7
    del loan
    others = [PooledMemory(5000) for _ in range(20)]
    assert place not in {other.bytes.ctypes.data for other in others}
    assert buffer.to_pybytes() == b"\7" * 10
    del buffer
    again = PooledMemory(8000)
    assert again.bytes.ctypes.data == place


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 100_000])
def test_a_loan_is_at_least_as_large_as_asked_for(size: int) -> None:
    assert size <= len(PooledMemory(size).bytes) <= max(4096, 2 * size)


def test_what_is_too_large_to_keep_is_lent_all_the_same() -> None:
    assert len(PooledMemory(100 * 1024 * 1024).bytes) == 128 * 1024 * 1024
