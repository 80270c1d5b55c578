"""Decompresses gzip as Java's GZIPInputStream does, slowly and without the code under test."""

import gzip
import zlib
from io import BytesIO

_HEADER_AND_TRAILER = 18
_FLAGS_AT, _HEADER_CRC, _RESERVED = 3, 0x02, 0xE0


def gunzip(data: bytes) -> bytes:
    """The contents of the members. Bytes after the last one are ignored if they start no member.

    Raises:
        zlib.error, EOFError, OSError: a member is damaged or incomplete.
    """
    out, remaining = _member(data)
    while len(remaining) > _HEADER_AND_TRAILER and _starts_member(remaining):
        content, remaining = _member(remaining)
        out += content
    return out


def _member(data: bytes) -> tuple[bytes, bytes]:
    stream = zlib.decompressobj(wbits=31)
    content = stream.decompress(_without_reserved_flags(data))
    if not stream.eof:
        raise EOFError("a member ends early")
    return content, stream.unused_data


def _without_reserved_flags(data: bytes) -> bytes:
    """The same member without the three reserved flags, which Java ignores and zlib refuses."""
    if len(data) <= _FLAGS_AT or not data[_FLAGS_AT] & _RESERVED or not _starts_member(data):
        return data
    stream = BytesIO(data)
    gzip._read_gzip_header(stream)  # type: ignore[attr-defined]
    header, body = bytearray(data[: stream.tell()]), data[stream.tell() :]
    is_intact = int.from_bytes(header[-2:], "little") == zlib.crc32(header[:-2]) & 0xFFFF
    header[_FLAGS_AT] &= ~_RESERVED & 0xFF
    if header[_FLAGS_AT] & _HEADER_CRC and is_intact:
        header[-2:] = (zlib.crc32(header[:-2]) & 0xFFFF).to_bytes(2, "little")
    return bytes(header) + body


def _starts_member(data: bytes) -> bool:
    try:
        gzip._read_gzip_header(BytesIO(data))  # type: ignore[attr-defined]
    except (EOFError, OSError):
        return False
    return True
