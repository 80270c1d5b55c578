"""Where things stand in the messages of each generation. Numbers only, so that kernels can use them.

0.7 (facts, 2); `length` does not count itself, the CRC-32 covers the payload alone:

    magic 0:  int32 length | 00 | uint32 crc | payload
    magic 1:  int32 length | 01 | attributes | uint32 crc | payload
"""

LENGTH_BYTES = 4
CRC_BYTES = 4
# From the magic to the payload, by magic.
HEADER_BYTES = (5, 6)
LEAST_LENGTH = min(HEADER_BYTES)
LARGEST_MAGIC = len(HEADER_BYTES) - 1
# In magic 1's attributes; all other bits are ignored. Magic 0 is never compressed.
CODEC_MASK = 0b11
