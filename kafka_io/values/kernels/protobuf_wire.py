"""The wire format of Protobuf: tags, numbers and lengths, and values that are skipped.

A tag is a varint: the number of a field times 8, and its wire type. Nothing here reads a byte at `end` or after it.
"""

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int64s, unsigned_varint
from kafka_io.values.kernels.column_buffers import OK
from kafka_io.values.kernels.protobuf_program import (
    BAD_GROUP,
    BAD_LENGTH,
    BAD_NUMBER,
    BAD_TAG,
    BAD_TIME,
    BAD_WIRE,
    CUT,
    FIXED32,
    FIXED64,
    GROUP,
    GROUP_END,
    LENGTH,
    MAX_DEPTH,
    SKIPPED_GROUP,
    TOO_DEEP,
    VARINT,
    WRONG_WIRE,
)

LOW_32, SIGN_32 = 0xFFFFFFFF, 1 << 31
_INT64_MIN = -(1 << 63)
_FIRST_SECOND, _LAST_SECOND, _LONGEST_SECONDS = -62_135_596_800, 253_402_300_799, 315_576_000_000
_SECOND_NS = 1_000_000_000


@device_function
def read_tag(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A varint of at most 32 bits: (value, position after it), or a value and BAD_POSITION."""
    value, position = unsigned_varint(data, position, end, 5)
    return value, position if value <= LOW_32 else BAD_POSITION


@device_function
def read_size(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A length of bytes before `end`: (length, position after it), or a value and BAD_POSITION."""
    size, position = read_tag(data, position, end)
    if position != BAD_POSITION and size > end - position:
        return size, BAD_POSITION
    return size, position


@device_function
def read_varint(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A varint of 64 bits as an int64: (value, position after it), or a value and BAD_POSITION."""
    value, after = unsigned_varint(data, position, end, 9)
    tenth = position + 9
    if after != BAD_POSITION or tenth >= end or data[tenth] >= 0x80:
        return value, after
    # The tenth byte has the last bit.
    return value + _INT64_MIN if data[tenth] & 1 else value, tenth + 1


@device_function
def skip_value(  # noqa: PLR0912 - one branch for each wire type
    data: ByteArray, position: int, end: int, number: int, wire: int, depth: int, stack: Int64s
) -> tuple[int, int]:
    """Skip a value: (position after it, or a status as a negative number; end of what is inside, if it is a group)."""
    groups = 0
    inside_end = position
    while True:
        if wire == VARINT:
            _, position = read_varint(data, position, end)
            if position == BAD_POSITION:
                return -BAD_NUMBER, inside_end
        elif wire == FIXED64:
            position += 8
        elif wire == FIXED32:
            position += 4
        elif wire == LENGTH:
            size, position = read_size(data, position, end)
            if position == BAD_POSITION:
                return -BAD_LENGTH, inside_end
            position += size
        elif wire == GROUP:
            if depth + groups >= MAX_DEPTH:
                return -TOO_DEEP, inside_end
            stack[groups, SKIPPED_GROUP] = number
            groups += 1
        elif wire == GROUP_END:
            if groups == 0 or stack[groups - 1, SKIPPED_GROUP] != number:
                return -BAD_GROUP, inside_end
            groups -= 1
        else:
            return -BAD_WIRE, inside_end
        if position > end:
            return -CUT, inside_end
        if groups == 0:
            return position, inside_end
        if position == end:
            return -CUT, inside_end
        inside_end = position
        tag, position = read_tag(data, position, end)
        if position == BAD_POSITION or tag < 8:
            return -BAD_TAG, inside_end
        number = tag >> 3
        wire = tag & 7


@device_function
def read_time(
    data: ByteArray, position: int, end: int, is_duration: bool, depth: int, stack: Int64s
) -> tuple[int, int]:
    """A Timestamp or Duration: (status, microseconds)."""
    seconds = 0
    nanos = 0
    while position < end:
        tag, position = read_tag(data, position, end)
        if position == BAD_POSITION or tag < 8:
            return BAD_TAG, seconds
        number = tag >> 3
        wire = tag & 7
        if number <= 2 and wire != VARINT:
            return WRONG_WIRE, seconds
        if number == 1:
            seconds, position = read_varint(data, position, end)
        elif number == 2:
            nanos, position = read_varint(data, position, end)
        else:
            position, _ = skip_value(data, position, end, number, wire, depth + 1, stack)
            if position < 0:
                return -position, seconds
        if position == BAD_POSITION:
            return BAD_NUMBER, seconds
    nanos = ((nanos & LOW_32) ^ SIGN_32) - SIGN_32
    if is_duration:
        is_bad = seconds < -_LONGEST_SECONDS or seconds > _LONGEST_SECONDS or nanos <= -_SECOND_NS
        is_bad = is_bad or nanos >= _SECOND_NS or (seconds < 0 < nanos) or (nanos < 0 < seconds)
    else:
        is_bad = seconds < _FIRST_SECOND or seconds > _LAST_SECOND or nanos < 0 or nanos >= _SECOND_NS
    if is_bad:
        return BAD_TIME, seconds
    return OK, seconds * 1_000_000 + nanos // 1000
