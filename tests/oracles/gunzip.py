"""Decompresses gzip as Java's GZIPInputStream does, slowly and without the code under test."""

import gzip
import zlib
from io import BytesIO

_HEADER_AND_TRAILER = 18


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
    content = stream.decompress(data)
    if not stream.eof:
        raise EOFError("a member ends early")
    return content, stream.unused_data


def _starts_member(data: bytes) -> bool:
    try:
        gzip._read_gzip_header(BytesIO(data))  # type: ignore[attr-defined]
    except (EOFError, OSError):
        return False
    return True
