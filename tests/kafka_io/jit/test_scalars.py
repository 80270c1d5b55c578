"""Integers and varints of the protocol at all limits, also with the compiler off. Invalid varints are refused."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_io.jit import scalars
from kafka_io.jit.scalars import BAD_POSITION, read_only
from kafka_io.records.build import _varint

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@settings(deadline=None)
@given(number=INT32)
@example(-(2**31))
@example(2**31 - 1)
def test_an_int32_is_big_endian(number: int) -> None:
    data = read_only(b"x" + number.to_bytes(4, "big", signed=True))
    assert scalars.int32(data, 1) == number
    assert scalars.uint32(data, 1) == number % 2**32


@settings(deadline=None)
@given(number=INT64)
@example(-(2**63))
@example(2**63 - 1)
@example(-1)
def test_an_int64_is_big_endian(number: int) -> None:
    assert scalars.int64(read_only(number.to_bytes(8, "big", signed=True)), 0) == number


@settings(deadline=None)
@given(number=INT32)
@example(-(2**31))
@example(2**31 - 1)
def test_every_int32_can_be_read_from_its_varint(number: int) -> None:
    data = b"x" + _varint(number)
    assert scalars.varint(read_only(data), 1, len(data)) == (number, len(data))


@settings(deadline=None)
@given(number=INT64)
@example(-(2**63))
@example(2**63 - 1)
def test_every_int64_can_be_read_from_its_varlong(number: int) -> None:
    data = b"x" + _varint(number)
    assert scalars.varlong(read_only(data), 1, len(data)) == (number, len(data))


# fault R11
@pytest.mark.parametrize("data", [b"\xff" * 5 + b"\x00", b"\xff\xff\xff\xff\x10", b"\x80" * 11, b"", b"\x80"])
def test_an_incomplete_or_too_large_varint_is_invalid(data: bytes) -> None:
    assert scalars.varint(read_only(data), 0, len(data))[1] == BAD_POSITION


# fault R11
@pytest.mark.parametrize("data", [b"\xff" * 10 + b"\x00", b"\xff" * 9 + b"\x02", b"\x80" * 11, b"", b"\x80" * 9])
def test_an_incomplete_or_too_large_varlong_is_invalid(data: bytes) -> None:
    assert scalars.varlong(read_only(data), 0, len(data))[1] == BAD_POSITION


@settings(deadline=None)
@given(left=INT64, right=INT64)
@example(2**63 - 1, 1)
@example(-(2**63), -1)
@example(2**63 - 1, -(2**63))
def test_a_sum_wraps_as_in_java(left: int, right: int) -> None:
    assert scalars.wrapped_sum(left, right) == (left + right + 2**63) % 2**64 - 2**63
