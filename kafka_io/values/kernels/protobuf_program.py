"""The program that the kernel `protobuf_rows` runs: numbers of its tables, ops and results."""

from typing import NamedTuple

from kafka_io.jit.scalars import ByteArray, Int64s

# Wire types.
VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)

# Results, after OK and FULL.
UNUSUAL, CUT, BAD_TAG, BAD_NUMBER, BAD_LENGTH, BAD_TEXT, BAD_GROUP, BAD_WIRE = range(2, 10)
WRONG_WIRE, BAD_TIME, TOO_DEEP, REFUSED, INEXACT = range(10, 15)

MAX_DEPTH = 100
# Columns of the stack of open messages; the last one is that of groups that are skipped.
OPEN_MESSAGE, OPEN_END, OPEN_GROUP, OPEN_ITEM, SKIPPED_GROUP = range(5)
STACK_COLUMNS = 5

# Columns of the table of messages: its fields, what happens at its end, its buffer and what it is.
FIRST, LAST, CLOSE_FIRST, CLOSE_LAST, MESSAGE_NODE, KIND = range(6)
MESSAGE_COLUMNS = 6
# STRUCT: a struct. FLAT: fills a buffer of another kind, MESSAGE_NODE. ENTRY: of a map; MESSAGE_NODE is the buffer of
# keys. SKIPPED: is only checked.
STRUCT, FLAT, ENTRY, SKIPPED = range(4)

# Columns of the table of fields. NODE: the buffer of the value or of the item of a list, or -1; RING: the next member
# of a oneof, the last one has the first one, or -1.
NUMBER, WIRE, OP, NODE, A, B, FLAGS, RING = range(8)
FIELD_COLUMNS = 8
REPEATED, PACKABLE, MERGED, CLOSED, TO_DOUBLE = 1, 2, 4, 8, 16

# Ops of fields.
LONG = 0  # 64 bits as they are; also a double from FIXED64
INT32 = 1
UINT32 = 2
SINT32 = 3
SINT64 = 4
BOOL = 5
UINT64 = 6  # to a buffer of decimals
FLOAT = 7
LAST_NUMBER = 7
ENUM = 8  # A: its first number in `enum_numbers`, B: how many there are
STRING = 9
BYTES_OP = 10
MESSAGE = 11  # A: the message; in a map, B: the buffer of values, or -1
TIMESTAMP = 12
DURATION = 13
JSON = 14  # a raw value; A: number of its type
REFUSE = 15  # the column has another type; A: number of the reason

# Columns of the table of what happens at the end of a message, if the buffer CLOSE_NODE has no value.
CLOSE_OP, CLOSE_NODE, CLOSE_VALUE = range(3)
CLOSE_COLUMNS = 3
PUT_NULL, PUT_NUMBER, PUT_PAIR, PUT_TEXT, PUT_LIST, PUT_MESSAGE, PUT_JSON = range(7)

# Keys of a map are compared with each other up to this number.
MAX_COMPARED_KEYS = 64


class ProtobufProgram(NamedTuple):
    """The programs of all writers' message types.

    Args:
        messages: see above.
        fields: see above, in ascending order of their numbers for each message.
        closes: what happens at the end of a message.
        texts: all names of enums and default texts, one after the other.
        text_ends: the end of each text, after a 0.
        enum_numbers: the numbers of each enum in ascending order.
        enum_texts: the text of each number.
    """

    messages: Int64s
    fields: Int64s
    closes: Int64s
    texts: ByteArray
    text_ends: Int64s
    enum_numbers: Int64s
    enum_texts: Int64s
