"""Memory is reused only after nothing refers to it any more."""

import pytest

from kafka_io.jit.memory_pool import PooledMemory


def test_memory_is_reused_only_after_its_buffers_are_released() -> None:  # fault S12
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
def test_memory_has_at_least_the_requested_size(size: int) -> None:
    assert size <= len(PooledMemory(size).bytes) <= max(4096, 2 * size)


def test_memory_that_is_too_large_for_the_pool_is_allocated() -> None:
    assert len(PooledMemory(100 * 1024 * 1024).bytes) == 128 * 1024 * 1024


def test_memory_is_reused_for_the_same_purpose_only() -> None:
    keys = PooledMemory(5000, "keys")
    place = keys.bytes.ctypes.data
    del keys
    values = PooledMemory(5000, "values")
    again = PooledMemory(5000, "keys")
    assert again.bytes.ctypes.data == place != values.bytes.ctypes.data
