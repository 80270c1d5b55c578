"""Positions and sizes of fields in the messages of each generation. Numbers only, so that kernels can use them.

0.7 [kafka-0.7: Messages]; `length` does not count itself, the CRC-32 covers the payload alone:

    magic 0:  int32 length | 00 | uint32 crc | payload
    magic 1:  int32 length | 01 | attributes | uint32 crc | payload
"""

LENGTH_BYTES = 4
CRC_BYTES = 4
# From the magic to the payload, by magic.
HEADER_BYTES = (5, 6)
MIN_LENGTH = min(HEADER_BYTES)
LARGEST_MAGIC = len(HEADER_BYTES) - 1
# In magic 1's attributes; all other bits are ignored. Magic 0 is never compressed.
CODEC_MASK = 0b11

# From 0.8 on every entry of a log begins with
#
#     int64 offset | int32 length | 4 bytes | int8 magic
#
# `length` counts the bytes after itself [kafka-0.8: Log entries]. `offset` is that of a message, of the last message
# inside a compressed message, or of the first record that a record batch had before compaction.
ENTRY_LENGTH_AT = 8
ENTRY_BYTES = 12
MAGIC_AT = 16

# Message formats 0 and 1; the CRC-32 covers all bytes after it:
#
#     magic 0:  offset | length | uint32 crc | 00 | attributes | bytes key | bytes value
#     magic 1:  offset | length | uint32 crc | 01 | attributes | int64 timestamp | bytes key | bytes value
#
# `bytes` is an int32 length, -1 for null, and as many bytes.
MESSAGE_CRC_AT = 12
MESSAGE_ATTRIBUTES_AT = 17
MESSAGE_TIMESTAMP_AT = 18
# Position of the key's length, and the smallest size of an entry, by magic.
MESSAGE_KEY_AT = (18, 26)
MIN_MESSAGE_BYTES = (26, 34)

# Record batch, magic 2; the CRC-32C covers all bytes after it:
#
#     int64 base offset | int32 length | int32 leader epoch | 02 | uint32 crc | int16 attributes
#     | int32 last offset delta | int64 base timestamp | int64 max timestamp | int64 producer id | int16 producer epoch
#     | int32 base sequence | int32 count | records
#
# record:  varint length | int8 attributes | varlong timestamp delta | varint offset delta
#          | varint key length | key | varint value length | value | varint count of headers | headers
# header:  varint key length | key | varint value length | value
#
# In a compressed batch only the records are compressed, as one stream.
BATCH_MAGIC = 2
BATCH_EPOCH_AT = 12
BATCH_CRC_AT = 17
BATCH_ATTRIBUTES_AT = 21
BATCH_LAST_DELTA_AT = 23
BATCH_BASE_TIME_AT = 27
BATCH_MAX_TIME_AT = 35
BATCH_PRODUCER_AT = 43
BATCH_COUNT_AT = 57
BATCH_BYTES = 61
# The smallest entry of a log, by magic.
MIN_ENTRY_BYTES = (*MIN_MESSAGE_BYTES, BATCH_BYTES)
MIN_RECORD_BYTES = 7

# Attributes of formats 0 to 2.
MODERN_CODEC_MASK = 0b111
APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
