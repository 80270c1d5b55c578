"""Bytes as arrays, integers of the protocol, and copies of bytes."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from kafka_io.jit.compiling import device_function, merged

ByteArray = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

BAD_POSITION = -1  # the position after an invalid varint


def read_only(data: bytes | bytearray | memoryview) -> ByteArray:
    """`data` as an array for kernels, without a copy.

    It is read-only even if `data` is writable, because numba compiles a kernel again for each kind of array.
    """
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array


@device_function
def uint32(data: ByteArray, position: int) -> int:
    """A big-endian uint32."""
    value = np.int64(0)
    for i in range(4):
        value = (value << 8) | np.int64(data[position + i])
    return int(value)


@device_function
def int32(data: ByteArray, position: int) -> int:
    """A big-endian int32."""
    value = uint32(data, position)
    return value - (1 << 32) if value >= 1 << 31 else value


@device_function
def int64(data: ByteArray, position: int) -> int:
    """A big-endian int64."""
    # Only the upper half is signed, so no intermediate value overflows an int64, with or without the compiler.
    return (int32(data, position) << 32) | uint32(data, position + 4)


@device_function
def varint(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A zigzag int32 before `end`: (value, position after it), or a value and BAD_POSITION.

    Zigzag maps 0, -1, 1, -2 ... to 0, 1, 2, 3 ..., so small negative numbers are short. Five bytes hold 35 bits: a
    value that needs more than 32 is invalid.
    """
    value, position = unsigned_varint(data, position, end, 5)
    if value > 0xFFFFFFFF:
        return 0, BAD_POSITION
    return int((value >> 1) ^ -(value & 1)), position


@device_function
def varlong(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A zigzag int64 before `end`: (value, position after it), or a value and BAD_POSITION.

    Nine bytes hold 63 bits, and the tenth holds the last bit. The 64 bits do not fit into a signed int64, so the sign
    bit of the zigzag value is merged into the halved value instead.
    """
    low, after = unsigned_varint(data, position, end, 9)
    tenth = position + 9
    if after >= 0 or tenth >= end or data[tenth] > 1:
        return int((low >> 1) ^ -(low & 1)), after
    half = (low >> 1) | (np.int64(data[tenth]) << 62)
    return int(half ^ -(low & 1)), tenth + 1


@device_function
def unsigned_varint(data: ByteArray, position: int, end: int, max_bytes: int) -> tuple[int, int]:
    """An unsigned varint: (value, position after it), or the bits so far and BAD_POSITION if it does not end in time.

    Each byte holds seven bits, the lowest first; a set high bit means that another byte follows.
    """
    value = np.int64(0)
    for i in range(max_bytes):
        if position >= end:
            return int(value), BAD_POSITION
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return int(value), position
    return int(value), BAD_POSITION


@device_function
def wrapped_sum(left: int, right: int) -> int:
    """Sum of two int64 that wraps around as in Java.

    Timestamp deltas of a corrupt batch may overflow. Python's integers do not wrap, so the two halves are added
    separately.
    """
    low = (left & 0xFFFFFFFF) + (right & 0xFFFFFFFF)
    high = (left >> 32) + (right >> 32) + (low >> 32)
    high = ((high + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    return (high << 32) | (low & 0xFFFFFFFF)


@device_function
def clear_bit(bits: ByteArray, index: int) -> None:
    """Clear a bit of an Arrow bitmap, where the lowest bit of a byte comes first."""
    bits[index >> 3] &= ~(1 << (index & 7)) & 0xFF


def copy(source: ByteArray, start: int, size: int, target: ByteArray, position: int) -> None:
    """Copy `size` bytes of `source` from `start` to `position` in `target`."""
    target[position : position + size] = source[start : start + size]


@intrinsic  # numba passes the types of the arguments and requires these names
def _memcpy(_context: Any, source: Any, start: Any, size: Any, target: Any, position: Any) -> tuple[Any, Any]:  # noqa: ARG001
    """memcpy: 200 bytes take 4 ns. The slice assignment above takes 67 ns, because it must allow overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from_, from_index, count, to, to_index = arguments
        begin = builder.gep(context.make_array(signature.args[0])(context, builder, from_).data, [from_index])
        into = builder.gep(context.make_array(signature.args[3])(context, builder, to).data, [to_index])
        cgutils.raw_memcpy(builder, into, begin, count, 1)  # type: ignore[no-untyped-call] # numba is untyped
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64), generate


@overload(copy, inline="always")
def _compiled_copy(source: Any, start: Any, size: Any, target: Any, position: Any) -> Any:  # noqa: ARG001 - as above
    def call_memcpy(source: Any, start: Any, size: Any, target: Any, position: Any) -> Any:
        _memcpy(source, start, size, target, position)  # type: ignore[call-arg] # numba adds the context

    return call_memcpy


def little_int64(data: ByteArray, position: int) -> int:
    """A little-endian int64."""
    return int.from_bytes(data[position : position + 8].tobytes(), "little", signed=True)


@intrinsic
def _load(_context: Any, data: Any, position: Any) -> tuple[Any, Any]:  # noqa: ARG001 - as above
    """Eight bytes in one load instruction; combining them byte by byte takes several times as long."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        address = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [index])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.int64(data, types.int64), generate


@overload(little_int64, inline="always")
def _compiled_little_int64(data: Any, position: Any) -> Any:  # noqa: ARG001 - as above
    def call_load(data: Any, position: Any) -> Any:
        return _load(data, position)  # type: ignore[call-arg] # numba adds the context

    return call_load


@device_function
def little_int32(data: ByteArray, position: int) -> int:
    """A little-endian int32."""
    value = np.int64(0)
    for i in range(4):
        value |= np.int64(data[position + i]) << (8 * i)
    return int(value) - (1 << 32) if value >= 1 << 31 else int(value)


@merged
def float_of_bits(bits: int) -> float:
    """The 32-bit float whose bits are those of this int32."""
    return float(np.int32(bits).view(np.float32))


@device_function
def place_of(number: int, numbers: Int64s, first: int, last: int) -> int:
    """The place of a number in the part from `first` to `last` of `numbers`, which is in ascending order; or -1."""
    low = first
    high = last
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < last and numbers[low] == number else -1
