"""Answers come in the order of requests, whole or cut anywhere; what cannot be ours ends the conversation."""

from collections.abc import Callable

import pytest

from kafka_io.errors import Corrupt, KafkaIOError, TooLarge, Truncated, Unsupported
from kafka_io.v07.conversation import ClientConversation, ServerConversation
from kafka_io.v07.messages import (
    AnyAnswer,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    Offsets,
    OffsetsAnswer,
    Produce,
)
from kafka_io.wire.framing import framed
from tests.golden_v07 import captured

FETCH = Fetch("plain", 0, 0, 100)
OFFSETS = Offsets("plain", 0, -1, 1)


def conversation(*requests: Fetch | MultiFetch | Offsets | Produce) -> ClientConversation:
    client = ClientConversation()
    for request in requests:
        client.send(request)
    return client


def test_pipelined_answers_match_by_position() -> None:
    answers: list[AnyAnswer] = [FetchAnswer(0, b"abc"), OffsetsAnswer(0, (7,)), FetchAnswer(1)]
    stream = b"".join(answer.encode() for answer in answers)
    client = conversation(FETCH, Produce("plain", 0, b""), OFFSETS, FETCH)
    assert client.waiting == 3
    assert list(client.receive(stream)) == answers
    client = conversation(FETCH, OFFSETS, FETCH)
    assert [one for at in range(len(stream)) for one in client.receive(stream[at : at + 1])] == answers
    assert client.waiting == 0


def test_a_captured_pipeline_is_understood_by_both_ends() -> None:
    (record,) = [one for one in captured("framing") if one["id"] == "pipelined"]
    requests = list(ServerConversation().receive(bytes.fromhex(record["request_hex"])))
    assert [type(one).__name__ for one in requests] == ["Fetch", "Produce", "Fetch"]
    client = conversation(*requests)  # type: ignore[arg-type]
    answers = list(client.receive(bytes.fromhex(record["response_hex"])))
    assert [type(one).__name__ for one in answers] == ["FetchAnswer", "FetchAnswer"]


def test_multifetch_errors_are_per_item() -> None:
    request = MultiFetch((FETCH, FETCH, FETCH))
    answer = MultiFetchAnswer((FetchAnswer(0, b"abc"), FetchAnswer(1), FetchAnswer(-1)))
    assert list(conversation(request).receive(answer.encode())) == [answer]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        pytest.param(framed(b"\x00\x00" + bytes(101)), TooLarge, id="more bytes than asked for"),
        pytest.param((2**31 - 1).to_bytes(4, "big"), TooLarge, id="W06 a size of 2 GiB"),
        pytest.param(bytes(4), Corrupt, id="W07 a size of 0"),
        pytest.param(b"\xff\xff\xff\xfb", Corrupt, id="W07 a negative size"),
    ],
)
def test_a_fetch_answer_that_cannot_be_ours_is_refused(frame: bytes, error: type[KafkaIOError]) -> None:
    with pytest.raises(error):
        list(conversation(FETCH).receive(frame))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x00\x00\x7f\xff\xff\xff", id="W09 a count of 2 G"),
        pytest.param(b"\x00\x00\xff\xff\xff\xff", id="W09 a negative count"),
        pytest.param(b"\x00\x00\x00\x00\x00\x00abc", id="W12 bytes left over"),
    ],
)
def test_an_offsets_answer_that_lies_is_refused(body: bytes) -> None:
    with pytest.raises(Corrupt):
        list(conversation(OFFSETS).receive(framed(body)))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((FetchAnswer(0),), id="W11 one answer to two fetches"),
        pytest.param((FetchAnswer(0), FetchAnswer(0), FetchAnswer(0)), id="W11 three answers"),
        pytest.param((FetchAnswer(0, bytes(101)), FetchAnswer(0)), id="W10 a part larger than asked for"),
    ],
)
def test_a_multifetch_answer_must_fit_its_request(parts: tuple[FetchAnswer, ...]) -> None:
    with pytest.raises(Corrupt):
        list(conversation(MultiFetch((FETCH, FETCH))).receive(MultiFetchAnswer(parts).encode()))


def test_a_part_that_passes_the_end_of_its_answer_is_truncated() -> None:
    with pytest.raises(Truncated):
        list(conversation(MultiFetch((FETCH,))).receive(framed(b"\x00\x00" + b"\x00\x00\x00\x09" + b"\x00\x00")))


def test_an_answer_nobody_asked_for_is_refused() -> None:  # W08
    with pytest.raises(Corrupt, match="nobody asked"):
        list(ClientConversation().receive(FetchAnswer(0).encode()))


def _unknown_api() -> bytes:
    return framed(b"\x00\x05")


def _short_fetch() -> bytes:
    return framed(b"\x00\x01\x00\x05plain")


@pytest.mark.parametrize(("frame", "error"), [(_unknown_api, Unsupported), (_short_fetch, Truncated)])
def test_a_broker_answers_what_came_before_a_bad_request(frame: Callable[[], bytes], error: type[KafkaIOError]) -> None:
    stream = ServerConversation().receive(ClientConversation().send(FETCH) + frame())
    assert next(stream) == FETCH
    with pytest.raises(error):
        next(stream)


@pytest.mark.parametrize("record", captured("framing"), ids=lambda record: record["id"])
def test_a_broker_refuses_just_the_frames_the_genuine_one_closed_on(record: dict[str, str]) -> None:
    try:
        list(ServerConversation().receive(bytes.fromhex(record["request_hex"])))
        refused = False
    except KafkaIOError:
        refused = True
    assert refused == (record["connection_after"] == "closed")
