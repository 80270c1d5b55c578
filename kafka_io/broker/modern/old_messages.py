"""Message sets of formats 0 and 1 as producers send them: their offsets mean nothing, only their order does (seed 002).

This is not the reading side's `decode`: that holds a broker to growing offsets, which a producer need not give.
"""

from collections.abc import Iterator
from struct import Struct

from isal import isal_zlib

from kafka_io.compression import MESSAGE_CODECS, Bytes
from kafka_io.errors import Corrupt, Unsupported
from kafka_io.records.build import Record
from kafka_io.records.layout import (
    ENTRY_BYTES,
    LEAST_MESSAGE_BYTES,
    MAGIC_AT,
    MESSAGE_KEY_AT,
    MESSAGE_TIMESTAMP_AT,
    MODERN_CODEC_MASK,
)
from kafka_io.wire.primitives import Reader

# offset | length | crc | magic | attributes
_HEAD = Struct(">qiIBB")
_INT64 = Struct(">q")
_NO_TIME = -1


def read_message_set(data: Bytes, *, cap: int) -> tuple[list[Record], int]:
    """The records of a set, numbered from 0, and the codec of the first of its messages that is compressed, else 0.

    Args:
        data: nothing but whole messages.
        cap: bytes that what is compressed in one message may come to.

    Raises:
        Corrupt: a length or checksum that cannot be right.
        Unsupported: another format, or a codec that its format does not have.
        TooLarge: the cap was passed.
    """
    records: list[Record] = []
    used = 0
    for codec, record in _messages(memoryview(data)):
        if codec:
            used = used or codec & MODERN_CODEC_MASK
            records += _opened(codec, record, cap)
        else:
            records.append(record)
    numbered = [
        Record(offset=number, timestamp=one.timestamp, key=one.key, value=one.value)
        for number, one in enumerate(records)
    ]
    return numbered, used


def _opened(codec: int, outer: Record, cap: int) -> Iterator[Record]:
    """The messages compressed in one; `outer.offset` is its magic."""
    opener = MESSAGE_CODECS[outer.offset].get(codec)
    if opener is None:
        raise Unsupported(f"a message of magic {outer.offset} compressed with codec {codec}")
    for inside, record in _messages(memoryview(opener.decompress(outer.value or b"", cap))):
        if inside:
            raise Corrupt("a compressed message inside a compressed one")
        yield record


def _messages(view: memoryview) -> Iterator[tuple[int, Record]]:
    """Each message's codec and content; the record's offset is the message's magic, which tells its codecs."""
    at = 0
    while at < len(view):
        if len(view) - at < min(LEAST_MESSAGE_BYTES):
            raise Corrupt(f"{len(view) - at} bytes at the end of a message set")
        _, length, crc, magic, attributes = _HEAD.unpack_from(view, at)
        end = at + ENTRY_BYTES + length
        if magic >= len(LEAST_MESSAGE_BYTES):
            raise Unsupported(f"a message of magic {magic} in a message set")
        if not at + LEAST_MESSAGE_BYTES[magic] <= end <= len(view):
            raise Corrupt(f"a message of length {length} with {len(view) - at} bytes left")
        if isal_zlib.crc32(view[at + MAGIC_AT : end]) != crc:
            raise Corrupt("a message with a wrong CRC")
        time = _INT64.unpack_from(view, at + MESSAGE_TIMESTAMP_AT)[0] if magic else _NO_TIME
        content = Reader(view[at + MESSAGE_KEY_AT[magic] : end])
        key, value = _sized(content), _sized(content)
        content.end()
        yield attributes & MODERN_CODEC_MASK, Record(offset=magic, timestamp=time, key=key, value=value)
        at = end


def _sized(content: Reader) -> bytes | None:
    size = content.int32()
    return None if size == -1 else bytes(content.view(size))
