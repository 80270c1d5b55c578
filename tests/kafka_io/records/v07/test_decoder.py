"""Batches end between outer messages, cover every byte, and cost what their limits say."""

import gzip
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.errors import Corrupt, TooLarge, Unsupported, Where
from kafka_io.records.build import message, message_set
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.v07.decoder import EMPTY, decode_v07, warm
from tests.kafka_io.records.v07_decoding import decoded_rows

MIB = 1024 * 1024
WHERE = Where(cluster="old", topic="clicks", partition="0-3")


def gzipped(content: bytes | bytearray) -> bytes:
    """A message whose payload is `content`, compressed."""
    return message(gzip.compress(content, mtime=0), attributes=1)


def test_the_schema_is_fixed() -> None:
    (decoded,) = decode_v07(message_set([b"a"]), base=0)
    assert decoded.batch.schema == pa.schema([("offset", "int64"), ("inner", "int32"), ("value", "binary")])


def test_offsets_are_those_of_the_outermost_message_and_inner_counts_through_all_nesting() -> None:
    before, after = message(b"before"), message(b"after", magic=0)
    nested = message_set([b"b", b"c"], codec=2)
    wrapper = gzipped(message(b"a") + nested + gzipped(nested) + message(b"d"))
    start = 100 + len(before)
    assert decoded_rows(before + wrapper + after, base=100) == [
        (100, 0, b"before"),
        *((start, inner, value) for inner, value in enumerate([b"a", b"b", b"c", b"b", b"c", b"d"])),
        (start + len(wrapper), 0, b"after"),
    ]


def test_empty_data_gives_no_batch() -> None:
    assert list(decode_v07(b"", base=5)) == []


# fault R20 in 0.7's terms: an empty wrapper takes up bytes.
def test_an_empty_compressed_message_gives_no_rows() -> None:
    data = gzipped(b"") + message_set([], codec=2)
    (decoded,) = decode_v07(data, base=40)
    assert (decoded.batch.num_rows, decoded.next_offset) == (0, 40 + len(data))


# [kafka-0.7: Compression]
@pytest.mark.parametrize("cut", [1, 5, 9])
def test_an_incomplete_last_message_of_a_compressed_set_is_dropped(cut: int) -> None:
    data = gzipped(message_set([b"whole", b"cut off"])[:-cut]) + message(b"next")
    assert [value for _, _, value in decoded_rows(data)] == [b"whole", b"next"]


@pytest.mark.parametrize("size", [4, 7, 12])
def test_a_compressed_set_without_a_whole_message_is_corrupt(size: int) -> None:
    with pytest.raises(Corrupt, match="at byte 0 of a compressed set"):
        decoded_rows(gzipped(message(b"0123456789")[:size]))


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 60), max_size=40), group=st.integers(1, 7), batch_bytes=st.integers(1, 400))
def test_batches_end_between_outer_messages_and_cover_every_byte(
    sizes: list[int], group: int, batch_bytes: int
) -> None:
    payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
    groups = [payloads[first : first + group] for first in range(0, len(payloads), group)]
    outer = [message_set(messages, codec=number % 3) for number, messages in enumerate(groups)]
    data = b"".join(outer)
    batches = list(decode_v07(data, base=7, limits=DecodeLimits(batch_bytes=batch_bytes)))
    starts = [7, *(decoded.next_offset for decoded in batches)]
    assert starts == sorted(set(starts))
    assert starts[-1] == 7 + len(data)
    for start, decoded in zip(starts, batches, strict=False):
        offsets = decoded.batch.column("offset").to_pylist()
        assert all(start <= offset < decoded.next_offset for offset in offsets)
    assert [value for decoded in batches for value in decoded.batch.column("value").to_pylist()] == payloads


def test_a_batch_is_closed_by_the_message_that_fills_it() -> None:
    data = message_set([b"x" * 100] * 10)
    batches = list(decode_v07(data, base=0, limits=DecodeLimits(batch_bytes=3 * 116)))
    assert [decoded.batch.num_rows for decoded in batches] == [3, 3, 3, 1]


def test_empty_values_fill_a_batch_too() -> None:
    data = gzipped(message(b"") * 1000) * 10
    batches = list(decode_v07(data, base=0, limits=DecodeLimits(batch_bytes=20_000)))
    assert [decoded.batch.num_rows for decoded in batches] == [2000] * 5


def test_earlier_batches_come_before_a_later_error() -> None:
    valid = message_set([b"x" * 100] * 10)
    batches = decode_v07(valid + b"\x00\x00\x00\x07\x02", base=0, limits=DecodeLimits(batch_bytes=1160))
    assert next(batches).batch.num_rows == 10
    with pytest.raises(Unsupported):
        next(batches)


# fault R01
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrong_checksum_names_its_offset(magic: int) -> None:
    valid, bad = message(b"good"), bytearray(message(b"evil", magic=magic))
    bad[-1] ^= 1
    with pytest.raises(Corrupt, match="wrong CRC: the message says") as raised:
        list(decode_v07(valid + bad, base=50, where=WHERE))
    assert raised.value.where == WHERE.at_offset(50 + len(valid))


# fault R01
def test_a_wrong_checksum_inside_a_compressed_message_has_the_outer_offset() -> None:
    inner = bytearray(message_set([b"good", b"evil"]))
    inner[-1] ^= 1
    outer = bytearray(gzipped(message(b"fine")))
    outer[-1] ^= 1
    for data, place in ((gzipped(inner), r"at byte 14 of a compressed set"), (outer, r"\[")):
        with pytest.raises(Corrupt, match=f"wrong CRC.* {place}") as raised:
            list(decode_v07(message(b"ok") + data, base=50, where=WHERE))
        assert raised.value.where == WHERE.at_offset(62)


# fault R13
@pytest.mark.parametrize("wrap", [bytes, gzipped], ids=["outer", "inner"])
def test_codec_3_is_unsupported(wrap: type[bytes]) -> None:
    with pytest.raises(Unsupported, match="codec 3"):
        decoded_rows(wrap(message(b"x", attributes=3)))


# fault R12
@pytest.mark.parametrize("wrap", [bytes, gzipped], ids=["outer", "inner"])
def test_a_later_magic_is_unsupported(wrap: type[bytes]) -> None:
    with pytest.raises(Unsupported, match="magic 2"):
        decoded_rows(wrap(b"\x00\x00\x00\x07\x02\x00\x00\x00\x00\x00\x00"))


# fault R04
@pytest.mark.parametrize("length", [-1, 0, 5, -(2**31)])
@pytest.mark.parametrize("wrap", [bytes, gzipped], ids=["outer", "inner"])
def test_an_invalid_message_length_is_corrupt(length: int, wrap: type[bytes]) -> None:
    with pytest.raises(Corrupt, match=f"a message length of {length} "):
        decoded_rows(wrap(message(b"first") + length.to_bytes(4, "big", signed=True) + b"\x01" + bytes(20)))


@pytest.mark.parametrize("size", [2, 20])
def test_an_incomplete_outer_message_is_corrupt(size: int) -> None:
    with pytest.raises(Corrupt, match=r"cut in its length|of 35 bytes where 16 are left"):
        decoded_rows(message(b"first") + message(b"x" * 29)[:size])


# fault R17
def test_a_message_above_the_limit_can_be_read_after_the_named_limit_is_raised() -> None:
    data = gzipped(message_set([bytes(100_000)] * 20))
    with pytest.raises(TooLarge, match="max_decompressed_bytes") as raised:
        list(decode_v07(data, base=9, limits=DecodeLimits(max_decompressed_bytes=MIB), where=WHERE))
    assert raised.value.where == WHERE.at_offset(9)
    assert len(decoded_rows(data, limits=DecodeLimits(max_decompressed_bytes=2 * MIB))) == 20


# faults R15, R19
def test_all_sets_inside_one_outer_message_share_one_limit() -> None:
    inner = gzipped(message(bytes(1000)))
    limits = DecodeLimits(max_decompressed_bytes=3000)
    assert len(decoded_rows(inner * 10, limits=limits)) == 10
    assert len(decoded_rows(gzipped(inner * 2), limits=limits)) == 2
    with pytest.raises(TooLarge, match="max_decompressed_bytes"):
        decoded_rows(gzipped(inner * 3), limits=limits)


# fault R19
def test_nesting_is_followed_to_max_depth_without_recursion() -> None:
    data = message(b"core")
    for _ in range(100):
        data = gzipped(data)
    assert decoded_rows(data, limits=DecodeLimits(max_depth=100)) == [(0, 0, b"core")]
    with pytest.raises(TooLarge, match="max_depth = 99"):
        decoded_rows(data, limits=DecodeLimits(max_depth=99))
    with pytest.raises(TooLarge, match="max_depth = 16"):
        decoded_rows(data)


# fault R15: what costs the most a byte is messages without payload.
@pytest.mark.parametrize("payload", [b"", bytes(1000)])
def test_a_compressed_message_needs_at_most_three_times_its_bytes_plus_the_limit(payload: bytes) -> None:
    cap = 16 * MIB
    small = message(payload, magic=0)
    data = gzipped(small * (cap // len(small)))
    tracemalloc.start()
    try:
        rows = sum(
            decoded.batch.num_rows
            for decoded in decode_v07(data, base=0, limits=DecodeLimits(max_decompressed_bytes=cap, batch_bytes=MIB))
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == cap // len(small)
    # Address space; of it, only what is filled becomes memory.
    assert peak <= 4.2 * (cap + len(data))


@pytest.mark.parametrize("name", ["max_decompressed_bytes", "max_depth", "batch_bytes"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="below 1"):
        DecodeLimits(**{name: 0})


def test_limits_keep_a_batch_below_2_gib() -> None:
    with pytest.raises(ValueError, match="below 2 GiB"):
        DecodeLimits(max_decompressed_bytes=2**31 - 32 * MIB)
    with pytest.raises(TooLarge, match="below 2 GiB"):
        list(decode_v07(message(b"x"), base=0, limits=DecodeLimits(max_decompressed_bytes=1, batch_bytes=2**31 - 10)))


def test_kernels_can_be_warmed_without_data() -> None:
    warm()
    assert decoded_rows(message(b"x")) == [(0, 0, b"x")]


def test_a_compressed_message_without_messages_is_a_gap() -> None:
    empty = message_set([], codec=1)
    data = message_set([b"a"]) + empty + message_set([b"b"], codec=2) + message_set([], codec=2)
    (decoded,) = decode_v07(data, base=100)
    assert decoded.batch.column("value").to_pylist() == [b"a", b"b"]
    assert decoded.next_offset == 100 + len(data)
    assert decoded.gaps == {EMPTY: 2}


# fault R19: an empty set of 30 bytes does not count against the limit, but opening it takes time.
def test_the_limit_bounds_the_number_of_sets_in_one_message() -> None:
    inside = gzipped(message(b"x"))
    limits = DecodeLimits(max_decompressed_bytes=1 << 20)
    most = 1024 + (1 << 20) // 4096
    assert len(decoded_rows(gzipped(inside * (most - 1)), limits=limits)) == most - 1
    with pytest.raises(TooLarge, match="more sets inside one message than max_decompressed_bytes"):
        decoded_rows(gzipped(inside * most), limits=limits)
