"""The codecs of message sets, by their number on the wire.

Nothing a stream claims is believed: gzip is inflated in small steps and stops at the cap, and what a snappy block says
it holds is held against what is left of the cap before memory is given (R15, R16).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct

import cramjam
from isal import igzip, igzip_lib

from kafka_io.errors import Corrupt, TooLarge

Bytes = bytes | bytearray | memoryview

# A member is given to the inflater in pieces of at most _PIECE bytes and taken from it in steps of at most _STEP: what
# is held beyond the cap is one step, and what many small members copy is one piece each.
_PIECE = 16 * 1024
_STEP = 256 * 1024

# The framing of xerial's SnappyOutputStream, which 0.7 uses already (facts, 5): magic | version | lowest version that
# can read it, then blocks of 32 KiB uncompressed, each after its compressed length.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = Struct(">8sii")
_XERIAL_VERSION = 1
_XERIAL_BLOCK = 32 * 1024
_BLOCK_LENGTH = Struct(">i")


@dataclass(frozen=True, slots=True)
class Codec:
    """A way to compress a message set; `decompress` gives at most `cap` bytes.

    `decompress` raises Corrupt for a stream that is not whole and right, TooLarge for one that holds more than `cap`.
    """

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[Bytes, int], Bytes]


def _too_large(cap: int) -> TooLarge:
    return TooLarge(f"compressed data holds more than the {cap} bytes that max_decompressed_bytes leaves for it")


def _plain_compress(data: bytes) -> bytes:
    return data


def _plain_decompress(data: Bytes, cap: int) -> Bytes:
    if len(data) > cap:
        raise _too_large(cap)
    return data


def _gzip_compress(data: bytes) -> bytes:
    # No time in the header: the same messages give the same bytes.
    return bytes(igzip.compress(data, mtime=0))


def _gzip_decompress(data: Bytes, cap: int) -> Bytes:
    """One gzip member or several, one after the other, up to the last byte of `data`."""
    out = bytearray()
    view = memoryview(data)
    try:
        at = _inflate_member(view, 0, out, cap)
        while at < len(view):
            at = _inflate_member(view, at, out, cap)
    except igzip_lib.IsalError as error:  # type: ignore[misc] # the stub calls the class an instance
        raise Corrupt(f"a gzip stream that cannot be read: {error}") from error
    return out


def _inflate_member(view: memoryview, at: int, out: bytearray, cap: int) -> int:
    """Append what the member at `at` holds to `out`; where it ends."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    while not inflater.eof:
        piece = memoryview(b"")
        if inflater.needs_input:
            if at >= len(view):
                raise Corrupt("a gzip stream that is cut")
            piece = view[at : at + _PIECE]
            at += len(piece)
        out += inflater.decompress(piece, max_length=min(_STEP, cap - len(out) + 1))
        if len(out) > cap:
            raise _too_large(cap)
    return at - len(inflater.unused_data)


def _snappy_compress(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)]
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _snappy_decompress(data: Bytes, cap: int) -> Bytes:
    """Blocks in xerial's framing, or one bare block."""
    view = memoryview(data)
    try:
        size = 0
        for block in _snappy_blocks(view):
            size += cramjam.snappy.decompress_raw_len(block)
            if size > cap:
                raise _too_large(cap)
        out = bytearray(size)
        filled = 0
        for block in _snappy_blocks(view):
            filled += cramjam.snappy.decompress_raw_into(block, memoryview(out)[filled:])
    except cramjam.DecompressionError as error:
        raise Corrupt(f"a snappy block that cannot be read: {error}") from error
    return out


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """One after the other; there may be far too many to hold."""
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield view
        return
    at = _XERIAL_HEADER.size
    if len(view) < at:
        raise Corrupt("a snappy stream that is cut in its header")
    while at < len(view):
        if len(view) - at < _BLOCK_LENGTH.size:
            raise Corrupt("a snappy stream that is cut in a block's length")
        (length,) = _BLOCK_LENGTH.unpack_from(view, at)
        at += _BLOCK_LENGTH.size
        if not 0 < length <= len(view) - at:
            raise Corrupt(f"a snappy block of {length} bytes where {len(view) - at} are left")
        yield view[at : at + length]
        at += length


CODECS: dict[int, Codec] = {
    0: Codec("none", _plain_compress, _plain_decompress),
    1: Codec("gzip", _gzip_compress, _gzip_decompress),
    2: Codec("snappy", _snappy_compress, _snappy_decompress),
}
CODEC_NUMBERS: dict[str, int] = {codec.name: number for number, codec in CODECS.items()}
