"""The codecs of message sets and record batches, by their number on the wire.

No size that a stream states is trusted (faults R15, R16). gzip and lz4 are decompressed in small steps that stop at the
cap. The blocks of a zstd stream are added up, and the size in a snappy block is compared with the cap, before memory is
allocated.
"""

import threading
import zlib
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

# A decompressor receives pieces of at most _PIECE bytes and returns steps of at most _STEP bytes. So at most one step
# beyond the cap is in memory, and each of many small streams copies at most one piece.
_PIECE = 16 * 1024
_STEP = 256 * 1024
_KEPT_BYTES = 4 * 1024 * 1024  # memory of this size is used again
_NO_MEMORY = memoryview(bytearray())

# RFC 1952: magic | method | flags | time | extra flags | system, then the fields that bits of the flags announce.
_GZIP_HEADER = Struct("<HBB6x")
_GZIP_MAGIC, _GZIP_DEFLATE = 0x8B1F, 8
_GZIP_HEADER_CRC, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 2, 4, 8, 16
_GZIP_MAX_IGNORED = 18  # a header and a trailer: GZIPInputStream does not look at so few bytes after a member

# The framing of xerial's SnappyOutputStream, since 0.7 [kafka-0.7: Compression]: magic | version | lowest version that
# can read it | blocks. A block is its compressed length and its data, 32 KiB when uncompressed.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = Struct(">8sii")
_XERIAL_VERSION = 1
_XERIAL_BLOCK = 32 * 1024
_BLOCK_LENGTH = Struct(">i")
(_XERIAL_HEAD,) = _BLOCK_LENGTH.unpack_from(_XERIAL_MAGIC)

# LZ4 frame format: magic | FLG | BD | content size, if a bit of FLG is set | header checksum.
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_FLG = 4
_LZ4_SHORT_HEADER, _LZ4_SIZED_HEADER = 6, 14
_LZ4_SIZED = 0x08

# RFC 8878: a frame is a header, blocks with a header of three bytes each, and a checksum if a bit of the header is set.
# A skippable frame is a magic, a length and that many bytes.
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_SKIPPABLE_HEADER = Struct("<II")
_ZSTD_CHECKED, _ZSTD_CHECKSUM = 0b100, 4
# The header of a block: one bit for the last block, two bits for the kind, 21 bits for the size.
_ZSTD_BLOCK = Struct("<HB")
_ZSTD_KIND, _ZSTD_RLE, _ZSTD_COMPRESSED = 0b110, 0b010, 0b100
_ZSTD_LARGEST_BLOCK = 128 * 1024
_ZSTD_LARGEST_WINDOW = 1 << 27  # the window of level 22, and the default limit of the library


class OutputBuffer:
    """Bytes to which codecs append. Their memory is used again after `clear`, because touching new memory costs more.

    Attributes:
        size: the number of bytes.
    """

    __slots__ = ("_memory", "size")

    def __init__(self) -> None:
        self._memory = _NO_MEMORY
        self.size = 0

    def space(self, size: int) -> memoryview:
        """At least `size` bytes of memory after the bytes. Add what was written there to `size`."""
        needed = self.size + size
        if needed > len(self._memory):
            # Allocated memory costs nothing until it is written.
            larger = memoryview(np.empty(max(needed, len(self._memory) * 3 // 2), np.uint8).data)
            larger[: self.size] = self._memory[: self.size]
            self._memory = larger
        return self._memory[self.size :]

    def append(self, data: BytesLike) -> None:
        """Append a copy of `data`."""
        self.space(len(data))[: len(data)] = data
        self.size += len(data)

    @property
    def view(self) -> memoryview:
        """The bytes, as long as the buffer is not cleared."""
        return self._memory[: self.size]

    def clear(self) -> None:
        """Remove all bytes. The memory of an unusually large stream is released."""
        self.size = 0
        if len(self._memory) > _KEPT_BYTES:
            self._memory = _NO_MEMORY


@dataclass(frozen=True, slots=True)
class Codec:
    """A way to compress a message set.

    `decompress_into` appends at most `cap` bytes. It raises Corrupt for a stream that is incomplete or damaged, and
    TooLarge for one that contains more than `cap` bytes.
    """

    name: str
    compress: Callable[[bytes], bytes]
    decompress_into: Callable[[BytesLike, int, OutputBuffer], None]

    def decompress(self, data: BytesLike, cap: int) -> BytesLike:
        """The content of `data` in memory of its own; see `decompress_into`."""
        output = OutputBuffer()
        self.decompress_into(data, cap, output)
        return output.view


def _appending(decompress: Callable[[BytesLike, int], BytesLike]) -> Callable[[BytesLike, int, OutputBuffer], None]:
    """The codec's `decompress_into`, if its library grows memory of its own step by step."""

    def append(data: BytesLike, cap: int, output: OutputBuffer) -> None:
        output.append(decompress(data, cap))

    return append


def _too_large(cap: int) -> TooLarge:
    return TooLarge(f"compressed data contains more than the {cap} bytes that max_decompressed_bytes leaves for it")


def _plain_decompress(data: BytesLike, cap: int) -> BytesLike:
    if len(data) > cap:
        raise _too_large(cap)
    return data


def _gzip_compress(data: bytes) -> bytes:
    # Without a time in the header, equal messages become equal bytes.
    return bytes(igzip.compress(data, mtime=0))


def _gzip_decompress(data: BytesLike, cap: int) -> BytesLike:
    """The contents of one or more consecutive gzip members. Bytes after them that start no member are ignored.

    Kafka's consumers do the same, because they use Java's GZIPInputStream.
    """
    view, out = memoryview(data), bytearray()
    try:
        position = _decompress_member(view, 0, out, cap)
        while len(view) - position > _GZIP_MAX_IGNORED and _starts_member(view, position):
            position = _decompress_member(view, position, out, cap)
    except igzip_lib.IsalError as error:  # type: ignore[misc] # the stub calls the class an instance
        raise Corrupt("cannot decompress a gzip stream") from error
    return out


def _starts_member(view: memoryview, position: int) -> bool:
    """Whether a complete gzip header is at `position`, as GZIPInputStream checks it."""
    if len(view) - position < _GZIP_HEADER.size:
        return False
    magic, method, flags = _GZIP_HEADER.unpack_from(view, position)
    if (magic, method) != (_GZIP_MAGIC, _GZIP_DEFLATE):
        return False
    end = position + _GZIP_HEADER.size
    if flags & _GZIP_EXTRA:
        end += 2 + int.from_bytes(view[end : end + 2], "little")
    for _ in range((flags & _GZIP_NAME != 0) + (flags & _GZIP_COMMENT != 0)):
        text_end = bytes(view[end:]).find(0)
        if text_end < 0:
            return False
        end += text_end + 1
    if flags & _GZIP_HEADER_CRC:
        stored = int.from_bytes(view[end : end + 2], "little")
        end += 2
        if stored != zlib.crc32(view[position : end - 2]) & 0xFFFF:
            return False
    return end <= len(view)


def _decompress_member(view: memoryview, position: int, out: bytearray, cap: int) -> int:
    """Append the content of the gzip member at `position` to `out`. Returns the position after the member."""
    member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    while not member.eof:
        piece = memoryview(b"")
        if member.needs_input:
            if position >= len(view):
                raise Corrupt("a gzip stream is incomplete")
            piece = view[position : position + _PIECE]
            position += len(piece)
        out += member.decompress(piece, max_length=min(_STEP, cap - len(out) + 1))
        if len(out) > cap:
            raise _too_large(cap)
    return position - len(member.unused_data)


def _snappy_compress(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = snappy.compress(data[start : start + _XERIAL_BLOCK])
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _snappy_decompress_into(data: BytesLike, cap: int, output: OutputBuffer) -> None:
    """Append the contents of blocks in xerial's framing, or of one block without framing.

    python-snappy would return each block as a new object. cramjam reads the size of a block without decompressing it,
    so the sum is compared with the cap before memory is allocated, and it decompresses each block into one buffer.
    """
    view = memoryview(data)
    length = cramjam.snappy.decompress_raw_len
    try:
        size = 0
        for block in _snappy_blocks(view):
            size += length(block)
            if size > cap:
                raise _too_large(cap)
        unfilled = output.space(size)[:size]
        for block in _snappy_blocks(view):
            if filled := cramjam.snappy.decompress_raw_into(block, unfilled):
                unfilled = unfilled[filled:]
    except cramjam.DecompressionError as error:
        raise Corrupt("cannot decompress a snappy block") from error
    output.size += size - len(unfilled)


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """The blocks, one after the other: a stream can contain far too many for a list."""
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield view
        return
    position, unpack = 0, _BLOCK_LENGTH.unpack_from
    while position < len(view):
        if len(view) - position < _BLOCK_LENGTH.size:
            raise Corrupt("a snappy stream is incomplete: it ends in the length of a block")
        (length,) = unpack(view, position)
        if length == _XERIAL_HEAD and view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            # Streams may be concatenated, and xerial's SnappyInputStream skips the header of each (fault F13).
            position += _XERIAL_HEADER.size
            if position > len(view):
                raise Corrupt("a snappy stream is incomplete: it ends in its header")
            continue
        position += _BLOCK_LENGTH.size
        if not 0 < length <= len(view) - position:
            raise Corrupt(f"a snappy block states {length} bytes, but {len(view) - position} follow")
        yield view[position : position + length]
        position += length


def _lz4_compress(data: bytes) -> bytes:
    # Java reads only independent blocks.
    block_size = lz4.frame.BLOCKSIZE_MAX64KB
    return bytes(lz4.frame.compress(data, block_size=block_size, block_linked=False, store_size=False))


def _lz4_decompress(data: BytesLike, cap: int) -> BytesLike:
    """The contents of consecutive frames, of linked or independent blocks."""
    view, out = memoryview(data), bytearray()
    context = lz4.frame.create_decompression_context()
    position, ended = 0, False
    while position < len(view) or not ended:
        piece = view[position : position + _PIECE]
        try:
            step, used, ended = lz4.frame.decompress_chunk(context, piece, max_length=min(_STEP, cap - len(out) + 1))
        except RuntimeError as error:  # the library raises no other error
            raise Corrupt("cannot decompress an lz4 stream") from error
        if not used and not step:
            raise Corrupt("an lz4 stream is incomplete")
        position += used
        out += step
        if len(out) > cap:
            raise _too_large(cap)
    return out


def _old_lz4_compress(data: bytes) -> bytes:
    frame = _lz4_compress(data)
    header = _lz4_header(frame, checksum_start=0)
    return header + frame[len(header) :]


def _old_lz4_decompress(data: BytesLike, cap: int) -> BytesLike:
    """Like `_lz4_decompress`. The header of the first frame may have Kafka's old checksum, which is replaced.

    Until message format 1, Kafka's clients included the magic in the checksum, against the frame format (KAFKA-3160).
    """
    view = memoryview(data)
    if view[: len(_LZ4_MAGIC)] == _LZ4_MAGIC and len(view) > _LZ4_SHORT_HEADER:
        header = _lz4_header(view, checksum_start=0)
        if view[: len(header)] == header:
            data = b"".join((_lz4_header(view, checksum_start=_LZ4_FLG), view[len(header) :]))
    return _lz4_decompress(data, cap)


def _lz4_header(frame: BytesLike, *, checksum_start: int) -> bytes:
    """The header of a frame with a new checksum, the second byte of the XXH32 of the bytes from `checksum_start` on."""
    end = _LZ4_SIZED_HEADER if frame[_LZ4_FLG] & _LZ4_SIZED else _LZ4_SHORT_HEADER
    checksum = xxhash.xxh32_intdigest(frame[checksum_start:end]) >> 8 & 0xFF
    return bytes(frame[:end]) + bytes([checksum])


def _zstd_compress(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


class _ThreadDecompressor(threading.local):
    """A decompressor per thread. Making one costs as much as decompressing a small batch, and threads may not share."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor(max_window_size=_ZSTD_LARGEST_WINDOW)


_THREAD = _ThreadDecompressor()


def _zstd_decompress_into(data: BytesLike, cap: int, output: OutputBuffer) -> None:
    """Append the contents of consecutive frames, also skippable ones, which fill `data` to its last byte.

    The library takes an incomplete stream for a complete one, so the frames are measured first.
    """
    try:
        limit = min(_zstd_bound(memoryview(data)), cap) + 1
        unfilled = output.space(limit)[:limit]
        with _THREAD.zstd.stream_reader(data, read_across_frames=True) as stream:
            while unfilled and (step := stream.readinto(unfilled)):
                unfilled = unfilled[step:]
    except zstandard.ZstdError as error:
        reason = ": its window needs too much memory" if "too much memory" in str(error) else ""
        raise Corrupt(f"cannot decompress a zstd stream{reason}") from error
    filled = limit - len(unfilled)
    if filled > cap:
        raise _too_large(cap)
    output.size += filled


def _zstd_bound(view: memoryview) -> int:
    """The maximum size of the content of the frames in `view`. All frames are there to their last byte."""
    position, bound = _zstd_frame(view, 0)
    while position < len(view):
        position, frame_bound = _zstd_frame(view, position)
        bound += frame_bound
    if position > len(view):
        raise Corrupt("a zstd stream is incomplete")
    return bound


def _zstd_frame(view: memoryview, position: int) -> tuple[int, int]:
    """The end of the frame at `position`, which can be past the end of `view`, and the maximum size of its content."""
    if len(view) - position < _ZSTD_SKIPPABLE_HEADER.size:
        raise Corrupt("a zstd stream is incomplete: it ends in a header")
    magic, length = _ZSTD_SKIPPABLE_HEADER.unpack_from(view, position)
    if magic & ~0xF == _ZSTD_SKIPPABLE:
        return position + _ZSTD_SKIPPABLE_HEADER.size + length, 0
    if magic != _ZSTD_MAGIC:
        raise Corrupt("a zstd stream has bytes between its frames that are not a frame")
    descriptor = length & 0xFF
    end, bound = _zstd_blocks(view, position + _zstd_header_bytes(descriptor))
    return end + (_ZSTD_CHECKSUM if descriptor & _ZSTD_CHECKED else 0), bound


def _zstd_header_bytes(descriptor: int) -> int:
    """Magic | descriptor | window, unless the frame is a single segment | dictionary id | size of the content."""
    single = descriptor >> 5 & 1
    return 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]


def _zstd_blocks(view: memoryview, position: int) -> tuple[int, int]:
    """The end of the blocks that start at `position`, and the maximum size of their content.

    A block can be a header of three bytes without content: the loop needs a quarter of a second for 4 MiB of these.
    """
    unpack, end = _ZSTD_BLOCK.unpack_from, len(view) - _ZSTD_BLOCK.size
    bound = last = 0
    while not last and position <= end:
        low, high = unpack(view, position)
        last, kind, size = low & 1, low & _ZSTD_KIND, low >> 3 | high << 13
        position += _ZSTD_BLOCK.size + (1 if kind == _ZSTD_RLE else size)
        if size:
            bound += _ZSTD_LARGEST_BLOCK if kind == _ZSTD_COMPRESSED else min(size, _ZSTD_LARGEST_BLOCK)
    if not last:
        raise Corrupt("a zstd stream is incomplete")
    return position, bound


CODECS: dict[int, Codec] = {
    0: Codec("none", bytes, _appending(_plain_decompress)),
    1: Codec("gzip", _gzip_compress, _appending(_gzip_decompress)),
    2: Codec("snappy", _snappy_compress, _snappy_decompress_into),
    3: Codec("lz4", _lz4_compress, _appending(_lz4_decompress)),
    4: Codec("zstd", _zstd_compress, _zstd_decompress_into),
}
OLD_LZ4 = Codec("lz4", _old_lz4_compress, _appending(_old_lz4_decompress))
# The codecs of messages, for message formats 0 and 1.
MESSAGE_CODECS: tuple[dict[int, Codec], ...] = (
    {1: CODECS[1], 2: CODECS[2], 3: OLD_LZ4},
    {1: CODECS[1], 2: CODECS[2], 3: CODECS[3]},
)
CODECS_07: dict[int, Codec] = {number: CODECS[number] for number in (0, 1, 2)}
CODEC_NUMBERS: dict[str, int] = {codec.name: number for number, codec in CODECS.items()}
