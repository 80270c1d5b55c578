"""The bytes of a genuine 0.7.2 broker give what its own client gave. Run with the compiler off too."""

import zlib
from typing import Any

import pytest

from kafka_io.errors import WireError
from kafka_io.records.v07.message_set import first_length, whole_bytes
from tests.golden_v07 import captured
from tests.kafka_io.records.v07_decoding import LOGS, decoded_rows, expected, log_bytes, read_rows
from tests.oracles import sets_v07

INSIDE_A_MESSAGE = "fetch-inside-message"
ANSWERS = {
    record["id"]: record
    for record in captured("fetch")
    if record["connection_after"] == "open" and record["response"]["error_code"] == 0
}


def answered_set(record: dict[str, Any]) -> bytes:
    """Behind the size and the error code."""
    return bytes.fromhex(record["response_hex"])[6:]


@pytest.mark.parametrize("name", LOGS)
def test_a_log_gives_what_the_genuine_iterator_gave(name: str) -> None:
    rows = decoded_rows(log_bytes(name))
    messages = expected(name)
    assert [(offset, value.hex()) for offset, _, value in rows] == [
        (message["start"], message["payload_hex"]) for message in messages
    ]
    assert [zlib.crc32(value) for _, _, value in rows] == [message["crc"] for message in messages]


@pytest.mark.parametrize("name", LOGS)
def test_offset_and_inner_are_unique_and_grow(name: str) -> None:
    keys = [(offset, inner) for offset, inner, _ in decoded_rows(log_bytes(name))]
    assert keys == sorted(set(keys))
    wrapped = [message["start"] for message in expected(name) if message["wrapper_codec"]]
    assert [inner for offset, inner in keys if offset not in wrapped] == [0] * (len(keys) - len(wrapped))
    for start in set(wrapped):
        assert [inner for offset, inner in keys if offset == start] == list(range(wrapped.count(start)))


# fault R02
@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {INSIDE_A_MESSAGE}))
def test_a_fetch_answer_gives_the_rows_of_the_oracle(name: str) -> None:
    record = ANSWERS[name]
    data, base = answered_set(record), record["offset"]
    whole = whole_bytes(data, base=base)
    assert whole == sets_v07.whole_bytes(data) == record["response"]["valid_bytes"]
    assert decoded_rows(data[:whole], base=base) == sets_v07.decode(data[:whole], base=base)


# fault R26
def test_a_fetch_from_inside_a_message_is_an_error_with_that_offset() -> None:
    record = ANSWERS[INSIDE_A_MESSAGE]
    with pytest.raises(WireError) as raised:
        read_rows(answered_set(record), base=record["offset"])
    assert raised.value.where.offset == record["offset"]


def test_an_incomplete_message_gives_its_size() -> None:
    stumps = {name: first_length(answered_set(record)) for name, record in ANSWERS.items()}
    assert stumps["fetch-big-too-small"] == 5010
    assert stumps["fetch-small-cuts-first"] == stumps["fetch-small-4"] == 15
    assert stumps["fetch-small-3"] is None
