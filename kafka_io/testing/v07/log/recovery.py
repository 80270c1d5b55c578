"""Finds the damage that a crash leaves at the end of a log [kafka-0.7: Recovery].

There are two kinds of damage: a block that never reached the disk (the last message is incomplete), and a block with
random content (an impossible length, or a wrong CRC). Both are cut off after the last whole message.
"""

from struct import Struct
from zlib import crc32

_LENGTH = Struct(">i")
_CRC = Struct(">I")
# Bytes between the length and the CRC, by magic: `magic | crc | payload` and `magic | attributes | crc | payload`.
_CRC_AT = {0: 1, 1: 2}


def count_valid_bytes(data: memoryview) -> int:
    """The position after the last whole message of `data`."""
    position = 0
    while (end := _end_of_message(data, position)) is not None:
        position = end
    return position


def _end_of_message(data: memoryview, position: int) -> int | None:
    """The position after the message at `position`; None if there is no valid message."""
    body = position + _LENGTH.size
    if body >= len(data):
        return None
    crc_at = _CRC_AT.get(data[body])
    if crc_at is None:
        return None
    (length,) = _LENGTH.unpack_from(data, position)
    payload_at, end = body + crc_at + _CRC.size, body + length
    if not payload_at <= end <= len(data):
        return None
    (crc,) = _CRC.unpack_from(data, body + crc_at)
    with data[payload_at:end] as payload:
        return end if crc32(payload) == crc else None
