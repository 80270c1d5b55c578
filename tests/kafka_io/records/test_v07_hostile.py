"""Whatever the bytes: a typed error, or rows that were written. Never other rows, never a foreign exception."""

import gzip
import pickle
import random
import struct
import zlib
from collections.abc import Callable

import pytest

from kafka_io.compression import CODECS
from kafka_io.errors import Corrupt, TooLarge, Unsupported, Where, WireError
from kafka_io.records.build import message, message_set
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.v07.decoder import decode_v07, validate_message_set
from tests.kafka_io.records.v07_decoding import Row, log_bytes, read_rows

SMALL_LOGS = ["async-1", "gz-0", "magic0-0", "multi-1", "plain-0", "raw-0", "rawgz-0", "rawsn-0", "sn-0"]
LIMITS = DecodeLimits(max_decompressed_bytes=1 << 20)
CODEC_BITS = 0b11


def message_starts(data: bytes) -> set[int]:
    """Where the outer messages begin."""
    starts = set()
    position = 0
    while position < len(data):
        starts.add(position)
        position += 4 + int.from_bytes(data[position : position + 4], "big")
    return starts


def hides_a_codec(before: int, after: int) -> bool:
    """The CRC of 0.7 does not cover the attributes: without its codec, a compressed message looks like a plain one."""
    return before & CODEC_BITS != 0 and after & CODEC_BITS == 0


# fault R27
@pytest.mark.parametrize("name", SMALL_LOGS)
def test_a_flipped_bit_never_gives_other_rows(name: str) -> None:
    data = log_bytes(name)
    rows = read_rows(data)
    places = set()
    attributes = {start + 5 for start in message_starts(data) if data[start + 4] == 1}
    for bit in range(8 * len(data)):
        position = bit // 8
        flipped = bytearray(data)
        flipped[position] ^= 1 << bit % 8
        if position in attributes and hides_a_codec(data[position], flipped[position]):
            continue
        try:
            got = read_rows(bytes(flipped), limits=LIMITS)
        except WireError as error:
            places.add(error.where.offset)
            continue
        assert got == rows[: len(got)]
    assert places <= set(range(len(data)))


# faults R02, R27
@pytest.mark.parametrize("name", SMALL_LOGS)
def test_a_cut_log_gives_no_error_and_no_other_rows(name: str) -> None:
    data = log_bytes(name)
    rows = read_rows(data)
    for size in range(len(data)):
        got = read_rows(data[:size])
        assert got == rows[: len(got)]


# fault R26: snappy keeps short messages as they are, CRC and all, so an offset inside its logs can hit a message by
# chance.
@pytest.mark.parametrize("name", [name for name in SMALL_LOGS if name not in ("rawsn-0", "sn-0")])
def test_reading_from_inside_a_message_gives_an_error_or_no_rows(name: str) -> None:
    data = log_bytes(name)
    for base in set(range(len(data))) - message_starts(data):
        try:
            got = read_rows(data[base:], base=base, limits=LIMITS)
        except WireError:
            continue
        assert got == []


def repaired(data: bytearray) -> bytes:
    """`data` with the right CRC in each whole outer message, so that mutations get past it."""
    position = 0
    while len(data) - position >= 10:
        length = int.from_bytes(data[position : position + 4], "big", signed=True)
        if length < 6 or data[position + 4] > 1 or len(data) - position - 4 < length:
            break
        payload_at = position + 9 + data[position + 4]
        data[payload_at - 4 : payload_at] = struct.pack(">I", zlib.crc32(data[payload_at : position + 4 + length]))
        position += 4 + length
    return bytes(data)


def overwrite(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))


def stretch(data: bytearray, rng: random.Random) -> None:
    position = rng.randrange(len(data))
    data[position:position] = rng.randbytes(rng.randrange(1, 9))


def shrink(data: bytearray, rng: random.Random) -> None:
    position = rng.randrange(len(data))
    del data[position : position + rng.randrange(1, 9)]


def claim(data: bytearray, rng: random.Random) -> None:
    position = rng.randrange(len(data))
    number = rng.choice((-(2**31), -1, 0, 1, 4, 5, 6, 2**30, 2**31 - 1))
    data[position : position + 4] = number.to_bytes(4, "big", signed=True)


MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (overwrite, stretch, shrink, claim)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to three mutations, then the outer CRCs made right."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        if changed:
            rng.choice(MUTATIONS)(changed, rng)
    return repaired(changed)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_with_valid_checksums_raise_only_typed_errors(seed: int) -> None:
    rng = random.Random(seed)
    sets = [log_bytes(name) for name in SMALL_LOGS]
    outcomes = set()
    for _ in range(1500):
        data = rng.choice(sets)
        if rng.random() < 0.5:
            # Mutate what is inside, where the outer CRC cannot see it.
            codec = rng.choice((1, 2))
            data = message(CODECS[codec].compress(mutated(data, rng)), attributes=codec)
        data = mutated(data, rng)
        for read in (read_rows, validate_message_set):
            try:
                read(data, limits=LIMITS)
                outcomes.add("read")
            except WireError as error:
                outcomes.add(type(error).__name__)
    assert {"read", "Corrupt", "Unsupported"} <= outcomes


def test_errors_can_be_pickled() -> None:
    where = Where(cluster="old", broker="7", topic="clicks", partition="7-0")
    bomb = message(gzip.compress(bytes(10_000)), attributes=1)
    for data, kind in (
        (b"\x00\x00\x00\x07\x01\x00\x00\x00\x00\x00x", Corrupt),
        (message(b"", attributes=3), Unsupported),
        (message(b"not gzip", attributes=1), Corrupt),
        (bomb, TooLarge),
    ):
        with pytest.raises(kind) as raised:
            list(decode_v07(data, base=88, limits=DecodeLimits(max_decompressed_bytes=100), where=where))
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is kind
        assert (str(again), again.where) == (str(raised.value), where.at_offset(88))
        assert "offset=88" in str(again)


# fault R19
def test_ten_thousand_empty_compressed_messages_in_one_are_read_quickly() -> None:
    nothing = message_set([], codec=1)
    rows: list[Row] = read_rows(message_set([], codec=2) + message(gzip.compress(nothing * 10_000), attributes=1))
    assert rows == []
