"""Whole messages are found without decoding them, and a broker stores only what decodes to the innermost."""

import gzip
from typing import Any

import pytest

from kafka_io.compression import CODECS
from kafka_io.errors import Corrupt, TooLarge, Unsupported, Where, WireError
from kafka_io.records.build import message, message_set
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.v07.decoder import MessageSetSummary, validate_message_set
from kafka_io.records.v07.message_set import first_length, whole_bytes
from tests.golden_v07 import captured

PLAIN = message_set([b"one", b"two", b""])
WHERE = Where(topic="clicks", partition="0-3")
# The broker closes on these for another reason than their set.
NOT_THE_SET = {
    "produce-partition-minus-2",
    "produce-bad-partition",
    "produce-illegal-topic",
    "produce-empty-topic",
    "produce-dotdot",
}
PRODUCED = [
    record
    for record in captured("produce")
    if record.get("message_set_hex") is not None and record["id"] not in NOT_THE_SET
]


# fault R02
def test_the_whole_messages_before_any_cut_are_counted() -> None:
    ends = {0, 13, 26, len(PLAIN)}
    for size in range(len(PLAIN) + 1):
        assert whole_bytes(PLAIN[:size], base=0) == max(end for end in ends if end <= size)


def test_empty_data_has_no_whole_messages() -> None:
    assert whole_bytes(b"", base=7) == 0
    assert first_length(b"") is None
    assert validate_message_set(b"") == MessageSetSummary(whole_bytes=0, messages=0, largest_payload=0)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_measured(kind: type[bytes]) -> None:
    assert whole_bytes(kind(PLAIN), base=0) == len(PLAIN)
    assert first_length(kind(PLAIN)) == 13
    assert validate_message_set(kind(PLAIN)).messages == 3


# fault R04
@pytest.mark.parametrize("length", [-1, -(2**31), 0, 4])
@pytest.mark.parametrize("tail", [b"", b"\x01", b"\x00" * 20])
def test_a_length_below_any_header_is_corrupt_at_its_offset(length: int, tail: bytes) -> None:
    data = PLAIN + length.to_bytes(4, "big", signed=True) + tail
    with pytest.raises(Corrupt, match=f"a message length of {length} ") as raised:
        whole_bytes(data, base=1000, where=WHERE)
    assert raised.value.where == WHERE.at_offset(1000 + len(PLAIN))


# fault R04
def test_a_length_below_the_header_of_its_magic_is_corrupt() -> None:
    assert whole_bytes(message(b"", magic=0), base=0) == 9
    with pytest.raises(Corrupt, match="a message length of 5 "):
        whole_bytes(b"\x00\x00\x00\x05\x01\x00\x00\x00\x00", base=0)


# faults R03, R04: a length that is too large is a tail; the reader decides whether it is too large.
def test_a_length_beyond_the_data_is_not_an_error() -> None:
    claim = (2**30).to_bytes(4, "big")
    assert whole_bytes(PLAIN + claim + b"\x01\x00", base=0) == len(PLAIN)
    assert first_length(claim) == 2**30 + 4


# fault R12
@pytest.mark.parametrize("magic", [2, 127, 255])
def test_a_later_magic_is_unsupported(magic: int) -> None:
    with pytest.raises(Unsupported, match=f"magic {magic}"):
        whole_bytes(PLAIN + b"\x00\x00\x00\x07" + bytes([magic]), base=0)


@pytest.mark.parametrize("record", PRODUCED, ids=lambda record: record["id"])
def test_a_produced_set_is_accepted_or_refused_as_by_the_genuine_broker(record: dict[str, Any]) -> None:
    data = bytes.fromhex(record["message_set_hex"])
    if record["connection_after"] == "closed":
        with pytest.raises(WireError):
            validate_message_set(data)
        return
    (sizes,) = (
        pair for pair in record["log_bytes_before_after"].values() if pair[1] is not None and pair[0] != pair[1]
    )
    assert validate_message_set(data).whole_bytes == sizes[1] - (sizes[0] or 0)


def test_validation_counts_inner_messages_and_measures_outer_ones() -> None:
    inner = message_set([b"a" * 500, message_set([b"b", b"c"], codec=2)], codec=1)
    data = message(b"x" * 20) + inner + message(b"y" * 10)
    assert validate_message_set(data + b"\x00") == MessageSetSummary(
        whole_bytes=len(data), messages=4, largest_payload=max(20, len(inner) - 10)
    )


# fault R15
def test_validation_has_the_limits_of_decoding() -> None:
    bomb = message(gzip.compress(bytes(10_000)), attributes=1)
    with pytest.raises(TooLarge, match="max_decompressed_bytes"):
        validate_message_set(bomb, limits=DecodeLimits(max_decompressed_bytes=1000))


def test_an_error_has_the_offset_within_the_set() -> None:
    bad = bytearray(PLAIN)
    bad[-1] ^= 1
    with pytest.raises(Corrupt, match="wrong CRC") as raised:
        validate_message_set(bad, where=WHERE)
    assert raised.value.where == WHERE.at_offset(26)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("codec", [0, 1, 2])
def test_a_set_that_ends_before_its_first_length_is_empty(size: int, codec: int) -> None:  # fault F12
    """The iterator of a genuine broker ends where fewer than 4 bytes are left, and does not call it a message."""
    stump = PLAIN[:size]
    data = message(CODECS[codec].compress(stump), attributes=codec) if codec else stump
    assert validate_message_set(data) == MessageSetSummary(
        whole_bytes=len(data) if codec else 0, messages=0, largest_payload=len(data) - 10 if codec else 0
    )
    with pytest.raises(Corrupt, match="only a piece of a message"):
        validate_message_set(PLAIN[:4])
