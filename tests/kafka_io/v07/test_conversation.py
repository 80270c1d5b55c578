"""Answers belong to the requests in their order; an answer that does not fit ends the conversation."""

from collections.abc import Callable

import pytest

from kafka_io.errors import Corrupt, KafkaIOError, TooLarge, Truncated, Unsupported
from kafka_io.v07.messages import (
    AnyAnswer,
    ClientConversation07,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    MultiFetchRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
    ProduceRequest07,
)
from kafka_io.wire.framing import framed
from tests.golden_v07 import captured, requests_in
from tests.receiving import receive

FETCH = FetchRequest07("plain", 0, 0, 100)
OFFSETS = OffsetsRequest07("plain", 0, -1, 1)


def conversation(
    *requests: FetchRequest07 | MultiFetchRequest07 | OffsetsRequest07 | ProduceRequest07,
) -> ClientConversation07:
    client = ClientConversation07()
    for request in requests:
        client.send(request)
    return client


def test_pipelined_answers_match_by_position() -> None:
    answers: list[AnyAnswer] = [FetchAnswer07(0, b"abc"), OffsetsAnswer07(0, (7,)), FetchAnswer07(1)]
    stream = b"".join(answer.encode() for answer in answers)
    client = conversation(FETCH, ProduceRequest07("plain", 0, b""), OFFSETS, FETCH)
    assert client.waiting == 3
    assert list(receive(client, stream)) == answers
    client = conversation(FETCH, OFFSETS, FETCH)
    assert [
        answer for position in range(len(stream)) for answer in receive(client, stream[position : position + 1])
    ] == answers
    assert client.waiting == 0


def test_both_ends_decode_a_captured_pipeline() -> None:
    (record,) = [record for record in captured("framing") if record["id"] == "pipelined"]
    requests = list(requests_in(bytes.fromhex(record["request_hex"])))
    assert [type(message).__name__ for message in requests] == ["FetchRequest07", "ProduceRequest07", "FetchRequest07"]
    client = conversation(*requests)  # type: ignore[arg-type]
    answers = list(receive(client, bytes.fromhex(record["response_hex"])))
    assert [type(message).__name__ for message in answers] == ["FetchAnswer07", "FetchAnswer07"]


def test_multifetch_errors_are_per_item() -> None:
    request = MultiFetchRequest07((FETCH, FETCH, FETCH))
    answer = MultiFetchAnswer07((FetchAnswer07(0, b"abc"), FetchAnswer07(1), FetchAnswer07(-1)))
    assert list(receive(conversation(request), answer.encode())) == [answer]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        pytest.param(framed(b"\x00\x00" + bytes(101)), TooLarge, id="more bytes than asked for"),
        pytest.param((2**31 - 1).to_bytes(4, "big"), TooLarge, id="fault W06: a size of 2 GiB"),
        pytest.param(bytes(4), Corrupt, id="fault W07: a size of 0"),
        pytest.param(b"\xff\xff\xff\xfb", Corrupt, id="fault W07: a negative size"),
    ],
)
def test_a_fetch_answer_that_does_not_fit_the_request_is_refused(frame: bytes, error: type[KafkaIOError]) -> None:
    with pytest.raises(error):
        list(receive(conversation(FETCH), frame))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x00\x00\x7f\xff\xff\xff", id="fault W09: a count of 2 G"),
        pytest.param(b"\x00\x00\xff\xff\xff\xff", id="fault W09: a negative count"),
        pytest.param(b"\x00\x00\x00\x00\x00\x00abc", id="fault W12: bytes left over"),
    ],
)
def test_an_invalid_offsets_answer_is_refused(body: bytes) -> None:
    with pytest.raises(Corrupt):
        list(receive(conversation(OFFSETS), framed(body)))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((FetchAnswer07(0),), id="fault W11: one answer to two fetches"),
        pytest.param((FetchAnswer07(0), FetchAnswer07(0), FetchAnswer07(0)), id="fault W11: three answers"),
        pytest.param((FetchAnswer07(0, bytes(101)), FetchAnswer07(0)), id="fault W10: a part larger than asked for"),
    ],
)
def test_a_multifetch_answer_must_fit_its_request(parts: tuple[FetchAnswer07, ...]) -> None:
    with pytest.raises(Corrupt):
        list(receive(conversation(MultiFetchRequest07((FETCH, FETCH))), MultiFetchAnswer07(parts).encode()))


def test_a_part_that_ends_after_its_answer_is_truncated() -> None:
    with pytest.raises(Truncated):
        list(
            receive(
                conversation(MultiFetchRequest07((FETCH,))), framed(b"\x00\x00" + b"\x00\x00\x00\x09" + b"\x00\x00")
            )
        )


def test_an_answer_without_a_request_is_refused() -> None:  # fault W08
    with pytest.raises(Corrupt, match="without a request"):
        list(receive(ClientConversation07(), FetchAnswer07(0).encode()))


def _unknown_api() -> bytes:
    return framed(b"\x00\x05")


def _short_fetch() -> bytes:
    return framed(b"\x00\x01\x00\x05plain")


@pytest.mark.parametrize(("frame", "error"), [(_unknown_api, Unsupported), (_short_fetch, Truncated)])
def test_requests_before_an_invalid_one_are_answered(frame: Callable[[], bytes], error: type[KafkaIOError]) -> None:
    stream = requests_in(ClientConversation07().send(FETCH) + frame())
    assert next(stream) == FETCH
    with pytest.raises(error):
        next(stream)


@pytest.mark.parametrize("record", captured("framing"), ids=lambda record: record["id"])
def test_exactly_the_frames_that_a_genuine_broker_refuses_are_refused(record: dict[str, str]) -> None:
    try:
        list(requests_in(bytes.fromhex(record["request_hex"])))
        refused = False
    except KafkaIOError:
        refused = True
    assert refused == (record["connection_after"] == "closed")
