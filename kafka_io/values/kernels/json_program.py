"""The tables of a program that the kernels of JSON run, the parts of their working memory, and their results."""

from typing import NamedTuple

from kafka_io.jit.scalars import ByteArray, Int64s

# Columns of the table of readings.
OP = 0
# Of decimals the scale, of epochs the factor, of doubles 1 if they may not round integers, of longs 1 if an integer may
# have a fraction or an exponent.
EXTRA = 1
EXTRA2 = 2  # of decimals the precision
OTHER = 3  # of a member: the member with the same key for values of another type, or 0
FIRST_SLOT, SLOT_MASK = 4, 5  # of a struct: its hash table in `slots`
FIRST_KEY = 6  # of a struct: the first key of the struct before, or 0
WATCHED = 7  # of a struct: 1 if keys without a column are reported
READING_COLUMNS = 8

# Columns of the table of keys. Key 0 stands for no key.
NAME, NAME_SIZE = 0, 1  # position and size in `names`
MEMBER = 2
NEXT_KEY = 3  # the key that came after it in the struct before, or 0
KEY_COLUMNS = 4
NO_KEY = 0

# How a value is read.
READ_STRUCT, READ_LIST, READ_MAP, READ_BOOL, READ_LONG, READ_DOUBLE, READ_DECIMAL = range(7)
READ_STRING, READ_BASE64, READ_DATE, READ_TIMESTAMP, READ_LOCAL_TIMESTAMP = range(7, 12)
READ_JSON, READ_EPOCH, READ_EPOCH_DAYS, READ_DECIMAL_BYTES = range(12, 16)

MAX_DEPTH = 128
# Parts of `work`: stacks of the open nodes, of the last keys, of the positions at which the open values begin, of the
# late numbers before them, and of brackets. Then come the notes about the document.
OPEN_NODES, LAST_KEYS, BEGINS, LATE_COUNTS, BRACKETS, DOCUMENT_NOTES = range(0, 6 * MAX_DEPTH, MAX_DEPTH)
WORK_SIZE = DOCUMENT_NOTES + 1
# Bits of the notes: the document has a key without a column, or a number with more digits than a double keeps.
NEW_KEY, ROUNDED = 1, 2

# Results, after OK and FULL; the decoder of JSON has the sentences.
EMPTY, CUT, SECOND_DOCUMENT, TOO_DEEP = range(2, 6)
NOT_A_VALUE, NOT_A_KEY, BAD_SEPARATOR, BAD_LITERAL, BAD_NUMBER = range(6, 11)
BAD_UTF8, CONTROL_CHARACTER, BAD_ESCAPE, LONE_SURROGATE = range(11, 15)
DUPLICATE_KEY, WRONG_TYPE, NOT_AN_INTEGER, OUT_OF_RANGE, INEXACT, BAD_DATE, BAD_TIME, WRONG_ZONE, BAD_BASE64 = range(
    15, 24
)
INTO_TEXT = 24  # an object has a key that its struct lacks, and JSON text can hold it: it is decoded again as text


class JsonProgram(NamedTuple):
    """How documents become rows of a schema's buffers.

    Args:
        readings: for each buffer, how its values are read.
        keys: the keys of all structs.
        slots: hash tables of keys: the key, or 0.
        names: the bytes of all keys.
        scratch: room for a key with escapes; a longer key is not a key of any member.
    """

    readings: Int64s
    keys: Int64s
    slots: Int64s
    names: ByteArray
    scratch: ByteArray
