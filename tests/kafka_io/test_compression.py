"""Codecs return the original data, and never more than the cap, whatever size a stream states."""

import contextlib
import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from kafka_io import compression
from kafka_io.compression import CODEC_NUMBERS, CODECS, OLD_LZ4, Codec
from kafka_io.errors import Corrupt, TooLarge, WireError
from tests.oracles import sets_v07
from tests.oracles.gunzip import gunzip

MIB = 1024 * 1024
GZIP, SNAPPY, LZ4, ZSTD = CODECS[1], CODECS[2], CODECS[3], CODECS[4]
EVERY = [*CODECS.values(), OLD_LZ4]
TEXT = b"to be, or not to be, that is the question " * 50
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def snappy_block(data: bytes) -> bytes:
    return bytes(snappy.compress(data))


def xerial(*blocks: bytes) -> bytes:
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def zeros_gzipped(size: int) -> bytes:
    """A gzip stream of `size` zero bytes, built without having them in memory."""
    deflater = isal_zlib.compressobj(level=1, wbits=isal_zlib.MAX_WBITS + 16)
    parts = [deflater.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join((*parts, deflater.flush()))


@contextmanager
def at_most(budget: int) -> Iterator[None]:
    """Fail if Python's memory grows by more than `budget` bytes in the `with` block."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= budget


def test_codecs_have_the_numbers_of_the_protocol() -> None:
    assert CODEC_NUMBERS == {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.mark.parametrize("codec", EVERY)
@settings(deadline=None)
@given(data=st.binary(max_size=200) | st.integers(0, 100_000).map(lambda size: (b"%d," % size) * (size // 5)))
def test_data_survives_a_round_trip_with_a_cap_of_its_size(codec: Codec, data: bytes) -> None:
    assert codec.decompress(codec.compress(data), len(data)) == data


@pytest.mark.parametrize("codec", EVERY)
def test_one_byte_above_the_cap_is_too_large(codec: Codec) -> None:
    with pytest.raises(TooLarge, match="max_decompressed_bytes"):
        codec.decompress(codec.compress(TEXT), len(TEXT) - 1)


def test_gzip_of_equal_bytes_is_equal() -> None:
    assert GZIP.compress(TEXT) == GZIP.compress(TEXT)
    assert GZIP.compress(TEXT)[4:8] == bytes(4)
    assert gzip.decompress(GZIP.compress(TEXT)) == TEXT


# fault R18
@pytest.mark.parametrize("members", [2, 3, 2000])
def test_consecutive_gzip_members_are_decompressed(members: int) -> None:
    data = b"".join(gzip.compress(b"%d;" % number) for number in range(members))
    assert GZIP.decompress(data, MIB) == b"".join(b"%d;" % number for number in range(members))


def test_a_gzip_header_with_all_fields_is_accepted() -> None:
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x04\x00abcd" + b"name\x00" + b"comment\x00"
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    member = header + gzip.compress(TEXT, mtime=0)[10:]
    padding = gzip.compress(bytes(range(256)) * 100)
    assert GZIP.decompress(padding + member, MIB) == bytes(range(256)) * 100 + TEXT


@pytest.mark.parametrize("flags", [0xE0, 0xE2])
def test_reserved_flags_of_a_gzip_header_are_ignored_as_in_java(flags: int) -> None:
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    checksum = struct.pack("<H", zlib.crc32(header) & 0xFFFF) if flags & 2 else b""
    member = header + checksum + gzip.compress(TEXT, mtime=0)[10:]
    assert GZIP.decompress(member, MIB) == gunzip(member) == TEXT


# fault N12; java.util.zip.GZIPInputStream.readTrailer
@pytest.mark.parametrize(
    "tail",
    [
        b"\x00",
        b"junk",
        b"junk" * 5000,
        b"\x1f\x8b",
        b"\x1f\x8b\x08\x00" + bytes(14),  # 18 bytes, in which no member fits
        b"\x1f\x8b\x07\x00" + bytes(20),  # another method
        b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff" + bytes(20),  # an extra field that is longer than the rest
        b"\x1f\x8b\x08\x08" + bytes(6) + b"a name without an end",
        b"\x1f\x8b\x08\x02" + bytes(6) + b"\x00\x00" + bytes(20),  # a wrong checksum of the header
    ],
)
@pytest.mark.parametrize("members", [1, 2])
def test_bytes_after_the_last_gzip_member_are_ignored_as_in_java(members: int, tail: bytes) -> None:
    assert GZIP.decompress(gzip.compress(TEXT) * members + tail, MIB) == TEXT * members


# fault R14
@pytest.mark.parametrize(
    "tail",
    # Without a fixed time the header has the present one, and the processes of pytest-xdist collect different tests.
    [b"\x1f\x8b\x08\x00" + bytes(20), gzip.compress(TEXT, mtime=0)[:-1], gzip.compress(b"", mtime=0)[:-1]],
)
def test_a_later_gzip_member_that_is_damaged_or_incomplete_is_corrupt(tail: bytes) -> None:
    with pytest.raises(Corrupt, match="gzip"):
        GZIP.decompress(gzip.compress(TEXT) + tail, MIB)


# fault R14
@pytest.mark.parametrize("codec", [GZIP, LZ4, OLD_LZ4, ZSTD])
def test_an_incomplete_stream_is_corrupt_wherever_it_ends(codec: Codec) -> None:
    whole = codec.compress(TEXT)
    for size in range(len(whole)):
        with pytest.raises(Corrupt, match=codec.name):
            codec.decompress(whole[:size], MIB)


# fault R14
@pytest.mark.parametrize("codec", [LZ4, OLD_LZ4, ZSTD])
@pytest.mark.parametrize("tail", [b"\x00", b"junk", b"more junk than a header takes"])
def test_junk_after_a_frame_is_corrupt(codec: Codec, tail: bytes) -> None:
    with pytest.raises(Corrupt, match=codec.name):
        codec.decompress(codec.compress(TEXT) + tail, MIB)


# fault R18
@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_consecutive_streams_are_decompressed(codec: Codec) -> None:
    assert codec.decompress(codec.compress(TEXT) * 3, MIB) == TEXT * 3


# fault R18
@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_skippable_frames_are_skipped(codec: Codec) -> None:
    skippable = struct.pack("<II", 0x184D2A5F, 5) + b"other"
    assert codec.decompress(skippable + codec.compress(TEXT) + skippable, MIB) == TEXT


# fault R18
@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("checked", [True, False])
def test_lz4_frames_of_every_kind_are_decompressed(linked: bool, sized: bool, checked: bool) -> None:
    frame = lz4.frame.compress(
        TEXT * 100, block_linked=linked, store_size=sized, content_checksum=checked, block_checksum=checked
    )
    assert LZ4.decompress(frame, MIB) == OLD_LZ4.decompress(frame, MIB) == TEXT * 100


# fault R18: the byte that kafka-clients 0.8.2 and 0.9 write for FLG 0x60, BD 0x40.
def test_the_old_header_checksum_of_lz4_includes_the_magic() -> None:
    right, old = LZ4.compress(TEXT), OLD_LZ4.compress(TEXT)
    assert right[:6] == old[:6] == b"\x04\x22\x4d\x18\x60\x40"
    assert (right[6], old[6]) == (0x82, 0x1A)
    assert right[7:] == old[7:]
    assert OLD_LZ4.decompress(right, MIB) == TEXT
    with pytest.raises(Corrupt, match="lz4"):
        LZ4.decompress(old, MIB)


# fault R18
def test_an_old_lz4_header_can_contain_the_size() -> None:
    frame = bytearray(lz4.frame.compress(TEXT, store_size=True))
    frame[14] = 0
    checksums = set()
    for checksum in range(256):
        frame[14] = checksum
        with contextlib.suppress(Corrupt):
            assert OLD_LZ4.decompress(frame, MIB) == TEXT
            checksums.add(checksum)
    assert len(checksums) == 2


# faults R14, R27: the checksum lies outside the snappy stream, so other bytes may come out, but nothing else may
# happen.
@pytest.mark.parametrize("codec", EVERY[1:])
def test_a_flipped_bit_is_an_error_of_ours_or_stays_below_the_cap(codec: Codec) -> None:
    whole = codec.compress(TEXT)
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            result = codec.decompress(flipped, 2 * len(TEXT))
        except WireError:
            continue
        assert len(result) <= 2 * len(TEXT)
        assert codec is not GZIP or result == TEXT


# fault R15
def test_a_gzip_bomb_of_one_gib_stops_at_the_cap() -> None:
    bomb = zeros_gzipped(1024 * MIB)
    with at_most(8 * MIB), pytest.raises(TooLarge):
        GZIP.decompress(bomb, 4 * MIB)


# fault R15
@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_a_bomb_of_one_gib_stops_at_the_cap(codec: Codec) -> None:
    bomb = codec.compress(bytes(64 * MIB)) * 16
    with at_most(12 * MIB), pytest.raises(TooLarge):
        codec.decompress(bomb, 4 * MIB)


# fault R16
def test_a_zstd_frame_that_claims_a_tebibyte_allocates_only_its_content() -> None:
    sized_8_bytes = 0b1100_0000
    claim = struct.pack("<IBBQ", 0xFD2FB528, sized_8_bytes, 0x58, 1 << 40)
    raw_block = struct.pack("<I", 3 << 3 | 1)[:3] + b"abc"
    with at_most(MIB), pytest.raises(Corrupt, match="zstd"):
        ZSTD.decompress(claim + raw_block, 256 * MIB)


# fault R16
def test_a_zstd_window_of_two_gib_is_refused_before_it_is_allocated() -> None:
    window_2_gib = (31 - 10) << 3
    frame = struct.pack("<IBB", 0xFD2FB528, 0, window_2_gib) + struct.pack("<I", 3 << 3 | 1)[:3] + b"abc"
    with at_most(MIB), pytest.raises(Corrupt, match="too much memory"):
        ZSTD.decompress(frame, 256 * MIB)


@pytest.mark.slow
def test_a_zstd_stream_of_level_22_is_decompressed() -> None:
    stream = zstandard.ZstdCompressor(level=22).compressobj()
    data = stream.compress(TEXT) + stream.flush()
    assert ZSTD.decompress(data, MIB) == TEXT


def test_threads_can_decompress_zstd_at_the_same_time() -> None:
    streams = [(ZSTD.compress(part), part) for part in (TEXT * number for number in range(1, 9))]
    with ThreadPoolExecutor(4) as pool:
        read = pool.map(lambda stream: bytes(ZSTD.decompress(stream[0], MIB)), streams * 20)
    assert list(read) == [part for _, part in streams] * 20


# fault R15
def test_a_snappy_bomb_stops_at_the_cap() -> None:
    block = snappy_block(bytes(MIB))
    bomb = xerial(*[block] * 1024)
    with at_most(MIB), pytest.raises(TooLarge):
        SNAPPY.decompress(bomb, 4 * MIB)


# fault R16
@pytest.mark.parametrize("claim", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08"], ids=["4 GiB", "2 GiB"])
@pytest.mark.parametrize("frame", [bytes, xerial], ids=["bare", "xerial"])
def test_a_snappy_block_that_claims_more_than_the_cap_is_refused_before_it_is_allocated(
    claim: bytes, frame: type[bytes]
) -> None:
    with at_most(MIB), pytest.raises(TooLarge):
        SNAPPY.decompress(frame(claim + snappy_block(TEXT)[2:]), 256 * MIB)


# fault R16
@pytest.mark.slow
def test_any_number_of_empty_snappy_blocks_needs_no_memory() -> None:
    data = xerial(*[snappy_block(b"")] * 50_000)
    with at_most(MIB):
        assert bytes(SNAPPY.decompress(data, MIB)) == b""


# fault R16
@pytest.mark.parametrize("length", [-1, -(2**31), 0, 13, 2**31 - 1])
def test_a_wrong_xerial_block_length_is_corrupt(length: int) -> None:
    block = snappy_block(b"0123456789")
    with at_most(MIB), pytest.raises(Corrupt):
        SNAPPY.decompress(XERIAL_HEADER + struct.pack(">i", length) + block, MIB)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        XERIAL_HEADER[:12],
        XERIAL_HEADER + b"\x00",
        XERIAL_HEADER + bytes(3),
        snappy_block(TEXT)[:-1],
        snappy_block(TEXT) + b"x",
        xerial(b"\x05"),
        b"\xff" * 20,
    ],
)
def test_an_incomplete_snappy_stream_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt, match="snappy"):
        SNAPPY.decompress(data, MIB)


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_concatenated_xerial_streams_are_one(blocks: int) -> None:  # fault F13
    stream = xerial(*[snappy_block(TEXT)] * blocks)
    with_headers = XERIAL_HEADER + stream + stream + XERIAL_HEADER
    assert SNAPPY.decompress(with_headers, MIB) == sets_v07._xerial(with_headers) == TEXT * 2 * blocks
    for cut in range(1, len(XERIAL_HEADER)):
        with pytest.raises(Corrupt, match=r"incomplete|states"):
            SNAPPY.decompress(with_headers[:-cut], MIB)
    with pytest.raises(Corrupt, match="states"):
        SNAPPY.decompress(stream + XERIAL_HEADER.replace(b"SNAPPY", b"SNAPPX"), MIB)


def test_a_snappy_block_without_framing_is_decompressed() -> None:
    assert SNAPPY.decompress(snappy_block(TEXT), MIB) == TEXT


def test_snappy_is_written_in_blocks_of_32_kib_like_in_0_7() -> None:
    data = bytes(range(256)) * 300
    blocks = [data[start : start + 32768] for start in range(0, len(data), 32768)]
    assert len(blocks) == 3
    assert SNAPPY.compress(data) == xerial(*map(snappy_block, blocks))
    assert SNAPPY.compress(b"") == XERIAL_HEADER


# faults R14, R18
@pytest.mark.parametrize("level", [1, 19])
@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("size", [0, 1, 200, 300, 70_000, 300_000])
def test_zstd_frames_with_every_header_are_measured_to_their_last_byte(size: int, sized: bool, level: int) -> None:
    data = (TEXT * (size // len(TEXT) + 1))[:size]
    frame = zstandard.ZstdCompressor(level=level, write_content_size=sized, write_checksum=sized).compress(data)
    assert ZSTD.decompress(frame + frame, MIB) == data * 2
    for short in (frame[:-1], frame + frame[:-1]):
        with pytest.raises(Corrupt, match="zstd"):
            ZSTD.decompress(short, MIB)


# Only the size of a dictionary's number is not met by what writers make.
@pytest.mark.parametrize("descriptor", [descriptor for descriptor in range(256) if not descriptor & 0b1000])
def test_the_descriptor_states_the_length_of_a_zstd_header(descriptor: int) -> None:
    header = struct.pack("<IB", 0xFD2FB528, descriptor) + bytes(13)
    assert compression._zstd_header_bytes(descriptor) == zstandard.frame_header_size(header)


# fault R14: nothing is too small to be read, and many of these take no more than their bytes.
@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_any_number_of_empty_streams_decompresses_to_nothing(codec: Codec) -> None:
    with at_most(MIB):
        assert bytes(codec.decompress(codec.compress(b"") * 5000, MIB)) == b""
    assert codec.decompress(codec.compress(b"") * 5000 + codec.compress(TEXT), MIB) == TEXT


def test_any_number_of_empty_zstd_blocks_decompresses_to_nothing() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b"")
    head, last = frame[:-3], frame[-3:]
    empty = bytes([last[0] & ~1]) + last[1:]
    assert bytes(ZSTD.decompress(head + empty * 50_000 + last, MIB)) == b""
    with pytest.raises(Corrupt, match="incomplete"):
        ZSTD.decompress(head + empty * 50_000, MIB)
