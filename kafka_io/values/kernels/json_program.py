"""The tables of a program that the kernels of JSON run, and the parts of their working memory."""

# Columns of the program.
OP = 0
EXTRA = 1  # of decimals the scale, of epochs the factor
EXTRA2 = 2  # of decimals the precision
OTHER = 3  # of a member: the member with the same key for values of another type, or 0
FIRST_SLOT, SLOT_MASK = 4, 5  # of a struct: its hash table in `slots`
FIRST_KEY = 6  # of a struct: the first key of the struct before, or 0
WATCHED = 7  # of a struct: 1 if keys without a column are reported
PROGRAM_COLUMNS = 8

# Columns of the table of keys. Key 0 stands for no key.
NAME, NAME_SIZE = 0, 1  # position and size in `names`
MEMBER = 2
NEXT_KEY = 3  # the key that came after it in the struct before, or 0
KEY_COLUMNS = 4
NO_KEY = 0

# How a value is read.
READ_STRUCT, READ_LIST, READ_MAP, READ_BOOL, READ_LONG, READ_DOUBLE, READ_DECIMAL = range(7)
READ_STRING, READ_BASE64, READ_DATE, READ_TIMESTAMP, READ_LOCAL_TIMESTAMP = range(7, 12)
READ_JSON, READ_EPOCH, READ_EPOCH_DAYS = range(12, 15)

MAX_DEPTH = 128
# Parts of `work`: stacks of the open nodes, of the last keys, of the positions at which the open values begin, of the
# late numbers before them, and of brackets. Then come the place of an error, and 1 if the document has a key
# without a column.
OPEN_NODES, LAST_KEYS, BEGINS, LATE_COUNTS, BRACKETS = range(0, 5 * MAX_DEPTH, MAX_DEPTH)
FAULT_NODE, FAULT_POSITION, HAS_NEW_KEY = range(5 * MAX_DEPTH, 5 * MAX_DEPTH + 3)
WORK_SIZE = 5 * MAX_DEPTH + 3
