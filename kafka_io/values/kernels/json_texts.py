"""Texts, numbers and whole values of JSON (RFC 8259): where they end, and whether they are valid.

A function that looks for an end returns its position, or minus a status of `json_program` if there is none.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kafka_io.jit.compiling import device_function, merged, subroutine
from kafka_io.jit.scalars import ByteArray, Int64s
from kafka_io.jit.utf8 import character_size
from kafka_io.values.kernels.json_program import (
    BAD_ESCAPE,
    BAD_LITERAL,
    BAD_NUMBER,
    BAD_SEPARATOR,
    BAD_UTF8,
    CONTROL_CHARACTER,
    CUT,
    LONE_SURROGATE,
    NOT_A_KEY,
    NOT_A_VALUE,
    TOO_DEEP,
)

QUOTE, BACKSLASH, COMMA, COLON, MINUS, PLUS, POINT = (ord(character) for character in '"\\,:-+.')
OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = (ord(character) for character in "{}[]")
ZERO, NINE, LOWER_E, LOWER_U, LOWER_T, LOWER_F, LOWER_N = (ord(character) for character in "09eutfn")
_BLANK, _TAB, _NEWLINE, _RETURN, _SLASH = 0x20, 0x09, 0x0A, 0x0D, 0x2F
_LOWER_A, _LOWER_B, _LOWER_R = (ord(character) for character in "abr")
_NULL, _TRUE, _FALSE = (np.frombuffer(literal, np.uint8) for literal in (b"null", b"true", b"false"))

# Digits that a mantissa holds exactly.
MANTISSA_DIGITS = 18
# A larger exponent makes any number zero or too large; it is not counted further.
_MAX_EXPONENT = 1 << 20


@device_function
def after_blanks(data: ByteArray, position: int, end: int) -> int:
    """Position of the first byte that is not white space."""
    while position < end:
        byte = data[position]
        if byte > _BLANK or (byte != _BLANK and byte != _NEWLINE and byte != _RETURN and byte != _TAB):  # noqa: PLR1714
            break
        position += 1
    return position


def plain_end(data: ByteArray, position: int, end: int) -> int:
    """Position of the first byte that is a quote, a backslash, a control character or not ASCII; or `end`."""
    while position < end:
        byte = data[position]
        if byte < _BLANK or byte in (QUOTE, BACKSLASH) or byte > 127:
            break
        position += 1
    return position


@intrinsic  # numba passes the types of the arguments and requires these names
def _plain_bytes_of_word(_context: Any, data: Any, position: Any) -> tuple[Any, Any]:  # noqa: ARG001
    """The number of bytes at `position` before the first one that ends a plain text; 8 if none of 8 bytes does.

    The usual test of all bytes of a word at once: its first hit is exact.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        word_type = ir.IntType(64)

        def every(byte: int) -> ir.Constant:
            return ir.Constant(word_type, byte * 0x0101010101010101)

        begin = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [index])
        word = builder.load(builder.bitcast(begin, word_type.as_pointer()), align=1)
        hits = builder.and_(builder.sub(word, every(_BLANK)), builder.not_(word))
        for byte in (QUOTE, BACKSLASH):
            other = builder.xor(word, every(byte))
            hits = builder.or_(hits, builder.and_(builder.sub(other, every(1)), builder.not_(other)))
        hits = builder.and_(builder.or_(hits, word), every(0x80))
        zeros = builder.cttz(hits, ir.Constant(ir.IntType(1), 0))  # 64 without a hit
        return builder.lshr(zeros, ir.Constant(word_type, 3))

    return types.int64(data, types.int64), generate


_plain_bytes: Any = _plain_bytes_of_word  # for type checkers: numba adds the context


@overload(plain_end, inline="always")
def _compiled_plain_end(data: Any, position: Any, end: Any) -> Any:  # noqa: ARG001 - as above
    def by_words(data: Any, position: Any, end: Any) -> Any:
        while position + 8 <= end:
            before = _plain_bytes(data, position)
            position += before
            if before < 8:
                return position
        while position < end:
            byte = data[position]
            if byte < _BLANK or byte in (QUOTE, BACKSLASH) or byte > 127:
                break
            position += 1
        return position

    return by_words


@subroutine
def text_end(data: ByteArray, position: int, end: int) -> tuple[int, bool]:
    """The closing quote of the text that begins at `position`, after its quote, and whether the text has escapes.

    The text is valid UTF-8, its escapes are complete, and its surrogates come in pairs.
    """
    has_escapes = False
    while True:
        position = plain_end(data, position, end)
        if position >= end:
            return -CUT, has_escapes
        byte = data[position]
        if byte == QUOTE:
            return position, has_escapes
        if byte < _BLANK:
            return -CONTROL_CHARACTER, has_escapes
        if byte == BACKSLASH:
            has_escapes = True
            position = _escape_end(data, position, end)
            if position < 0:
                return position, has_escapes
        else:
            size = character_size(data, position, end)
            if size == 0:
                return -BAD_UTF8, has_escapes
            position += size


@merged
def _escape_end(data: ByteArray, position: int, end: int) -> int:
    """End of the escape whose backslash is at `position`; that of both escapes if they are a pair of surrogates."""
    if position + 2 > end:
        return -CUT
    if data[position + 1] != LOWER_U:
        return position + 2 if _simple_escape(data[position + 1]) else -BAD_ESCAPE
    unit = _code_unit(data, position, end)
    if unit < 0:
        return -BAD_ESCAPE
    if unit < 0xD800 or unit > 0xDFFF:
        return position + 6
    low = _code_unit(data, position + 6, end)
    return position + 12 if unit < 0xDC00 and 0xDC00 <= low <= 0xDFFF else -LONE_SURROGATE


@device_function
def _simple_escape(byte: int) -> int:
    """The character that a backslash and this byte stand for; 0 if they are not an escape."""
    character = 0
    if byte in (QUOTE, BACKSLASH, _SLASH):
        character = int(byte)
    elif byte == _LOWER_B:
        character = 0x08
    elif byte == LOWER_F:
        character = 0x0C
    elif byte == LOWER_N:
        character = 0x0A
    elif byte == _LOWER_R:
        character = 0x0D
    elif byte == LOWER_T:
        character = 0x09
    return character


@device_function
def _code_unit(data: ByteArray, position: int, end: int) -> int:
    r"""The code unit of an escape \uXXXX at `position`; -1 if no such escape is there."""
    if position + 6 > end or data[position] != BACKSLASH or data[position + 1] != LOWER_U:
        return -1
    unit = 0
    for i in range(2, 6):
        byte = int(data[position + i])
        letter = (byte | 0x20) - _LOWER_A
        if ZERO <= byte <= NINE:
            digit = byte - ZERO
        elif 0 <= letter < 6:
            digit = letter + 10
        else:
            return -1
        unit = (unit << 4) | digit
    return unit


@subroutine
def unescape(data: ByteArray, position: int, stop: int, target: ByteArray, filled: int) -> int:
    """Write a valid text with escapes into `target` from `filled` on; returns the end of what was written.

    The result is never longer than the text.
    """
    while position < stop:
        if data[position] != BACKSLASH:
            target[filled] = data[position]
            filled += 1
            position += 1
        elif data[position + 1] != LOWER_U:
            target[filled] = _simple_escape(data[position + 1])
            filled += 1
            position += 2
        else:
            character = _code_unit(data, position, stop)
            position += 6
            if 0xD800 <= character <= 0xDBFF:
                character = 0x10000 + ((character - 0xD800) << 10) + _code_unit(data, position, stop) - 0xDC00
                position += 6
            filled = _write_character(character, target, filled)
    return filled


@merged
def _write_character(character: int, target: ByteArray, filled: int) -> int:
    """Write a code point as UTF-8; returns the end of what was written."""
    if character < 0x80:
        target[filled] = character
        return filled + 1
    if character < 0x800:
        target[filled] = 0xC0 | (character >> 6)
        target[filled + 1] = 0x80 | (character & 0x3F)
        return filled + 2
    if character < 0x10000:
        target[filled] = 0xE0 | (character >> 12)
        target[filled + 1] = 0x80 | ((character >> 6) & 0x3F)
        target[filled + 2] = 0x80 | (character & 0x3F)
        return filled + 3
    target[filled] = 0xF0 | (character >> 18)
    target[filled + 1] = 0x80 | ((character >> 12) & 0x3F)
    target[filled + 2] = 0x80 | ((character >> 6) & 0x3F)
    target[filled + 3] = 0x80 | (character & 0x3F)
    return filled + 4


@device_function
def literal_end(data: ByteArray, position: int, end: int) -> int:
    """End of `null`, `true` or `false` at `position`."""
    literal = _NULL if data[position] == LOWER_N else _TRUE if data[position] == LOWER_T else _FALSE
    for i in range(len(literal)):
        if position + i >= end:
            return -CUT
        if data[position + i] != literal[i]:
            return -BAD_LITERAL
    return position + len(literal)


@subroutine
def scan_number(data: ByteArray, position: int, end: int) -> tuple[int, int, int, int, bool]:
    """A number: (its end, mantissa, digits, exponent, whether it has neither fraction nor exponent).

    The mantissa holds the first 18 of the `digits` significant digits, without the sign. The number is mantissa * 10 **
    exponent, exactly if it has at most 18 significant digits.
    """
    mantissa = digits = exponent = 0
    is_plain = True
    if data[position] == MINUS:
        position += 1
    start = position
    while position < end and ZERO <= data[position] <= NINE:
        mantissa, digits, exponent = _with_digit(int(data[position]) - ZERO, mantissa, digits, exponent + 1)
        position += 1
    if position == start or (position > start + 1 and data[start] == ZERO):
        return -(CUT if position >= end else BAD_NUMBER), mantissa, digits, exponent, is_plain
    if position < end and data[position] == POINT:
        is_plain = False
        position += 1
        start = position
        while position < end and ZERO <= data[position] <= NINE:
            mantissa, digits, exponent = _with_digit(int(data[position]) - ZERO, mantissa, digits, exponent)
            position += 1
        if position == start:
            return -(CUT if position >= end else BAD_NUMBER), mantissa, digits, exponent, is_plain
    if position < end and (data[position] | 0x20) == LOWER_E:
        is_plain = False
        position, power = _power(data, position + 1, end)
        exponent += power
    return position, mantissa, digits, exponent, is_plain


@device_function
def _with_digit(digit: int, mantissa: int, digits: int, exponent: int) -> tuple[int, int, int]:
    """Mantissa, digits and exponent after another digit; the exponent was raised by 1 if it precedes the point."""
    if digits >= MANTISSA_DIGITS:
        return mantissa, digits + 1, exponent
    return 10 * mantissa + digit, digits + (1 if mantissa > 0 or digit > 0 else 0), exponent - 1


@merged
def _power(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """The power of ten that follows an `e`: (its end, the power)."""
    sign = 1
    if position < end and (data[position] == MINUS or data[position] == PLUS):
        sign = -1 if data[position] == MINUS else 1
        position += 1
    start = position
    power = 0
    while position < end and ZERO <= data[position] <= NINE:
        power = min(10 * power + int(data[position]) - ZERO, _MAX_EXPONENT)
        position += 1
    if position == start:
        return -(CUT if position >= end else BAD_NUMBER), 0
    return position, sign * power


@subroutine
def value_end(data: ByteArray, position: int, end: int, closing: Int64s, depth: int) -> int:  # noqa: PLR0912
    """End of the valid value that begins at `position`.

    Args:
        data: the bytes.
        position: of the first byte of the value; nothing but white space was skipped before it.
        end: of the document.
        closing: a stack of closing brackets; its size is the largest depth.
        depth: objects and lists that are open already.
    """
    outside = depth
    while True:
        if position >= end:
            return -CUT
        byte = data[position]
        if byte in (OPEN_OBJECT, OPEN_LIST):
            if depth >= len(closing):
                return -TOO_DEEP
            closing[depth] = int(byte) + 2  # brackets and braces close two code points later
            depth += 1
            position = after_blanks(data, position + 1, end)
            if position < end and data[position] != closing[depth - 1]:
                if byte == OPEN_OBJECT:
                    position = _key_end(data, position, end)
                    if position < 0:
                        return position
                continue
        else:
            position = _scalar_end(data, position, end)
            if position < 0:
                return position
            if depth == outside:
                return position
            position = after_blanks(data, position, end)
        # After a value, or at the first byte of an empty object or list: close what ends here.
        while position < end and data[position] == closing[depth - 1]:
            depth -= 1
            position += 1
            if depth == outside:
                return position
            position = after_blanks(data, position, end)
        if position >= end:
            return -CUT
        if data[position] != COMMA:
            return -BAD_SEPARATOR
        position = after_blanks(data, position + 1, end)
        if closing[depth - 1] == CLOSE_OBJECT:
            position = _key_end(data, position, end)
            if position < 0:
                return position


@device_function
def _key_end(data: ByteArray, position: int, end: int) -> int:
    """Start of the value of the key at `position`."""
    if position >= end:
        return -CUT
    if data[position] != QUOTE:
        return -NOT_A_KEY
    position, _ = text_end(data, position + 1, end)
    return position if position < 0 else after_colon(data, position + 1, end)


@device_function
def after_colon(data: ByteArray, position: int, end: int) -> int:
    """Start of the value after the colon, which must be the next byte that is not white space."""
    position = after_blanks(data, position, end)
    if position >= end:
        return -CUT
    if data[position] != COLON:
        return -BAD_SEPARATOR
    return after_blanks(data, position + 1, end)


@merged
def _scalar_end(data: ByteArray, position: int, end: int) -> int:
    """End of a text, number or literal."""
    byte = data[position]
    if byte == QUOTE:
        position, _ = text_end(data, position + 1, end)
        return position if position < 0 else position + 1
    if byte == MINUS or ZERO <= byte <= NINE:
        return scan_number(data, position, end)[0]
    if byte in (LOWER_N, LOWER_T, LOWER_F):
        return literal_end(data, position, end)
    return -NOT_A_VALUE


@merged
def is_nothing(data: ByteArray, position: int, end: int) -> bool:
    """Whether null, {} or [] begins at `position`. They say nothing about the type of a key."""
    if position >= end or data[position] == LOWER_N:
        return True
    if data[position] != OPEN_OBJECT and data[position] != OPEN_LIST:
        return False
    after = after_blanks(data, position + 1, end)
    return after < end and (data[after] == CLOSE_OBJECT or data[after] == CLOSE_LIST)
