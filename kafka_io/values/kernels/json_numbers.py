"""Numbers in JSON to integers, decimals, doubles and times of buffers.

A number that needs more than 18 digits is kept as text: Arrow turns all of them into numbers after the kernel.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, merged, subroutine
from kafka_io.jit.scalars import ByteArray, Int64s, copy
from kafka_io.values.kernels.column_buffers import (
    BYTES,
    CONTENT,
    FULL,
    ITEMS,
    OK,
    BufferArrays,
    put_end,
    put_number,
    put_pair,
    put_real,
    used_bytes,
)
from kafka_io.values.kernels.json_program import (
    CUT,
    DOCUMENT_NOTES,
    EXTRA,
    EXTRA2,
    INEXACT,
    NOT_AN_INTEGER,
    OUT_OF_RANGE,
    READ_DECIMAL,
    READ_EPOCH_DAYS,
    READ_LONG,
    ROUNDED,
    WRONG_TYPE,
    JsonProgram,
)
from kafka_io.values.kernels.json_texts import MANTISSA_DIGITS, MINUS, NINE, POINT, QUOTE, ZERO, scan_number
from kafka_io.values.kernels.times import DAY_US, FIRST_DAY, LAST_DAY

# Powers of ten that a double holds exactly, and the largest integer up to which it holds all.
_POWERS = np.array([10.0**power for power in range(23)])
_EXACT = 1 << 53
# The greatest double has 309 digits before its point; _MOST_MANTISSA is the first 18 of them. Half of the smallest
# double has 323 zeros after its point, and then the digits of _LEAST_MANTISSA.
_MOST_TOP, _MOST_MANTISSA = 309, 179_769_313_486_231_580
_LEAST_TOP, _LEAST_MANTISSA = -323, 247_032_822_920_623_272
DOUBLE_DIGITS = 17
"""A double keeps all digits of a number that has no more, in the sense that programs write it back like that."""
_INT64_TENTH, _INT64_MAX = (1 << 63) // 10, (1 << 63) - 1
_TENS = np.array([10**power for power in range(19)], np.int64)


@subroutine
def epoch(data: ByteArray, position: int, end: int, read: int, factor: int) -> tuple[int, int, int]:
    """A timestamp or date that is an integer since 1970: (status, position after it, or 0 if not OK; number)."""
    byte = data[position]
    stop, mantissa, digits, _, is_plain = scan_number(data, position, end)
    if stop < 0:
        return -stop, 0, 0
    if not is_plain:
        return NOT_AN_INTEGER, 0, 0
    if digits > MANTISSA_DIGITS and factor > 0:
        return OUT_OF_RANGE, 0, 0
    status, number = _long(data, stop, mantissa, digits, byte == MINUS)
    if status != OK:
        return status, 0, 0
    unit = 1 if read == READ_EPOCH_DAYS else DAY_US
    if factor < 0:
        number //= -factor
    elif number > (LAST_DAY + 1) * DAY_US // factor or number < FIRST_DAY * DAY_US // factor:
        return OUT_OF_RANGE, 0, 0
    else:
        number *= factor
    if number < FIRST_DAY * unit or number >= (LAST_DAY + 1) * unit:
        return OUT_OF_RANGE, 0, 0
    return OK, stop, number


@merged
def put_parsed_number(  # noqa: PLR0912
    data: ByteArray,
    position: int,
    end: int,
    node: int,
    read: int,
    program: JsonProgram,
    work: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int]:
    """Append the number at `position`: (status, position after it). If the status is FULL, see `put_scalar`."""
    is_text = data[position] == QUOTE
    if is_text:
        position += 1
        if position >= end:
            return CUT, 0
        if data[position] != MINUS and (data[position] < ZERO or data[position] > NINE):
            return WRONG_TYPE, 0
    stop, mantissa, digits, exponent, is_plain = scan_number(data, position, end)
    if stop < 0:
        return WRONG_TYPE if is_text else -stop, 0
    after = stop
    if is_text:
        if stop >= end:
            return CUT, 0
        if data[stop] != QUOTE:
            return WRONG_TYPE, 0
        after += 1
    is_negative = data[position] == MINUS
    if read == READ_LONG:
        if is_plain:
            status, number = _long(data, stop, mantissa, digits, is_negative)
        elif program.readings[node, EXTRA] == 0:
            status, number = NOT_AN_INTEGER, 0
        else:
            status, number = _integral(mantissa, digits, exponent, is_negative)
        if status != OK:
            return status, 0
        put_number(node, number, buffers)
        return OK, after
    if read == READ_DECIMAL:
        shift = exponent - max(0, digits - MANTISSA_DIGITS) + program.readings[node, EXTRA]
        precision = program.readings[node, EXTRA2]
        status = _put_decimal(data, position, stop, mantissa, digits, shift, precision, node, buffers)
        return status, after if status == OK else 1
    if is_plain and program.readings[node, EXTRA] != 0 and not _is_exact(mantissa, digits):
        return WRONG_TYPE, 0
    if digits > DOUBLE_DIGITS and not is_plain:
        work[DOCUMENT_NOTES] |= ROUNDED
    status, real = _double(mantissa, digits, exponent)
    if status == INEXACT:
        status = _put_late(data, position, stop, 0, 0, node, buffers)
    if status != OK:
        return status, 1
    put_real(node, -real if is_negative else real, buffers)
    return OK, after


@merged
def _put_decimal(
    data: ByteArray,
    position: int,
    stop: int,
    mantissa: int,
    digits: int,
    shift: int,
    precision: int,
    node: int,
    buffers: BufferArrays,
) -> int:
    """Append a decimal: the status.

    Its unscaled number has `shift` zeros more than the digits of the text, or as many digits fewer if that is negative.
    """
    number = 0
    if mantissa > 0:
        width = digits + shift
        if width > precision:
            return OUT_OF_RANGE
        if shift < 0 and not _ends_with_zeros(data, position, stop, digits, -shift):
            return INEXACT
        if digits > MANTISSA_DIGITS or width > MANTISSA_DIGITS:
            status = _put_late(data, position, stop, digits, shift, node, buffers)
            if status != OK:
                return status
        else:
            number = mantissa * _TENS[shift] if shift >= 0 else mantissa // _TENS[-shift]
            number = -number if data[position] == MINUS else number
    put_pair(node, number, -1 if number < 0 else 0, buffers)
    return OK


@device_function
def _long(data: ByteArray, stop: int, mantissa: int, digits: int, is_negative: bool) -> tuple[int, int]:
    """The int64 of an integer that ends at `stop`: (OK or OUT_OF_RANGE, number)."""
    if digits > MANTISSA_DIGITS:
        last = int(data[stop - 1]) - ZERO
        limit = 8 if is_negative else 7
        if digits > MANTISSA_DIGITS + 1 or mantissa > _INT64_TENTH or (mantissa == _INT64_TENTH and last > limit):
            return OUT_OF_RANGE, 0
        return OK, -mantissa * 10 - last if is_negative else mantissa * 10 + last
    return OK, -mantissa if is_negative else mantissa


@device_function
def _integral(mantissa: int, digits: int, exponent: int, is_negative: bool) -> tuple[int, int]:
    """The int64 that is written with a fraction or an exponent, such as 1.0 or 1e2: (OK or the reason, number)."""
    if mantissa == 0:
        return OK, 0
    if digits > MANTISSA_DIGITS or exponent < -MANTISSA_DIGITS:
        return NOT_AN_INTEGER, 0
    if exponent < 0:
        mantissa, fraction = mantissa // _TENS[-exponent], mantissa % _TENS[-exponent]
        if fraction != 0:
            return NOT_AN_INTEGER, 0
    elif exponent > MANTISSA_DIGITS or mantissa > _INT64_MAX // _TENS[exponent]:
        return OUT_OF_RANGE, 0
    else:
        mantissa *= _TENS[exponent]
    return OK, -mantissa if is_negative else mantissa


@device_function
def _is_exact(mantissa: int, digits: int) -> bool:
    """Whether a double is certain to hold an integer with these digits."""
    return digits <= MANTISSA_DIGITS and (mantissa <= _EXACT or np.int64(np.float64(mantissa)) == mantissa)


@merged
def _double(mantissa: int, digits: int, exponent: int) -> tuple[int, float]:
    """The double of a number without its sign: (OK, OUT_OF_RANGE, or INEXACT if it must be computed later; double)."""
    if mantissa == 0:
        return OK, 0.0
    if digits <= MANTISSA_DIGITS and mantissa <= _EXACT and -23 < exponent < 23:
        # Both are exact, and one operation rounds correctly.
        real = np.float64(mantissa)
        return OK, real * _POWERS[exponent] if exponent >= 0 else real / _POWERS[-exponent]
    kept = min(digits, MANTISSA_DIGITS)
    top = kept + exponent  # the number is less than 10 ** top, and at least a tenth of it
    leading = mantissa * _TENS[MANTISSA_DIGITS - kept]
    if top > _MOST_TOP or (top == _MOST_TOP and leading >= _MOST_MANTISSA):
        return OUT_OF_RANGE, 0.0
    if top < _LEAST_TOP or (top == _LEAST_TOP and leading <= _LEAST_MANTISSA):
        return OK, 0.0
    return INEXACT, 0.0


@merged
def _ends_with_zeros(data: ByteArray, position: int, stop: int, digits: int, count: int) -> bool:
    """Whether the last `count` of the significant digits of a number are zeros; it has more than `count`."""
    if count >= digits:
        return False
    while position < stop and (data[position] | 0x20) != 0x65:  # up to the exponent
        position += 1
    while count > 0:
        position -= 1
        if data[position] == POINT:
            continue
        if data[position] != ZERO:
            return False
        count -= 1
    return True


@subroutine
def _put_late(
    data: ByteArray, position: int, stop: int, digits: int, shift: int, node: int, buffers: BufferArrays
) -> int:
    """Keep a number that Arrow turns into a double or decimal after the kernel, all of them at once: OK or FULL.

    Args:
        data: the bytes.
        position: start of the number.
        stop: its end.
        digits: for a decimal its significant digits; 0 for a double, whose text is kept as it is.
        shift: zeros to append to the digits of a decimal, or minus the number of digits to cut.
        node: the buffer that gets the number.
        buffers: see `column_buffers`.
    """
    nodes, content, counts = buffers.nodes, buffers.content, buffers.counts
    text = len(counts) - 3
    used = used_bytes(text, buffers)
    if counts[text] >= nodes[text, ITEMS] or used + stop - position + max(0, shift) > nodes[text, BYTES]:
        return FULL
    into = nodes[text, CONTENT] + used
    if digits == 0:
        copy(data, position, stop - position, content, into)
        into += stop - position
    else:
        if data[position] == MINUS:
            content[into] = MINUS
            into += 1
            position += 1
        copied_digits = 0
        while copied_digits < digits + min(0, shift):
            byte = data[position]
            position += 1
            if byte != POINT and (copied_digits > 0 or byte != ZERO):
                content[into] = byte
                into += 1
                copied_digits += 1
        for _ in range(shift):
            content[into] = ZERO
            into += 1
    put_end(text, into - nodes[text, CONTENT], buffers)
    put_number(text + 1, node, buffers)
    put_number(text + 2, counts[node], buffers)
    return OK
