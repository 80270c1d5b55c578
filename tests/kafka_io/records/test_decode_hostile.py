"""Whatever the bytes of a log: a typed error, or rows that were written. Never other rows or a foreign exception."""

import gzip
import pickle
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from kafka_io.compression import CODECS, OLD_LZ4
from kafka_io.errors import Corrupt, PastEnd, TooLarge, Unsupported, Where, WireError
from kafka_io.records.build import Record, _record, _varint, log_messages, record_batch
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.decoder import Decoder, decode
from kafka_io.records.layout import MESSAGE_KEY_AT, MIN_MESSAGE_BYTES
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.schema import COLUMNS
from tests.kafka_io.records.decoding import (
    NAMES,
    batch_around,
    changed,
    golden,
    read,
    read_rows,
    repaired,
)

MIB = 1024 * 1024
LIMITS = DecodeLimits(max_decompressed_bytes=MIB)
WHERE = Where(cluster="new", broker="7", topic="clicks", partition=3)
RECORDS = [Record(offset=offset, timestamp=5, key=b"k%d" % offset, value=b"v") for offset in range(3)]
BATCH = record_batch(RECORDS)
CONTENT = BATCH[61:]
LENGTH, LEADER_EPOCH, MAGIC, ATTRIBUTES, LAST_DELTA, COUNT = 8, 12, 16, 21, 23, 57


def corrupt(data: bytes, match: str, offset: int | None = 0) -> None:
    """`data` is refused as corrupt, at that offset."""
    with pytest.raises(Corrupt, match=match) as raised:
        read(data, where=WHERE)
    assert raised.value.where == (WHERE if offset is None else WHERE.at_offset(offset))


def unchecked_bytes(data: bytes) -> set[int]:
    """Where no checksum looks, and a flipped bit gives the same rows elsewhere or nothing at all: base offsets."""
    places: set[int] = set()
    position = 0
    while position < len(data):
        places.update(range(position, position + 8))
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return places


def bits_to_flip(data: bytes) -> Iterator[int]:
    """All bits of the headers, and one bit of each other byte.

    Behind a header only the checksum decides, and it treats all bits of a byte alike: it finds any single flipped bit.
    """
    position = 0
    while position < len(data):
        header = position + (*MIN_MESSAGE_BYTES, 61)[data[position + MAGIC]]
        end = position + 12 + int.from_bytes(data[position + LENGTH : position + 12], "big")
        yield from range(8 * position, 8 * header)
        yield from (8 * byte + byte % 8 for byte in range(header, end))
        position = end


# faults R01, R27
@pytest.mark.parametrize("name", [name for name in NAMES if "aiokafka" not in name])
def test_a_flipped_bit_never_gives_other_rows(name: str) -> None:
    data = golden(name)
    rows = read_rows(data)
    offsets = unchecked_bytes(data)
    places: set[int | None] = set()
    for bit in bits_to_flip(data):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            got = read_rows(bytes(flipped), limits=LIMITS)
        except WireError as error:
            places.add(error.where.offset)
            continue
        if bit // 8 in offsets:
            got = [(before[0], *row[1:]) for before, row in zip(rows, got, strict=False)]
        assert got == rows[: len(got)]
    assert None not in places


# fault R04
@pytest.mark.parametrize("name", ["v0-none-kafka-python", "v1-none-kafka-python", "v2-none-kafka-python"])
@pytest.mark.parametrize("length", [-1, -(2**31), 0, 13])
def test_a_length_below_any_header_is_corrupt(name: str, length: int) -> None:
    data = golden(name)
    corrupt(data[:LENGTH] + length.to_bytes(4, "big", signed=True) + data[12:], f"an entry of {12 + length} bytes")
    corrupt(data[:LENGTH] + length.to_bytes(4, "big", signed=True), f"an entry of {12 + length} bytes")


# fault R04
@pytest.mark.parametrize(("name", "length"), [("v1-none-kafka-python", 21), ("v2-none-kafka-python", 48)])
def test_a_length_below_the_header_of_its_magic_is_corrupt(name: str, length: int) -> None:
    data = golden(name)
    corrupt(data[:LENGTH] + length.to_bytes(4, "big") + data[12:], f"an entry of {12 + length} bytes")


# faults R03, R04: the reader decides whether it is too large.
def test_a_length_beyond_the_data_is_not_an_error() -> None:
    assert read(BATCH[:LENGTH] + (2**30).to_bytes(4, "big") + BATCH[12:]) == []


# fault R05
@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("codec", range(5))
def test_a_count_below_the_number_of_records_is_corrupt(count: int, codec: int) -> None:
    content = CODECS[codec].compress(CONTENT)
    corrupt(batch_around(bytes(content), count=count, last_delta=2, codec=codec), "end differs from its length")


# fault R05
@pytest.mark.parametrize("count", [4, 2**31 - 1, -1, -(2**31)])
def test_a_count_above_the_number_of_offsets_is_corrupt(count: int) -> None:
    corrupt(changed(BATCH, COUNT, struct.pack(">i", count)), "an invalid count", offset=0)


# fault R05: what is claimed costs nothing.
def test_a_count_that_the_bytes_cannot_hold_takes_no_memory() -> None:
    data = batch_around(CONTENT, count=2**31 - 1, last_delta=2**31 - 2)
    tracemalloc.start()
    try:
        corrupt(data, "record 3 of 2147483647: a varint")
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


# fault R06
@pytest.mark.parametrize("delta", [-100, -1, -(2**31)])
def test_a_last_offset_delta_below_zero_is_corrupt(delta: int) -> None:
    corrupt(changed(BATCH, LAST_DELTA, struct.pack(">i", delta)), "out of order")


# fault R06
def test_an_entry_before_the_requested_offsets_is_corrupt() -> None:
    for data in (BATCH, log_messages(RECORDS, magic=1), log_messages(RECORDS, magic=0, codec=1)):
        with pytest.raises(Corrupt, match="out of order"):
            read(data, RequestedOffsets(start=3))


# fault R06
@pytest.mark.parametrize("again", [record_batch, lambda records: log_messages(records, magic=1)])
def test_an_entry_that_begins_before_the_last_one_ended_is_corrupt(again: Callable[[list[Record]], bytes]) -> None:
    corrupt(BATCH + again([Record(offset=2), Record(offset=3)]), "out of order", offset=3)


# fault R07
@pytest.mark.parametrize("end", [0, 2])
def test_an_entry_that_reaches_the_high_watermark_is_past_the_end(end: int) -> None:
    for data in (BATCH, log_messages(RECORDS, magic=0), log_messages(RECORDS, magic=1, codec=2)):
        assert len(read_rows(data, RequestedOffsets(start=0, high_watermark=3))) == 3
        with pytest.raises(PastEnd, match="out of order"):
            read(data, RequestedOffsets(start=0, high_watermark=end))


# faults R06, R07
def test_an_entry_out_of_order_is_corrupt_even_above_the_high_watermark() -> None:
    for data in (BATCH + BATCH, changed(BATCH, LAST_DELTA, struct.pack(">i", -1))):
        with pytest.raises(Corrupt, match="out of order") as raised:
            read(data, RequestedOffsets(start=0, high_watermark=3))
        assert not raised.value.retriable


# fault R07
def test_an_offset_above_the_largest_int64_is_corrupt() -> None:
    corrupt(changed(BATCH, 0, struct.pack(">q", 2**63 - 1)), "out of order")
    corrupt(changed(BATCH, 0, struct.pack(">q", -(2**63))), "out of order")
    corrupt(changed(log_messages(RECORDS[:1], magic=0), 0, struct.pack(">q", -1)), "out of order")


# fault R08
@pytest.mark.parametrize("deltas", [(0, 0, 1), (1, 0, 2), (-1, 0, 1), (0, 1, 3), (0, 1, -3)])
@pytest.mark.parametrize("codec", [0, 4])
def test_offset_deltas_that_do_not_grow_or_leave_the_batch_are_corrupt(deltas: tuple[int, ...], codec: int) -> None:
    content = b"".join(_record(Record(offset=delta, timestamp=0), 0, 0) for delta in deltas)
    data = batch_around(bytes(CODECS[codec].compress(content)), count=3, last_delta=2, codec=codec)
    corrupt(data, "offsets that do not grow")


# fault R08
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("inner", [(0, 0, 2), (1, 0, 2), (0, 3, 2), (-1, 1, 2)])
def test_inner_offsets_that_do_not_grow_are_corrupt(magic: int, inner: tuple[int, ...]) -> None:
    content = b"".join(log_messages([Record(offset=offset)], magic=magic) for offset in inner)
    corrupt(wrapped(content, magic=magic, offset=2), "offsets that do not grow")


@pytest.mark.parametrize(("magic", "last"), [(0, 3), (1, 3), (0, -1), (1, -1), (1, 2**63 - 1), (1, -(2**63))])
def test_an_inner_offset_above_the_outer_offset_is_corrupt(magic: int, last: int) -> None:
    content = log_messages([Record(offset=last)], magic=magic)
    corrupt(wrapped(content, magic=magic, offset=2), "whose last offset is")


def wrapped(content: bytes, *, magic: int, offset: int, codec: int = 1, value: bytes | None = None) -> bytes:
    """A message with that compressed inside."""
    if value is None:
        value = bytes((OLD_LZ4 if (codec, magic) == (3, 0) else CODECS[codec]).compress(content))
    data = log_messages([Record(offset=offset, timestamp=5, value=value)], magic=magic)
    return changed(data, MAGIC + 1, bytes([codec]))


def record_of(*fields: bytes, length: int | None = None) -> bytes:
    content = b"".join((b"\0", *fields))
    return _varint(len(content) if length is None else length) + content


GOOD = (_varint(0), _varint(0), _varint(1), b"k", _varint(1), b"v", _varint(0))


# faults R09, R10, R11
@pytest.mark.parametrize(
    ("record", "match"),
    [
        (record_of(*GOOD, length=-5), "length"),
        (record_of(*GOOD, length=0), "length"),
        (record_of(*GOOD, length=2**31 - 1), "length"),
        (record_of(*GOOD, length=7), "longer than its record|varint"),
        (record_of(*GOOD, length=9), "length"),
        (record_of(*GOOD, b"x"), "its end differs"),
        (record_of(*GOOD[:-1]), "longer than its record"),
        (record_of(*GOOD[:2], _varint(-2), *GOOD[4:]), "longer than its record"),
        (record_of(*GOOD[:2], _varint(2**31 - 1), *GOOD[3:]), "longer than its record"),
        (record_of(*GOOD[:4], _varint(-2), b"v", b"\0"), "longer than its record"),
        (record_of(*GOOD[:4], _varint(3), b"v", b"\0"), "longer than its record"),
        (record_of(*GOOD[:4], _varint(-(2**31)), b"v", b"\0"), "longer than its record"),
        (record_of(*GOOD[:-1], _varint(-1)), "count"),
        (record_of(*GOOD[:-1], _varint(2**31 - 1)), "varint"),
        (record_of(*GOOD[:-1], _varint(1), _varint(-1), _varint(0)), "longer than its record"),
        (record_of(*GOOD[:-1], _varint(1), _varint(9), _varint(0)), "longer than its record"),
        (record_of(*GOOD[:-1], _varint(1), _varint(0), _varint(-2)), "longer than its record"),
        (record_of(*GOOD[:-1], _varint(1), _varint(0), _varint(5), b"abc"), "longer than its record"),
        (record_of(*GOOD[:-1], _varint(0), b"x"), "its end differs"),
        (record_of(b"\x80" * 11, *GOOD[1:]), "varint"),
        (record_of(GOOD[0], b"\xff" * 5 + b"\0", *GOOD[2:]), "varint"),
        (b"\xff" * 6 + b"\x01", "varint"),
        (b"", "varint"),
    ],
)
@pytest.mark.parametrize("codec", [0, 2])
def test_a_record_with_invalid_fields_is_corrupt(record: bytes, match: str, codec: int) -> None:
    data = batch_around(bytes(CODECS[codec].compress(record)), count=1, last_delta=0, codec=codec)
    corrupt(data, f"record 0 of 1: .*({match})")


def test_a_valid_record_is_accepted() -> None:
    assert len(read_rows(batch_around(record_of(*GOOD), count=1, last_delta=0))) == 1


# fault R09
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("field", [0, 1])
@pytest.mark.parametrize("size", [-2, 3, 2**31 - 1, -(2**31)])
def test_a_message_with_an_invalid_field_size_is_corrupt(magic: int, field: int, size: int) -> None:
    data = log_messages([Record(key=b"k", value=b"v")], magic=magic)
    position = (26 if magic else 18) + 5 * field
    corrupt(changed(data, position, struct.pack(">i", size)), "longer than its record|its end differs")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [3, 4, 6, 7])
def test_a_key_that_leaves_no_room_for_the_length_of_a_value_is_corrupt(magic: int, size: int) -> None:
    """With the compiler off, a kernel that reads past the end of the data raises an IndexError here."""
    data = log_messages([Record(key=b"k", value=b"v")], magic=magic)
    corrupt(changed(data, 26 if magic else 18, struct.pack(">i", size)), "longer than its record|elsewhere")


def test_bytes_after_the_value_of_a_message_are_corrupt() -> None:
    data = bytearray(log_messages([Record(value=b"v")], magic=1) + b"x")
    data[8:12] = struct.pack(">i", len(data) - 12)
    corrupt(repaired(data), "its end differs")


# fault R12
@pytest.mark.parametrize("magic", [3, 4, 126, 127, 128, 255])
@pytest.mark.parametrize("before", [b"", BATCH, log_messages(RECORDS, magic=1)])
def test_another_magic_is_unsupported(magic: int, before: bytes) -> None:
    odd = bytearray(record_batch([Record(offset=3)]))
    odd[MAGIC] = magic
    with pytest.raises(Unsupported, match=f"magic {magic}") as raised:
        read(before + odd, where=WHERE)
    assert raised.value.where == WHERE.at_offset(3 if before else 0)


# fault R13
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_another_codec_is_unsupported(codec: int) -> None:
    with pytest.raises(Unsupported, match=f"codec {codec}") as raised:
        read(batch_around(CONTENT, count=3, last_delta=2, codec=codec), where=WHERE)
    assert raised.value.where == WHERE.at_offset(0)


# fault R13
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [4, 5, 7])
def test_messages_have_no_zstd_or_later_codec(magic: int, codec: int) -> None:
    with pytest.raises(Unsupported, match=f"magic {magic} compressed with codec {codec}"):
        read(wrapped(b"", magic=magic, offset=0, codec=codec, value=b"x"))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_entry_that_is_not_allowed_inside_a_message_is_corrupt(magic: int) -> None:
    plain = log_messages([Record()], magic=magic)
    for content, match in (
        (b"", "last offset is -1"),
        (plain[:-1], "incomplete"),
        (plain + plain[:7], "incomplete"),
        (wrapped(plain, magic=magic, offset=0), "inside a compressed one"),
        (log_messages([Record()], magic=1 - magic), "another magic"),
        (record_batch([Record()]), "record batch inside"),
        (changed(plain, MAGIC, b"\x05"), "another magic"),
        (plain[:-1] + bytes([plain[-1] ^ 1]), "wrong CRC"),
    ):
        corrupt(wrapped(content, magic=magic, offset=0), match)


def test_a_compressed_message_without_a_whole_value_is_corrupt() -> None:
    for size in (-1, 0, 5, 2**31 - 1):
        data = wrapped(b"", magic=0, offset=0, value=b"gzip")
        corrupt(changed(data, 22, struct.pack(">i", size)), "a set of|gzip")
    for size in (1, 4, 100, -2, -(2**31)):  # with 4, the key reaches exactly to the end of the message
        data = wrapped(b"", magic=0, offset=0, value=b"")
        corrupt(changed(data, 18, struct.pack(">i", size)), f"a key of {size} bytes")


# A kernel that reads after the end of the bytes is noticed only without the compiler.
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_a_key_that_reaches_to_the_end_of_a_message_is_corrupt(magic: int, size: int) -> None:  # fault G12
    data = log_messages([Record(key=b"", value=b"v" * (size > 4))], magic=magic)
    corrupt(changed(data, MESSAGE_KEY_AT[magic], struct.pack(">i", size)), "a key, value or header")


# fault R14; junk after gzip is ignored (fault N12)
@pytest.mark.parametrize("codec", [2, 3, 4])
def test_compressed_records_that_are_followed_by_junk_are_corrupt(codec: int) -> None:
    content = bytes(CODECS[codec].compress(CONTENT * 100)) + b"junk"
    corrupt(batch_around(content, count=300, last_delta=299, codec=codec), "cannot decompress|incomplete|frames|follow")


# fault R14
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda _: b"", lambda _: b"x" * 9])
def test_compressed_records_that_cannot_be_decompressed_are_corrupt(codec: int, damage: type[bytes]) -> None:
    content = bytes(CODECS[codec].compress(CONTENT * 100))
    corrupt(
        batch_around(damage(content), count=300, last_delta=299, codec=codec),
        "cannot decompress|incomplete|frames|follow",
    )


# fault R15
@pytest.mark.parametrize("codec", [1, 3, 4])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_decompression_stops_at_the_limit(codec: int, magic: int) -> None:
    if (codec, magic) in {(4, 0), (4, 1)}:
        data = batch_around(bytes(CODECS[4].compress(bytes(64 * MIB)) * 16), count=1, last_delta=0, codec=4)
    elif magic == 2:
        stream = bytes(CODECS[codec].compress(bytes(64 * MIB)))
        data = batch_around(stream * 16, count=1, last_delta=0, codec=codec)
    else:
        stream = bytes((OLD_LZ4 if (codec, magic) == (3, 0) else CODECS[codec]).compress(bytes(64 * MIB)))
        data = wrapped(b"", magic=magic, offset=0, codec=codec, value=stream)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="max_decompressed_bytes") as raised:
            read(data, limits=DecodeLimits(max_decompressed_bytes=4 * MIB), where=WHERE)
        assert tracemalloc.get_traced_memory()[1] < 20 * MIB
    finally:
        tracemalloc.stop()
    assert raised.value.where == WHERE.at_offset(0)


# faults R15, R05
def test_large_batches_below_the_limit_are_in_memory_one_at_a_time() -> None:
    bomb = bytes(CODECS[4].compress(bytes(MIB)))
    batch = bytearray(batch_around(bomb, count=1, last_delta=0, codec=4))
    data = bytearray()
    for offset in range(200):
        batch[:8] = struct.pack(">q", offset)
        data += batch
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt, match="record 0 of 1"):
            read(bytes(data), limits=DecodeLimits(max_decompressed_bytes=MIB))
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


def test_ten_thousand_headers_that_need_escaping_are_read() -> None:
    headers = tuple((b"\xff", b"") for _ in range(10_000))
    ((*_, decoded_headers),) = read_rows(record_batch([Record(headers=headers)]))
    assert decoded_headers == [("\ufffdff", b"")] * 10_000


def test_headers_that_are_not_requested_are_not_parsed() -> None:
    data = batch_around(record_of(*GOOD[:-1], _varint(-1)), count=1, last_delta=0)
    (decoded,) = decode(data, RequestedOffsets(start=0), columns=COLUMNS[:-1])
    assert decoded.batch.num_rows == 1


def test_batches_before_an_error_are_returned() -> None:
    broken = bytearray(record_batch([Record(offset=3)]))
    broken[-1] ^= 1
    batches = decode(BATCH + broken, RequestedOffsets(start=0), limits=DecodeLimits(batch_bytes=1))
    assert next(batches).next_offset == 3
    with pytest.raises(Corrupt, match="wrong CRC"):
        next(batches)


def test_errors_can_be_pickled() -> None:
    for data, kind in (
        (changed(BATCH, COUNT, struct.pack(">i", -1)), Corrupt),
        (batch_around(CONTENT, count=3, last_delta=2, codec=6), Unsupported),
        (batch_around(gzip.compress(bytes(10_000), mtime=0), count=1, last_delta=0, codec=1), TooLarge),
    ):
        with pytest.raises(kind) as raised:
            read(data, limits=DecodeLimits(max_decompressed_bytes=100), where=WHERE)
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is kind
        assert (str(again), again.where) == (str(raised.value), WHERE.at_offset(0))


NUMBERS = (-(2**31), -2, -1, 0, 1, 13, 14, 22, 48, 49, 2**30, 2**31 - 1)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to three mutations, then the checksums made right."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        position = rng.randrange(len(out) or 1)
        kind = rng.randrange(4)
        if kind == 0:
            out[position : position + 1] = bytes([rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))])
        elif kind == 1:
            out[position:position] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 2:
            del out[position : position + rng.randrange(1, 9)]
        else:
            out[position : position + 4] = rng.choice(NUMBERS).to_bytes(4, "big", signed=True)
    return repaired(out)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_mutations_with_valid_checksums_raise_only_typed_errors(seed: int) -> None:
    rng = random.Random(seed)
    logs = [golden(name) for name in NAMES]
    outcomes = set()
    for _ in range(1500):
        kind = rng.randrange(3)
        if kind == 0:
            data = mutated(rng.choice(logs), rng)
        elif kind == 1:
            codec = rng.randrange(5)
            content = bytes(CODECS[codec].compress(mutated(golden("v2-none-librdkafka")[61:], rng)))
            data = batch_around(content, count=20, last_delta=19, codec=codec)
        else:
            magic = rng.randrange(2)
            content = mutated(golden(f"v{magic}-none-kafka-python"), rng)
            data = wrapped(content, magic=magic, offset=19, codec=rng.randrange(1, 4))
        try:
            read_rows(data, limits=LIMITS, aborted=((-1, 0),))
            outcomes.add("read")
        except WireError as error:
            outcomes.add(type(error).__name__)
    assert {"read", "Corrupt", "Unsupported"} <= outcomes


# Rows after the end of a slice are left out, but their batch is decoded completely or not at all.
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_slice_that_ends_inside_a_batch_checks_all_of_it(magic: int) -> None:
    if magic == 2:
        data = batch_around(CONTENT[:-1] + b"\1", count=3, last_delta=2)
    else:
        content = bytearray(log_messages(RECORDS, magic=magic))
        content[-1] ^= 1
        data = wrapped(bytes(content), magic=magic, offset=2)
    for stop in (1, 2, 3):
        with pytest.raises(Corrupt, match=r"wrong CRC|invalid count"):
            read(data, RequestedOffsets(start=0, stop=stop))


# faults R15, R05: a row takes five times the bytes of the least record, a header four times its own.
def test_rows_and_headers_above_the_memory_limit_are_too_large() -> None:
    least = b"".join(_record(Record(offset=offset, timestamp=0), 0, 0) for offset in range(3000))
    stream = bytes(CODECS[4].compress(least))
    data = batch_around(stream, count=3000, last_delta=2999, codec=4)
    headers = record_batch([Record(headers=((b"", None),) * 3000)], codec=4)
    for content in (data, headers):
        with pytest.raises(TooLarge, match="records or headers, the limit that max_decompressed_bytes") as raised:
            read(content, limits=DecodeLimits(max_decompressed_bytes=32 * 1024), where=WHERE)
        assert raised.value.where == WHERE.at_offset(0)
        assert read(content, limits=DecodeLimits(max_decompressed_bytes=128 * 1024))


def test_escaped_header_keys_above_the_memory_limit_are_too_large() -> None:
    data = record_batch([Record(offset=7, headers=((b"\xff" * 600, None),))])
    with pytest.raises(TooLarge, match="max_decompressed_bytes = 1200") as raised:
        read(data, RequestedOffsets(start=5), limits=DecodeLimits(max_decompressed_bytes=1200), where=WHERE)
    assert raised.value.where == WHERE.at_offset(5)
    assert len(read_rows(data, limits=DecodeLimits(max_decompressed_bytes=1203))) == 1


@pytest.mark.parametrize("batch_bytes", [1, 2, 100])
def test_entries_without_rows_give_one_batch(batch_bytes: int) -> None:
    (decoded,) = read(record_batch([], span=(0, 4)), limits=DecodeLimits(batch_bytes=batch_bytes))
    assert (decoded.batch.num_rows, decoded.next_offset) == (0, 5)


def test_a_decoder_drops_the_rows_of_an_invalid_entry() -> None:
    decoder = Decoder(limits=LIMITS)
    assert list(decoder.feed(BATCH, RequestedOffsets(start=0))) == []
    content = CONTENT + record_of(*GOOD, length=-5)
    with pytest.raises(Corrupt, match="record 3 of 4"):
        list(
            decoder.feed(
                changed(batch_around(content, count=4, last_delta=3), 0, bytes(7) + b"\3"), RequestedOffsets(start=3)
            )
        )
    assert list(decoder.flush()) == []
    assert list(decoder.feed(BATCH, RequestedOffsets(start=0))) == []
    (decoded,) = decoder.flush()
    assert (decoded.batch.num_rows, decoded.next_offset, dict(decoded.gaps)) == (3, 3, {})
