"""A second decoder of message formats 0 to 2: slow, simple, and without any code of the decoder that it checks.

It is written from the layouts in [kafka-0.8: Record batches, Message sets]. It raises BadLogError if the bytes are not
valid; on some invalid bytes other exceptions come first. It has no limits.
"""

import zlib
from struct import unpack_from

import crcmod.predefined
import lz4.block
import lz4.frame
import zstandard

from tests.oracles.gunzip import gunzip
from tests.oracles.sets_v07 import _snappy_block, _xerial

Headers = list[tuple[bytes, bytes | None]]
Row = tuple[int, int, int, bytes | None, bytes | None, Headers]

_crc32c = crcmod.predefined.mkCrcFun("crc-32c")


class BadLogError(Exception):
    """The bytes are not a valid log."""


def decode(data: bytes, *, inside: bool = False) -> list[Row]:
    """The (offset, timestamp, timestamp type, key, value, headers) of each record. An incomplete last one is dropped.

    A message set `inside` a compressed message must be complete and must not contain compressed messages.
    """
    rows: list[Row] = []
    position = 0
    while len(data) - position >= 17:
        (length,) = unpack_from(">i", data, position + 8)
        entry = data[position : position + 12 + length]
        if len(entry) < 12 + length:
            break
        if inside and (entry[16] == 2 or entry[17] & 7):
            raise BadLogError("a record batch or a compressed message inside a compressed message")
        rows += _batch(entry) if entry[16] == 2 else _message(entry)
        position += 12 + length
    if inside and position < len(data):
        raise BadLogError("the message set inside a compressed message is incomplete")
    return rows


def _message(entry: bytes) -> list[Row]:
    offset, _, crc, magic, attributes = unpack_from(">qiIBB", entry)
    if zlib.crc32(entry[16:]) != crc or magic > 1:
        raise BadLogError("wrong CRC or magic")
    time, kind, position = -1, -1, 18
    if magic == 1:
        time, kind, position = unpack_from(">q", entry, 18)[0], attributes >> 3 & 1, 26
    key, position = _sized(entry, position)
    value, position = _sized(entry, position)
    if position != len(entry):
        raise BadLogError("bytes left over")
    codec = attributes & 7
    if codec == 0:
        return [(offset, time, kind, key, value, [])]
    if value is None:
        raise BadLogError("a compressed message has no value")
    inner = decode(_decompress(codec, value), inside=True)
    if magic == 0:
        return inner
    shift = offset - inner[-1][0]
    return [(row[0] + shift, time if kind else row[1], 1 if kind else row[2], row[3], row[4], row[5]) for row in inner]


def _sized(data: bytes, position: int) -> tuple[bytes | None, int]:
    (size,) = unpack_from(">i", data, position)
    if size == -1:
        return None, position + 4
    if size < 0 or size > len(data) - position - 4:
        raise BadLogError("a field that does not fit")
    return data[position + 4 : position + 4 + size], position + 4 + size


def _batch(entry: bytes) -> list[Row]:
    base, _, _, _, crc, attributes, last_delta, base_time, max_time = unpack_from(">qiiBIhiqq", entry)
    (count,) = unpack_from(">i", entry, 57)
    if _crc32c(entry[21:]) != crc:
        raise BadLogError("wrong CRC")
    if attributes & 0x20:
        return []
    records = entry[61:]
    if attributes & 7 and records:
        records = _decompress(attributes & 7, records)
    rows: list[Row] = []
    position = 0
    for _ in range(count):
        length, start = _varint(records, position)
        position = start + length
        if not start < position <= len(records):
            raise BadLogError("a record that ends after its batch")
        delta, time_delta, key, value, headers = _record(records[start:position])
        time = max_time if attributes & 8 else (base_time + time_delta + 2**63) % 2**64 - 2**63
        if delta > last_delta or (rows and base + delta <= rows[-1][0]):
            raise BadLogError("an offset that is not larger than the one before, or larger than the last")
        rows.append((base + delta, time, attributes >> 3 & 1, key, value, headers))
    if position != len(records):
        raise BadLogError("bytes left over")
    return rows


def _record(record: bytes) -> tuple[int, int, bytes | None, bytes | None, Headers]:
    time_delta, position = _varint(record, 1)
    delta, position = _varint(record, position)
    key, position = _counted(record, position)
    value, position = _counted(record, position)
    count, position = _varint(record, position)
    headers: Headers = []
    for _ in range(count):
        name, position = _counted(record, position)
        content, position = _counted(record, position)
        if name is None:
            raise BadLogError("a header without a name")
        headers.append((name, content))
    if position != len(record):
        raise BadLogError("bytes left over")
    return delta, time_delta, key, value, headers


def _counted(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _varint(data, position)
    if not -1 <= size <= len(data) - position:
        raise BadLogError("a field that does not fit")
    return (None, position) if size == -1 else (data[position : position + size], position + size)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position


def _decompress(codec: int, data: bytes) -> bytes:
    if codec == 1:
        return gunzip(data)
    if codec == 2:
        return _xerial(data) if data.startswith(b"\x82SNAPPY\x00") else _snappy_block(data)
    if codec == 3:
        return _lz4(data)
    if codec == 4:
        return _zstd(data)
    raise BadLogError("unknown codec")


def _zstd(data: bytes) -> bytes:
    out = b""
    while True:
        frame = zstandard.ZstdDecompressor().decompressobj()
        out += frame.decompress(data)
        if not frame.eof:
            raise BadLogError("a frame that is cut")
        if not frame.unused_data:
            return out
        data = frame.unused_data


def _lz4(data: bytes) -> bytes:
    """Decode a sequence of frames, and skip skippable ones. No checksum is verified."""
    content = b""
    position = 0
    while position < len(data):
        magic, size = unpack_from("<II", data, position)
        if magic >> 4 == 0x184D2A5:
            position += 8 + size
            continue
        if magic != 0x184D2204:
            raise BadLogError("not an lz4 frame")
        frame, position = _lz4_frame(data, position)
        content += frame
    if position > len(data):
        raise BadLogError("a frame that is cut")
    return content


def _lz4_frame(data: bytes, position: int) -> tuple[bytes, int]:
    flags = data[position + 4]
    out = b""
    position += 15 if flags & 0x08 else 7
    while size := unpack_from("<I", data, position)[0]:
        block = data[position + 4 : position + 4 + (size & 0x7FFFFFFF)]
        out += block if size >> 31 else lz4.block.decompress(block, 1 << 22, dict=out[-65536:])
        position += 4 + len(block) + (4 if flags & 0x10 else 0)
    return out, position + 4 + (4 if flags & 0x04 else 0)
