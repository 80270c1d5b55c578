"""Mutated compressed streams, and valid ones that usual writers do not produce."""

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
    """`content` compressed, whole or not: in several streams, cut, flipped, with junk, as a bomb, or in another way."""
    return rng.choice(_WAYS)(rng, codec, content)


def _compress(codec: int, content: bytes) -> bytes:
    return bytes(CODECS[codec].compress(content))


def _split(rng: random.Random, codec: int, content: bytes) -> bytes:
    position = rng.randrange(len(content) + 1)
    if codec == _SNAPPY:
        return _compress(codec, content[:position]) + _compress(codec, content[position:])[_XERIAL_BYTES:]
    return b"".join(_compress(codec, part) for part in (content[:position], b"", content[position:]))


def _cut(rng: random.Random, codec: int, content: bytes) -> bytes:
    whole = _compress(codec, content)
    return whole[: rng.randrange(len(whole) + 1)]


def _lengthened(rng: random.Random, codec: int, content: bytes) -> bytes:
    whole = _compress(codec, content)
    return whole + rng.choice((b"\0", _SKIPPABLE, whole, b"junk"))


def _bomb(rng: random.Random, codec: int, content: bytes) -> bytes:
    times = min(rng.choice((2, 100, 10_000)), _BOMB_BYTES // (len(content) + 1))
    return _compress(codec, content * times)


def _flipped(rng: random.Random, codec: int, content: bytes) -> bytes:
    return mutate_bytes(rng, _compress(codec, content))


def _with_options(rng: random.Random, codec: int, content: bytes) -> bytes:
    yes = [bool(rng.randrange(2)) for _ in range(4)]
    if codec == _LZ4:
        size = rng.choice((4, 5, 6, 7))
        frame: bytes = lz4.frame.compress(
            content,
            block_linked=yes[0],
            store_size=yes[1],
            content_checksum=yes[2],
            block_checksum=yes[3],
            block_size=size,
        )
        return frame
    if codec == _ZSTD:
        way = zstandard.ZstdCompressor(level=rng.choice((1, 12)), write_checksum=yes[0], write_content_size=yes[1])
        return _SKIPPABLE * yes[2] + way.compress(content)
    return _compress(codec, content)


_WAYS = (_split, _cut, _lengthened, _bomb, _flipped, _with_options)
