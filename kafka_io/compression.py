"""The codecs of message sets and record batches, by their number on the wire.

Nothing a stream claims is believed: gzip and lz4 are read in small steps and stop at the cap, a zstd frame is measured
block by block, and what a snappy block says it holds is held against the cap before memory is given (faults R15, R16).
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct

import cramjam
import lz4.frame
import numpy as np
import snappy
import xxhash
import zstandard
from isal import igzip, igzip_lib

from kafka_io.errors import Corrupt, TooLarge

BytesLike = bytes | bytearray | memoryview

# A stream is given to its reader in pieces of at most _PIECE bytes and taken from it in steps of at most _STEP: what is
# held beyond the cap is one step, and what many small streams copy is one piece each.
_PIECE = 16 * 1024
_STEP = 256 * 1024

# The framing of xerial's SnappyOutputStream, which 0.7 uses already [kafka-0.7: Compression]: magic | version | lowest
# version that can read it, then blocks of 32 KiB uncompressed, each after its compressed length.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = Struct(">8sii")
_XERIAL_VERSION = 1
_XERIAL_BLOCK = 32 * 1024
_BLOCK_LENGTH = Struct(">i")

# LZ4 frame format: magic | FLG | BD | content size, if FLG says so | header checksum.
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_FLG_AT = 4
_LZ4_SHORT_HEADER, _LZ4_SIZED_HEADER = 6, 14
_LZ4_SIZED = 0x08

# RFC 8878: a frame is a header, blocks that each begin with three bytes, and a checksum if its header says so. A
# skippable frame is a magic and its length.
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_SKIPPABLE_HEADER = Struct("<II")
_ZSTD_CHECKED, _ZSTD_CHECKSUM = 0b100, 4
# Of a block: whether it is the last, its kind in two bits, its size in 21.
_ZSTD_BLOCK = Struct("<HB")
_ZSTD_KIND, _ZSTD_RLE, _ZSTD_COMPRESSED = 0b110, 0b010, 0b100
_ZSTD_LARGEST_BLOCK = 128 * 1024
_ZSTD_LARGEST_WINDOW = 1 << 27  # what level 22 asks for, and the library's own default limit


@dataclass(frozen=True, slots=True)
class Codec:
    """A way to compress a message set; `decompress` gives at most `cap` bytes.

    `decompress` raises Corrupt for a stream that is not whole and right, TooLarge for one that holds more than `cap`.
    """

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[BytesLike, int], BytesLike]


def _too_large(cap: int) -> TooLarge:
    return TooLarge(f"compressed data holds more than the {cap} bytes that max_decompressed_bytes leaves for it")


def _plain_compress(data: bytes) -> bytes:
    return data


def _plain_decompress(data: BytesLike, cap: int) -> BytesLike:
    if len(data) > cap:
        raise _too_large(cap)
    return data


def _gzip_compress(data: bytes) -> bytes:
    # No time in the header: the same messages give the same bytes.
    return bytes(igzip.compress(data, mtime=0))


def _gzip_decompress(data: BytesLike, cap: int) -> BytesLike:
    """One gzip member or several, one after the other, up to the last byte of `data`."""
    view, out = memoryview(data), bytearray()
    try:
        at = _read_member(view, 0, out, cap)
        while at < len(view):
            at = _read_member(view, at, out, cap)
    except igzip_lib.IsalError as error:  # type: ignore[misc] # the stub calls the class an instance
        raise Corrupt(f"a gzip stream that cannot be read: {error}") from error
    return out


def _read_member(view: memoryview, at: int, out: bytearray, cap: int) -> int:
    """Append what the gzip member at `at` holds to `out`; where it ends."""
    reader = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    while not reader.eof:
        piece = memoryview(b"")
        if reader.needs_input:
            if at >= len(view):
                raise Corrupt("a gzip stream that is cut")
            piece = view[at : at + _PIECE]
            at += len(piece)
        out += reader.decompress(piece, max_length=min(_STEP, cap - len(out) + 1))
        if len(out) > cap:
            raise _too_large(cap)
    return at - len(reader.unused_data)


def _snappy_compress(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)]
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = snappy.compress(data[at : at + _XERIAL_BLOCK])
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _snappy_decompress(data: BytesLike, cap: int) -> BytesLike:
    """Blocks in xerial's framing, or one bare block.

    python-snappy returns each block as a new object. cramjam tells the size of a block beforehand, so the sum is held
    against the cap before memory is allocated, and decompresses each block to its place in one buffer.
    """
    view = memoryview(data)
    length = cramjam.snappy.decompress_raw_len
    try:
        size = 0
        for block in _snappy_blocks(view):
            size += length(block)
            if size > cap:
                raise _too_large(cap)
        out = bytearray(size)
        rest = memoryview(out)
        for block in _snappy_blocks(view):
            if filled := cramjam.snappy.decompress_raw_into(block, rest):
                rest = rest[filled:]
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
    unpack = _BLOCK_LENGTH.unpack_from
    while at < len(view):
        if len(view) - at < _BLOCK_LENGTH.size:
            raise Corrupt("a snappy stream that is cut in a block's length")
        (length,) = unpack(view, at)
        at += _BLOCK_LENGTH.size
        if not 0 < length <= len(view) - at:
            raise Corrupt(f"a snappy block of {length} bytes where {len(view) - at} are left")
        yield view[at : at + length]
        at += length


def _lz4_compress(data: bytes) -> bytes:
    # Java reads only independent blocks.
    block_size = lz4.frame.BLOCKSIZE_MAX64KB
    return bytes(lz4.frame.compress(data, block_size=block_size, block_linked=False, store_size=False))


def _lz4_decompress(data: BytesLike, cap: int) -> BytesLike:
    """Frames one after the other, of linked or independent blocks."""
    view, out = memoryview(data), bytearray()
    context = lz4.frame.create_decompression_context()
    at, ended = 0, False
    while at < len(view) or not ended:
        piece = view[at : at + _PIECE]
        try:
            step, taken, ended = lz4.frame.decompress_chunk(context, piece, max_length=min(_STEP, cap - len(out) + 1))
        except RuntimeError as error:  # the library's only kind
            raise Corrupt(f"an lz4 stream that cannot be read: {error}") from error
        if not taken and not step:
            raise Corrupt("an lz4 stream that is cut")
        at += taken
        out += step
        if len(out) > cap:
            raise _too_large(cap)
    return out


def _old_lz4_compress(data: bytes) -> bytes:
    frame = _lz4_compress(data)
    return _with_lz4_checksum(frame, _old_lz4_checksum(frame))


def _old_lz4_decompress(data: BytesLike, cap: int) -> BytesLike:
    """As `_lz4_decompress`; the first frame's header may have Kafka's old checksum."""
    view = memoryview(data)
    if view[: len(_LZ4_MAGIC)] == _LZ4_MAGIC and len(view) > _LZ4_SHORT_HEADER:
        at = _lz4_checksum_at(view)
        if view[at : at + 1] == bytes([_old_lz4_checksum(view)]):
            data = _with_lz4_checksum(view, _header_checksum(view[_LZ4_FLG_AT:at]))
    return _lz4_decompress(data, cap)


def _lz4_checksum_at(frame: BytesLike) -> int:
    return _LZ4_SIZED_HEADER if frame[_LZ4_FLG_AT] & _LZ4_SIZED else _LZ4_SHORT_HEADER


def _with_lz4_checksum(frame: BytesLike, checksum: int) -> bytes:
    at = _lz4_checksum_at(frame)
    return b"".join((frame[:at], bytes([checksum]), frame[at + 1 :]))


def _old_lz4_checksum(frame: BytesLike) -> int:
    """Until message format 1 Kafka's clients counted the magic in; the frame format leaves it out (KAFKA-3160)."""
    return _header_checksum(frame[: _lz4_checksum_at(frame)])


def _header_checksum(header: BytesLike) -> int:
    """The checksum byte of an LZ4 frame header: the second byte of its XXH32."""
    return xxhash.xxh32_intdigest(header) >> 8 & 0xFF


def _zstd_compress(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


# Making a decompressor costs as much as reading a small batch, and threads may not share one.
_ZSTD = threading.local()


def _zstd_decompressor() -> zstandard.ZstdDecompressor:
    """This thread's own."""
    found: zstandard.ZstdDecompressor | None = getattr(_ZSTD, "decompressor", None)
    if found is None:
        found = _ZSTD.decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_LARGEST_WINDOW)
    return found


def _zstd_decompress(data: BytesLike, cap: int) -> BytesLike:
    """Frames one after the other, also skippable ones, up to the last byte of `data`.

    The library takes a stream that is cut for one that ends, so the frames are measured first.
    """
    try:
        most = _zstd_bound(memoryview(data))
        # Pages that stay untouched cost nothing.
        out = memoryview(np.empty(min(most, cap) + 1, np.uint8).data)
        filled = 0
        with _zstd_decompressor().stream_reader(data, read_across_frames=True) as stream:
            while filled < len(out) and (step := stream.readinto(out[filled:])):
                filled += step
    except zstandard.ZstdError as error:
        raise Corrupt(f"a zstd stream that cannot be read: {error}") from error
    if filled > cap:
        raise _too_large(cap)
    return out[:filled]


def _zstd_bound(view: memoryview) -> int:
    """The most that the frames in `view` can hold, which are all there to their last byte."""
    at, most = _zstd_frame(view, 0)
    while at < len(view):
        at, more = _zstd_frame(view, at)
        most += more
    if at > len(view):
        raise Corrupt("a zstd stream that is cut")
    return most


def _zstd_frame(view: memoryview, at: int) -> tuple[int, int]:
    """Where the frame at `at` ends, maybe past the end of `view`, and the most that it can hold."""
    if len(view) - at < _ZSTD_SKIPPABLE_HEADER.size:
        raise Corrupt("a zstd stream that is cut in a header")
    magic, length = _ZSTD_SKIPPABLE_HEADER.unpack_from(view, at)
    if magic & ~0xF == _ZSTD_SKIPPABLE:
        return at + _ZSTD_SKIPPABLE_HEADER.size + length, 0
    if magic != _ZSTD_MAGIC:
        raise Corrupt("a zstd stream with something else between its frames")
    descriptor = length & 0xFF
    at, most = _zstd_blocks(view, at + _zstd_header_bytes(descriptor))
    return at + (_ZSTD_CHECKSUM if descriptor & _ZSTD_CHECKED else 0), most


def _zstd_header_bytes(descriptor: int) -> int:
    """Magic | descriptor | window, unless the frame is one segment | number of the dictionary | size of the content."""
    single = descriptor >> 5 & 1
    return 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]


def _zstd_blocks(view: memoryview, at: int) -> tuple[int, int]:
    """Where the last of the blocks from `at` on ends, and the most that they can hold.

    A block may be three bytes that hold nothing: 4 MiB of these take a quarter of a second.
    """
    unpack, end = _ZSTD_BLOCK.unpack_from, len(view) - _ZSTD_BLOCK.size
    most = last = 0
    while not last and at <= end:
        low, high = unpack(view, at)
        last, kind, size = low & 1, low & _ZSTD_KIND, low >> 3 | high << 13
        at += _ZSTD_BLOCK.size + (1 if kind == _ZSTD_RLE else size)
        if size:
            most += _ZSTD_LARGEST_BLOCK if kind == _ZSTD_COMPRESSED else min(size, _ZSTD_LARGEST_BLOCK)
    if not last:
        raise Corrupt("a zstd stream that is cut")
    return at, most


CODECS: dict[int, Codec] = {
    0: Codec("none", _plain_compress, _plain_decompress),
    1: Codec("gzip", _gzip_compress, _gzip_decompress),
    2: Codec("snappy", _snappy_compress, _snappy_decompress),
    3: Codec("lz4", _lz4_compress, _lz4_decompress),
    4: Codec("zstd", _zstd_compress, _zstd_decompress),
}
OLD_LZ4 = Codec("lz4", _old_lz4_compress, _old_lz4_decompress)
# What messages may be compressed with, by format.
MESSAGE_CODECS: tuple[dict[int, Codec], ...] = (
    {1: CODECS[1], 2: CODECS[2], 3: OLD_LZ4},
    {1: CODECS[1], 2: CODECS[2], 3: CODECS[3]},
)
CODECS_07: dict[int, Codec] = {number: CODECS[number] for number in (0, 1, 2)}
CODEC_NUMBERS: dict[str, int] = {codec.name: number for number, codec in CODECS.items()}
