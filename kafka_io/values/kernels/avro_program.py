"""The program that the kernel `avro_rows` runs: its columns, ops and results.

Each row of a program is an op, the node of its buffer, and parameters. What an op up to LAST_WITH_NUMBER reads begins
with a varint, which is called the number here.
"""

from typing import NamedTuple

from kafka_io.jit.scalars import ByteArray, Int64s

# Columns of a program.
OP, NODE, A, B, C = range(5)
PROGRAM_COLUMNS = 5

# Ops that begin with a varint.
LONG = 0  # to a buffer of longs; B: 1 if it is an int; C: of a date or time, its units in a day, to check its range
SCALED = 1  # as LONG, multiplied by A, or divided by -A and rounded down
LONG_TO_DOUBLE = 2  # as SCALED, to a buffer of doubles
TEXT = 3  # a length and a text in UTF-8
BYTES_OP = 4  # a length and bytes
ENUM = 5  # index of a symbol; A: the first symbol, B: their number
DECIMAL = 6  # a length and a number in big-endian two's complement
OPTION = 7  # union of null (branch B) and another type: the next op reads the value, op A comes after it
UNION = 8  # of A branches; A rows follow, and each has the op of its branch in its own A
BLOCK = (
    9  # number of items; NODE: the buffer or -1, A: the op after the array, B: fewest bytes of an item, C: second node
)
SKIP_LONG = 10  # B as for LONG
SKIP_TEXT = 11
SKIP_BYTES = 12
SKIP_ENUM = 13  # B: number of symbols
LAST_WITH_NUMBER = 13

# Ops that do not begin with a varint.
FLOAT = 14
DOUBLE = 15
BOOLEAN = 16
FIXED = 17  # A: size
FIXED_TEXT = 18  # A: size; a text in UTF-8
UUID = 19  # 16 bytes, as text
DECIMAL_FIXED = 20  # A: size
LITTLE_UINT32 = 21  # part of a duration
LAST_FIXED = 21  # up to here, they read a fixed number of bytes
NULL = 22  # reads nothing
STRUCT = 23  # begins a struct; the ops of its members follow
JUMP = 24  # continues at op A
LIST = 25  # begins an array or map: BLOCK, SKIP_LONG (the size of a block) and the ops of an item follow
ITEM_END = 26  # A: BLOCK; the ops of an item begin at A + 2
CALL = 27  # continues at op A; RETURN leads back
RETURN = 28
RAW = 29  # begins a value whose bytes are kept
RAW_END = 30  # ends such a value; A: number of its type, which is stored before the bytes
SKIP_FIXED = 31  # A: size
SKIP_BOOLEAN = 32
REFUSE = 33  # the value has a type that the column does not hold; A: number of the reason
END = 34
SYMBOL = 35  # reads nothing; A: the symbol, B: 1

# Results, after OK and FULL.
CUT, BAD_NUMBER, BAD_LENGTH, BAD_COUNT, BAD_TEXT, BAD_SYMBOL, BAD_BRANCH, BAD_BOOLEAN = range(2, 10)
OUT_OF_RANGE, BIG_DECIMAL, TOO_DEEP, TOO_MANY, TOO_LONG, REFUSED, INEXACT = range(10, 17)

MAX_DEPTH = 128
# Items can have no bytes, for example nulls, so a short value could state any number of them. A value may have one such
# item for each of its bytes, and this many more.
FREE_ITEMS = 1024


class AvroProgram(NamedTuple):
    """The programs of all writers' schemas.

    Args:
        ids: ids of the schemas that have a program, in ascending order.
        entries: the first op of each program.
        ops: all programs, one after the other.
        symbols: all symbols of enums, one after the other.
        symbol_ends: the end of each symbol, after a 0.
    """

    ids: Int64s
    entries: Int64s
    ops: Int64s
    symbols: ByteArray
    symbol_ends: Int64s
