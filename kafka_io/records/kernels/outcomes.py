"""What kernels answer."""

WHOLE = 0  # a message is there, all of it
END = 1  # read to the end
CUT = 2  # the last message or batch is not all there
PAUSED = 3  # the columns or the table hold as much as was asked for; go on from here
WRAPPER = 4  # a compressed message stands here, for the face to open
OTHER_FORMAT = 5  # here begins a message or batch for another kernel
BAD_LENGTH = 6
BAD_MAGIC = 7
BAD_CRC = 8
BAD_OFFSET = 9
BAD_COUNT = 10
BAD_VARINT = 11
BAD_FIELD = 12  # a key, value or header that does not fit in
BAD_END = 13  # it ends elsewhere than it says
PAST = 14  # a message at or behind the offset to stop at
FULL = 15  # more headers than may be
