"""What all kernels are made of: numbers of the wire, and copies."""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from kafka_io.records.compiling import part

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NOWHERE = -1  # where a varint ends that cannot be read


@part
def uint32(data: Bytes, at: int) -> int:
    """Big-endian."""
    value = np.int64(0)
    for i in range(4):
        value = (value << 8) | np.int64(data[at + i])
    return int(value)


@part
def int32(data: Bytes, at: int) -> int:
    """Big-endian."""
    value = uint32(data, at)
    return value - (1 << 32) if value >= 1 << 31 else value


@part
def int64(data: Bytes, at: int) -> int:
    """Big-endian."""
    # The upper half is signed: nothing overflows, also where Python's integers do not wrap.
    return (int32(data, at) << 32) | uint32(data, at + 4)


@part
def varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """A zigzag int32 of at most five bytes before `end`, and where it ends or NOWHERE."""
    value = np.int64(0)
    for i in range(5):
        if at >= end:
            return 0, NOWHERE
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                return 0, NOWHERE
            return int((value >> 1) ^ -(value & 1)), at
    return 0, NOWHERE


@part
def varlong(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """A zigzag int64 of at most ten bytes before `end`, and where it ends or NOWHERE."""
    low = np.int64(0)  # 63 bits; the tenth byte has the last
    for i in range(9):
        if at >= end:
            return 0, NOWHERE
        byte = np.int64(data[at])
        at += 1
        low |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return int((low >> 1) ^ -(low & 1)), at
    if at >= end or data[at] > 1:
        return 0, NOWHERE
    half = (low >> 1) | (np.int64(data[at]) << 62)
    return int(half ^ -(low & 1)), at + 1


@part
def wrapped_sum(left: int, right: int) -> int:
    """The sum of two int64 as Java has it, which wraps; in halves, for where Python's integers do not."""
    low = (left & 0xFFFFFFFF) + (right & 0xFFFFFFFF)
    high = (left >> 32) + (right >> 32) + (low >> 32)
    high = ((high + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    return (high << 32) | (low & 0xFFFFFFFF)


@part
def clear_bit(bits: Bytes, index: int) -> None:
    """In Arrow's order: the lowest bit of a byte comes first."""
    bits[index >> 3] &= ~(1 << (index & 7)) & 0xFF


def copy(source: Bytes, start: int, size: int, target: Bytes, at: int) -> None:
    """Copy `size` bytes of `source` from `start` on to `at` in `target`."""
    target[at : at + size] = source[start : start + size]


@intrinsic  # numba gives the types of the arguments, and wants their names
def _memcpy(_context: Any, source: Any, start: Any, size: Any, target: Any, at: Any) -> tuple[Any, Any]:  # noqa: ARG001
    """The machine's own copy: 200 bytes take 4 ns, and 67 as the slice above, which cannot rule out an overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from_, first, count, to, place = arguments
        begin = builder.gep(context.make_array(signature.args[0])(context, builder, from_).data, [first])
        into = builder.gep(context.make_array(signature.args[3])(context, builder, to).data, [place])
        cgutils.raw_memcpy(builder, into, begin, count, 1)  # type: ignore[no-untyped-call] # numba is untyped
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64), generate


@overload(copy, inline="always")
def _compiled_copy(source: Any, start: Any, size: Any, target: Any, at: Any) -> Any:  # noqa: ARG001 - as above
    def implementation(source: Any, start: Any, size: Any, target: Any, at: Any) -> Any:
        _memcpy(source, start, size, target, at)  # type: ignore[call-arg] # numba adds the context

    return implementation
