"""What kernels return. The first seven are normal ends, the others are errors of the data.

WHOLE         the message is complete
END           everything was read
CUT           the last message or batch is incomplete
PAUSED        the columns or the table are full; continue from this position
WRAPPER       a compressed message, which the caller must decompress
OTHER_FORMAT  a message or batch of a format that another kernel decodes
PAST          a message at or after the requested stop

BAD_FIELD     a key, value or header is longer than its record
BAD_END       the content ends before or after the position that its length gives
FULL          the output is larger than the limit
"""

WHOLE, END, CUT, PAUSED, WRAPPER, OTHER_FORMAT, PAST = range(7)
BAD_LENGTH, BAD_MAGIC, BAD_CRC, BAD_OFFSET, BAD_COUNT, BAD_VARINT, BAD_FIELD, BAD_END, FULL = range(7, 16)
