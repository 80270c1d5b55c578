"""What a crash leaves at the end of a log, and its removal (seed 003, "Guarantees").

Two kinds of damage are met: a block that never reached the disk (the last message is torn), and a nonsense block that
did (its length or its CRC cannot be right). Both are cut off at the end of the last message that is whole. Only the
last segment can have them, since a segment is flushed before it gets a successor.
"""

import mmap
from struct import Struct
from zlib import crc32

from kafka_io.broker.log.segment import Segment

_LENGTH = Struct(">i")
_CRC = Struct(">I")
# Bytes between the length and the CRC, by magic: `magic | crc | payload` and `magic | attributes | crc | payload`.
_CRC_AT = {0: 1, 1: 2}


def recover(segment: Segment) -> int:
    """Cut the torn or corrupt tail off `segment`; how many bytes that were."""
    if segment.size == 0:
        return 0
    with mmap.mmap(segment.descriptor, 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
        valid = _valid_bytes(view)
    cut = segment.size - valid
    if cut:
        segment.truncate(valid)
    return cut


def _valid_bytes(data: memoryview) -> int:
    """Where the last whole message of `data` ends."""
    at = 0
    while (following := _end_of_message(data, at)) is not None:
        at = following
    return at


def _end_of_message(data: memoryview, at: int) -> int | None:
    """Where the message at `at` ends; None when no valid message is there."""
    body = at + _LENGTH.size
    if body >= len(data):
        return None
    crc_at = _CRC_AT.get(data[body])
    if crc_at is None:
        return None
    (length,) = _LENGTH.unpack_from(data, at)
    payload_at, end = body + crc_at + _CRC.size, body + length
    if not payload_at <= end <= len(data):
        return None
    (crc,) = _CRC.unpack_from(data, body + crc_at)
    with data[payload_at:end] as payload:
        return end if crc32(payload) == crc else None
