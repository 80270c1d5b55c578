"""What kernels return. Codes below BAD_LENGTH, and PAST, are normal ends; the others are errors of the data."""

WHOLE = 0  # the message is complete
END = 1  # everything was read
CUT = 2  # the last message or batch is incomplete
PAUSED = 3  # the columns or the table are full; continue from this position
WRAPPER = 4  # a compressed message, which the caller must decompress
OTHER_FORMAT = 5  # a message or batch of a format that another kernel decodes
BAD_LENGTH = 6
BAD_MAGIC = 7
BAD_CRC = 8
BAD_OFFSET = 9
BAD_COUNT = 10
BAD_VARINT = 11
BAD_FIELD = 12  # a key, value or header is longer than its record
BAD_END = 13  # the content ends before or after the position that its length gives
PAST = 14  # a message at or after the requested stop
FULL = 15  # more headers than the limit
