"""Connections of 0.7 to a server that breaks every rule of the protocol."""

import gc
import pickle
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest

from kafka_io.errors import ConnectionLost, Corrupt, DeadlineExceeded, KafkaIOError, NetworkError, TooLarge, WireError
from kafka_io.net.connection import Connection
from kafka_io.net.deadline import Deadline
from kafka_io.v07.messages import (
    AnyAnswer,
    AnyRequest,
    ClientConversation07,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    MultiFetchRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
)
from kafka_io.wire.framing import framed
from tests.fakes.hostile import Act, HostileServer, drip, hear, reset, send, stall

FETCH = FetchRequest07("clicks", 0, 0, 100)
TWO = MultiFetchRequest07((FETCH, FetchRequest07("clicks", 1, 0, 100)))
OFFSETS = OffsetsRequest07("clicks", 0, -1, 10)
ANSWER = FetchAnswer07(0, b"some bytes").encode()
GENEROUS = 20.0
SHORT = 0.3


@contextmanager
def connection(script: Sequence[Act], *, timeout_s: float = GENEROUS) -> Iterator[Connection[AnyRequest, AnyAnswer]]:
    with HostileServer(script) as server:
        opened = Connection[AnyRequest, AnyAnswer].open(server.broker, ClientConversation07(), timeout_s=timeout_s)
        with closing(opened):
            yield opened


def test_answers_arrive_in_the_order_of_their_requests() -> None:
    answers = [FetchAnswer07(0, bytes((number,))) for number in range(3)]
    with connection([hear, hear, hear, *(send(answer.encode()) for answer in answers)]) as asking:
        for _ in answers:
            asking.send(FETCH)
        assert asking.waiting == 3
        assert [asking.answer() for _ in answers] == answers
        assert asking.waiting == 0


def test_a_connection_cannot_be_sent_to_another_process() -> None:  # fault S09
    with connection([hear]) as opened, pytest.raises(TypeError, match="pickle"):
        pickle.dumps(opened)


def test_a_closed_connection_holds_no_memory_of_answers() -> None:
    answer = FetchAnswer07(0, bytes(3_000_000)).encode()
    gc.disable()  # the objects of a connection refer to each other, so otherwise it would depend on the next collection
    tracemalloc.start()
    try:
        with connection([hear, send(answer)]) as opened:
            opened.request(FetchRequest07("clicks", 0, 0, 4_000_000))
            before, _ = tracemalloc.get_traced_memory()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert before - after > 2_500_000


def test_an_answer_can_arrive_byte_by_byte() -> None:
    with connection([hear, drip(ANSWER, every_s=0.0)]) as asking:
        assert asking.request(FETCH) == FetchAnswer07(0, b"some bytes")


@pytest.mark.parametrize("cut", [0, 3, 4, 6, len(ANSWER) - 1])
@pytest.mark.parametrize("end", [[], [reset]], ids=["closed", "reset"])
def test_an_answer_that_ends_early_is_a_lost_connection(cut: int, end: list[Act]) -> None:  # faults W02, W03
    with connection([hear, send(ANSWER[:cut]), *end]) as asking:
        with pytest.raises(ConnectionLost):
            asking.request(FETCH)
        assert asking.closed


@pytest.mark.parametrize("cut", [0, 3, len(ANSWER) - 1])
def test_waiting_for_an_incomplete_answer_ends_with_the_deadline(cut: int) -> None:  # fault W04
    with connection([hear, send(ANSWER[:cut]), stall], timeout_s=SHORT) as asking:
        with pytest.raises(DeadlineExceeded):
            asking.request(FETCH)
        assert asking.closed


def test_single_bytes_do_not_extend_the_deadline() -> None:  # fault W05
    trickle = drip(ANSWER * 100, every_s=0.05)
    with connection([hear, trickle], timeout_s=SHORT) as asking, pytest.raises(DeadlineExceeded):
        asking.request(FETCH)


@pytest.mark.parametrize(
    ("request_", "answer", "error"),
    [
        (FETCH, bytes.fromhex("7fffffff"), TooLarge),  # fault W06
        (FETCH, framed(bytes(2 + 101)), TooLarge),  # fault W06: a byte more than was asked for
        (FETCH, bytes.fromhex("00000000"), Corrupt),  # fault W07
        (FETCH, bytes.fromhex("00000001"), Corrupt),  # fault W07
        (FETCH, bytes.fromhex("fffffffb"), Corrupt),  # fault W07
        (OFFSETS, framed(bytes.fromhex("0000 7fffffff")), WireError),  # fault W09
        (OFFSETS, framed(bytes.fromhex("0000 fffffff9")), WireError),  # fault W09
        (TWO, framed(bytes.fromhex("0000 00000010 0000")), WireError),  # fault W10: a part beyond the frame
        (TWO, MultiFetchAnswer07((FetchAnswer07(0),)).encode(), Corrupt),  # fault W11: one part of two
        (TWO, MultiFetchAnswer07((FetchAnswer07(0),) * 3).encode(), Corrupt),  # fault W11: three
        (TWO, MultiFetchAnswer07((FetchAnswer07(0), FetchAnswer07(0, bytes(101)))).encode(), Corrupt),  # fault W11
        (OFFSETS, framed(OffsetsAnswer07(0, (5,)).encode()[4:], b"x"), WireError),  # fault W12
    ],
)  # fmt: skip
def test_an_invalid_answer_is_an_error_and_closes_the_connection(
    request_: AnyRequest, answer: bytes, error: type[KafkaIOError]
) -> None:
    with connection([hear, send(answer), stall]) as asking:
        with pytest.raises(error) as raised:
            asking.request(request_)
        assert (asking.closed, raised.value.retriable) == (True, False)


def test_a_duplicated_answer_is_never_taken_for_the_next_one() -> None:  # fault W08
    with connection([hear, send(ANSWER + ANSWER), stall]) as asking:
        asking.request(FETCH)
        with pytest.raises(Corrupt, match="without a request"):
            asking.request(FetchRequest07("clicks", 0, 10, 100))
        assert asking.closed


def test_bytes_without_a_request_close_the_connection() -> None:  # fault W08
    with HostileServer([send(ANSWER), stall]) as server:
        opened = Connection[AnyRequest, AnyAnswer].open(server.broker, ClientConversation07(), timeout_s=GENEROUS)
        with closing(opened), pytest.raises(Corrupt, match="without a request"):
            opened.answer()


def test_a_connection_that_the_broker_closed_is_noticed_before_the_next_request() -> None:
    with connection([hear, send(ANSWER)]) as asking:
        asking.request(FETCH)
        with pytest.raises(ConnectionLost):  # waits for the end of the stream, and leaves it there
            asking._stream.receive_into(memoryview(bytearray(1)), Deadline.after(GENEROUS))
        with pytest.raises(ConnectionLost):
            asking.send(FETCH)
        assert asking.closed


def test_a_closed_connection_stays_closed() -> None:
    with connection([stall]) as asking:
        asking.close()
        asking.close()
        with pytest.raises(NetworkError):
            asking.request(FETCH)
