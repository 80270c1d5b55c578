"""A second decoder of 0.7 message sets: slow, simple, and without any code of the decoder that it checks.

It is written from [kafka-0.7: Messages, Compression] and the description of the snappy format. It uses only the
standard library.
"""

import zlib
from struct import unpack_from

from tests.oracles.gunzip import gunzip

Row = tuple[int, int, bytes]


class BadSetError(Exception):
    """The bytes are not a valid message set."""


def decode(data: bytes, *, base: int) -> list[Row]:
    """The (offset of the outermost message, inner index, payload) of each message, without an incomplete last one."""
    rows = []
    for start, codec, payload in _messages(data):
        if codec == 0:
            rows.append((base + start, 0, payload))
        else:
            rows += [(base + start, index, value) for index, value in enumerate(_deep(codec, payload))]
    return rows


def whole_bytes(data: bytes) -> int:
    """The position after the last complete message."""
    position = 0
    while len(data) - position >= 4:
        (length,) = unpack_from(">i", data, position)
        if len(data) - position - 4 < length:
            break
        position += 4 + length
    return position


def _deep(codec: int, payload: bytes) -> list[bytes]:
    values = []
    for _, inner_codec, inner in _messages(_decompress(codec, payload)):
        values += [inner] if inner_codec == 0 else _deep(inner_codec, inner)
    return values


def _messages(data: bytes) -> list[tuple[int, int, bytes]]:
    messages = []
    position = 0
    while len(data) - position >= 4:
        (length,) = unpack_from(">i", data, position)
        body = data[position + 4 : position + 4 + length]
        if length >= 0 and len(body) < length:
            if position == 0:
                raise BadSetError("the first message is incomplete")
            break
        messages.append((position, *_message(length, body)))
        position += 4 + length
    return messages


def _message(length: int, body: bytes) -> tuple[int, bytes]:
    if length < 5 or body[0] > 1 or length < 5 + body[0]:
        raise BadSetError("a message that is too short, or whose magic is unknown")
    if body[0] == 0:
        codec, crc, payload = 0, body[1:5], body[5:]
    else:
        codec, crc, payload = body[1] & 3, body[2:6], body[6:]
    if zlib.crc32(payload) != int.from_bytes(crc, "big"):
        raise BadSetError("wrong CRC")
    return codec, payload


def _decompress(codec: int, payload: bytes) -> bytes:
    if codec == 1:
        return gunzip(payload)
    if codec == 2:
        return _xerial(payload) if payload.startswith(b"\x82SNAPPY\x00") else _snappy_block(payload)
    raise BadSetError("unknown codec")


def _xerial(data: bytes) -> bytes:
    """The blocks of a stream, or of several streams behind each other: each begins with a header (fault F13)."""
    out = b""
    position = 0
    while position < len(data):
        if data.startswith(b"\x82SNAPPY\x00", position):
            position += 16
            continue
        (length,) = unpack_from(">i", data, position)
        out += _snappy_block(data[position + 4 : position + 4 + length])
        position += 4 + length
    return out


def _snappy_block(data: bytes) -> bytes:
    """Decode a snappy block: a varint length, then literals, or copies of the bytes that are `distance` bytes before.

    It is written by hand, because every snappy library for Python, python-snappy too, calls the code that the product
    uses. An oracle must not share it.
    """
    total, position = _varint(data)
    out = bytearray()
    while position < len(data):
        tag = data[position]
        kind, size = tag & 3, (tag >> 2) + 1
        position += 1
        if kind == 0:
            if size > 60:
                extra = size - 60
                size = int.from_bytes(data[position : position + extra], "little") + 1
                position += extra
            out += data[position : position + size]
            position += size
            continue
        if kind == 1:
            size, distance, taken = ((tag >> 2) & 7) + 4, (tag >> 5 << 8) | data[position], 1
        else:
            taken = 2 if kind == 2 else 4
            distance = int.from_bytes(data[position : position + taken], "little")
        position += taken
        for _ in range(size):
            out.append(out[-distance])
    if len(out) != total:
        raise BadSetError("a snappy block whose size is not the size in its header")
    return bytes(out)


def _varint(data: bytes) -> tuple[int, int]:
    value = shift = position = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:
            return value, position
