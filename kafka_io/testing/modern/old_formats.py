"""Message sets of formats 0 and 1, as producers send them [kafka-0.8: Message sets].

The offsets that a producer writes have no meaning; only the order of the messages counts. So `records.decoder`, which
requires that offsets increase, cannot read these sets.
"""

from collections.abc import Iterator
from dataclasses import replace
from struct import Struct

from isal import isal_zlib

from kafka_io.compression import MESSAGE_CODECS, BytesLike
from kafka_io.errors import Corrupt, Unsupported
from kafka_io.records.build import Record
from kafka_io.records.layout import (
    ENTRY_BYTES,
    MAGIC_AT,
    MESSAGE_KEY_AT,
    MESSAGE_TIMESTAMP_AT,
    MIN_MESSAGE_BYTES,
    MODERN_CODEC_MASK,
)
from kafka_io.wire.primitives import WireReader

# offset | length | crc | magic | attributes
_HEADER = Struct(">qiIBB")
_INT64 = Struct(">q")
_NO_TIMESTAMP = -1


def read_message_set(data: BytesLike, *, max_decompressed_bytes: int) -> tuple[list[Record], int]:
    """The records of a set with offsets from 0 on, and the codec of its first compressed message (0 for none).

    Args:
        data: whole messages.
        max_decompressed_bytes: the limit for the decompressed content of one message.

    Raises:
        Corrupt: a length or checksum is wrong.
        Unsupported: the format is not 0 or 1, or does not have the codec of a message.
        TooLarge: a message exceeds the limit.
    """
    records: list[Record] = []
    first_codec = 0
    for magic, codec, record in _parse_messages(memoryview(data)):
        if codec:
            first_codec = first_codec or codec
            records += _decompress(magic, codec, record, max_decompressed_bytes)
        else:
            records.append(record)
    return [replace(record, offset=offset) for offset, record in enumerate(records)], first_codec


def _decompress(magic: int, codec: int, wrapper: Record, max_bytes: int) -> Iterator[Record]:
    """The messages inside a compressed message, the wrapper."""
    decompressor = MESSAGE_CODECS[magic].get(codec)
    if decompressor is None:
        raise Unsupported(f"a message of magic {magic} compressed with codec {codec}")
    content = decompressor.decompress(wrapper.value or b"", max_bytes)
    for _, inner_codec, record in _parse_messages(memoryview(content)):
        if inner_codec:
            raise Corrupt("a compressed message contains a compressed message")
        yield record


def _parse_messages(view: memoryview) -> Iterator[tuple[int, int, Record]]:
    """The magic, the codec and the content of each message. All offsets are 0."""
    position = 0
    while position < len(view):
        left_bytes = len(view) - position
        if left_bytes < min(MIN_MESSAGE_BYTES):
            raise Corrupt(f"{left_bytes} bytes at the end of a message set are less than a message")
        _, length, crc, magic, attributes = _HEADER.unpack_from(view, position)
        end = position + ENTRY_BYTES + length
        if magic >= len(MIN_MESSAGE_BYTES):
            raise Unsupported(f"a message of magic {magic} in a message set")
        if not position + MIN_MESSAGE_BYTES[magic] <= end <= len(view):
            raise Corrupt(f"a message has length {length}, but {left_bytes} bytes are left")
        if isal_zlib.crc32(view[position + MAGIC_AT : end]) != crc:
            raise Corrupt("a message has a wrong CRC")
        timestamp = _INT64.unpack_from(view, position + MESSAGE_TIMESTAMP_AT)[0] if magic else _NO_TIMESTAMP
        content = WireReader(view[position + MESSAGE_KEY_AT[magic] : end])
        key, value = _read_nullable_bytes(content), _read_nullable_bytes(content)
        content.end()
        yield magic, attributes & MODERN_CODEC_MASK, Record(timestamp=timestamp, key=key, value=value)
        position = end


def _read_nullable_bytes(content: WireReader) -> bytes | None:
    # int32 size, -1 for null | bytes
    size = content.int32()
    return None if size == -1 else bytes(content.view(size))
