"""Creates mutated compressed streams, and valid streams that common writers do not produce."""

import random
import struct

import lz4.frame
import zstandard

from kafka_io.compression import CODECS
from tests.fuzz.numbers import mutate_bytes

_SNAPPY, _LZ4, _ZSTD = 2, 3, 4
_XERIAL_BYTES = 16
_BOMB_BYTES = 4 << 20
_SKIPPABLE = struct.pack("<II", 0x184D2A50, 3) + b"any"


def mutate_stream(rng: random.Random, codec: int, content: bytes) -> bytes:
    """Compress `content` in an unusual way: as several streams, cut, with flipped bits, with junk, or as a bomb."""
    return rng.choice(_WAYS)(rng, codec, content)


def _compress(codec: int, content: bytes) -> bytes:
    return bytes(CODECS[codec].compress(content))


def _split(rng: random.Random, codec: int, content: bytes) -> bytes:
    position = rng.randrange(len(content) + 1)
    if codec == _SNAPPY:
        return _compress(codec, content[:position]) + _compress(codec, content[position:])[_XERIAL_BYTES:]
    return b"".join(_compress(codec, part) for part in (content[:position], b"", content[position:]))


def _cut(rng: random.Random, codec: int, content: bytes) -> bytes:
    stream = _compress(codec, content)
    return stream[: rng.randrange(len(stream) + 1)]


def _lengthened(rng: random.Random, codec: int, content: bytes) -> bytes:
    stream = _compress(codec, content)
    return stream + rng.choice((b"\0", _SKIPPABLE, stream, b"junk"))


def _bomb(rng: random.Random, codec: int, content: bytes) -> bytes:
    times = min(rng.choice((2, 100, 10_000)), _BOMB_BYTES // (len(content) + 1))
    return _compress(codec, content * times)


def _flipped(rng: random.Random, codec: int, content: bytes) -> bytes:
    return mutate_bytes(rng, _compress(codec, content))


def _with_options(rng: random.Random, codec: int, content: bytes) -> bytes:
    flags = [bool(rng.randrange(2)) for _ in range(4)]
    if codec == _LZ4:
        size = rng.choice((4, 5, 6, 7))
        frame: bytes = lz4.frame.compress(
            content,
            block_linked=flags[0],
            store_size=flags[1],
            content_checksum=flags[2],
            block_checksum=flags[3],
            block_size=size,
        )
        return frame
    if codec == _ZSTD:
        level = rng.choice((1, 12))
        compressor = zstandard.ZstdCompressor(level=level, write_checksum=flags[0], write_content_size=flags[1])
        return _SKIPPABLE * flags[2] + compressor.compress(content)
    return _compress(codec, content)


_WAYS = (_split, _cut, _lengthened, _bomb, _flipped, _with_options)
