"""Connections to a server that misbehaves: which requests are repeated, and which answer belongs to which request."""

import pytest

from kafka_io.errors import (
    BrokerError,
    ConnectFailed,
    ConnectionLost,
    Corrupt,
    DeadlineExceeded,
    LogShort,
    TooLarge,
    Where,
)
from kafka_io.model import Broker
from kafka_io.v07.messages import (
    AnyAnswer,
    FetchAnswer07,
    FetchRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
    ProduceRequest07,
)
from tests.fakes.hostile import Act, HostileServer, hear, reset, send, stall
from tests.kafka_io.conftest import ATTEMPTS, OpenConnection

FETCH = FetchRequest07("clicks", 0, 40, 100)
OTHER = FetchRequest07("clicks", 1, 0, 100)
OFFSETS = OffsetsRequest07("clicks", 0, -1, 1)
ANSWER = FetchAnswer07(0, b"for the first")
OTHER_ANSWER = FetchAnswer07(0, b"for the other")
SHORT = 0.3


def heard(*requests: FetchRequest07 | OffsetsRequest07 | ProduceRequest07) -> list[bytes]:
    """The requests as the server records them."""
    return [request.encode()[4:] for request in requests]


def test_a_connection_is_opened_by_the_first_request_and_kept(open_connection: OpenConnection) -> None:
    with HostileServer([hear, send(ANSWER.encode()), hear, send(OTHER_ANSWER.encode()), stall]) as server:
        connection = open_connection(server.broker)
        assert server.peers == []
        assert [connection.request(FETCH), connection.request(OTHER)] == [ANSWER, OTHER_ANSWER]
        assert len(server.peers) == 1


def test_a_refused_connection_is_retried_until_the_attempts_are_used_up(
    open_connection: OpenConnection,
) -> None:  # fault W01
    with HostileServer() as server:
        broker = server.broker
    pauses: list[float] = []
    with pytest.raises(ConnectFailed) as raised:
        open_connection(broker, sleep=pauses.append).request(FETCH)
    assert len(pauses) == ATTEMPTS - 1
    assert min(pauses) >= 0.1
    assert raised.value.where == Where(broker=f"7@127.0.0.1:{broker.port}")


@pytest.mark.parametrize("end", [[], [reset]], ids=["closed", "reset"])
def test_a_request_with_an_incomplete_answer_is_sent_again_on_a_new_connection(  # fault W02
    open_connection: OpenConnection, end: list[Act]
) -> None:
    data = ANSWER.encode()
    with HostileServer([hear, send(data[:9]), *end], [hear, send(data), stall]) as server:
        assert open_connection(server.broker).request(FETCH) == ANSWER
        assert server.requests == heard(FETCH, FETCH)
        assert len(server.peers) == 2


def test_an_answer_that_stays_incomplete_is_an_error_after_all_attempts(
    open_connection: OpenConnection,
) -> None:  # fault W03
    pauses: list[float] = []
    with HostileServer([hear, send(ANSWER.encode()[:9])]) as server:
        with pytest.raises(ConnectionLost):
            open_connection(server.broker, sleep=pauses.append).request(FETCH)
        assert server.requests == heard(*[FETCH] * ATTEMPTS)
        assert len(pauses) == ATTEMPTS - 1


@pytest.mark.slow
def test_a_broker_that_stops_in_an_answer_is_an_error_after_all_attempts(
    open_connection: OpenConnection,
) -> None:  # fault W04
    with HostileServer([hear, send(ANSWER.encode()[:9]), stall]) as server:
        with pytest.raises(DeadlineExceeded):
            open_connection(server.broker, timeout_s=SHORT).request(FETCH)
        assert len(server.requests) == ATTEMPTS


@pytest.mark.parametrize("answer", [bytes.fromhex("7fffffff"), bytes.fromhex("00000000"), bytes.fromhex("fffffffb")])
def test_a_request_with_an_invalid_answer_is_not_sent_again(
    open_connection: OpenConnection, answer: bytes
) -> None:  # faults W06, W07
    with HostileServer([hear, send(answer), stall], [hear, send(ANSWER.encode()), stall]) as server:
        connection = open_connection(server.broker)
        with pytest.raises((Corrupt, TooLarge)) as raised:
            connection.request(FETCH)
        assert raised.value.where == connection.where
        assert connection.request(FETCH) == ANSWER  # on a new connection: the old one is dropped
        assert len(server.peers) == 2


def test_a_request_is_sent_again_when_its_answer_is_not_accepted(open_connection: OpenConnection) -> None:
    def accepted(answer: AnyAnswer) -> None:
        if answer != ANSWER:
            raise LogShort("not yet")

    empty = FetchAnswer07(0).encode()
    with HostileServer([hear, send(empty), hear, send(ANSWER.encode()), stall]) as server:
        assert open_connection(server.broker).request(FETCH, accepted=accepted) == ANSWER
        assert len(server.peers) == 1


def test_a_request_is_not_sent_again_when_the_refusal_of_its_answer_is_not_retriable(
    open_connection: OpenConnection,
) -> None:
    def refuse(_: AnyAnswer) -> None:
        raise BrokerError("never")

    with HostileServer([hear, send(ANSWER.encode()), stall]) as server:
        with pytest.raises(BrokerError, match="never"):
            open_connection(server.broker).request(FETCH, accepted=refuse)
        assert len(server.requests) == 1


def test_the_answer_to_a_request_sent_ahead_can_be_taken_once(open_connection: OpenConnection) -> None:
    with HostileServer([hear, send(ANSWER.encode()), stall]) as server:
        take_answer = open_connection(server.broker).request_ahead(FETCH)
        assert (take_answer(), take_answer()) == (ANSWER, None)


@pytest.mark.parametrize("later", ["request", "request_ahead"])
def test_a_pending_answer_is_never_taken_for_that_of_another_request(
    open_connection: OpenConnection, later: str
) -> None:  # faults W08, W11
    with HostileServer([hear, send(ANSWER.encode()), stall], [hear, send(OTHER_ANSWER.encode()), stall]) as server:
        connection = open_connection(server.broker)
        take_answer = connection.request_ahead(FETCH)
        answer = connection.request(OTHER) if later == "request" else connection.request_ahead(OTHER)()
        assert (answer, take_answer()) == (OTHER_ANSWER, None)
        assert server.requests == heard(FETCH, OTHER)


def test_a_request_sent_ahead_has_no_answer_when_its_connection_is_lost(open_connection: OpenConnection) -> None:
    with HostileServer([hear]) as server:
        assert open_connection(server.broker).request_ahead(FETCH)() is None


def test_a_request_sent_ahead_to_a_broker_that_is_down_is_no_error(open_connection: OpenConnection) -> None:
    with HostileServer() as server:
        broker = server.broker
    assert open_connection(broker).request_ahead(FETCH)() is None


def test_an_invalid_answer_to_a_request_sent_ahead_is_an_error_with_its_location(
    open_connection: OpenConnection,
) -> None:  # fault W06
    with HostileServer([hear, send(bytes.fromhex("7fffffff")), stall]) as server:
        connection = open_connection(server.broker)
        take_answer = connection.request_ahead(FETCH)
        with pytest.raises(TooLarge) as raised:
            take_answer()
        assert raised.value.where == connection.where


def test_a_closed_connection_opens_again(open_connection: OpenConnection) -> None:
    with HostileServer([hear, send(ANSWER.encode()), stall]) as server:
        connection = open_connection(server.broker)
        for _ in range(2):
            assert connection.request(FETCH) == ANSWER
            connection.close()
            connection.close()
        assert len(server.peers) == 2


def test_a_confirmation_uses_the_connection_of_the_sent_requests(open_connection: OpenConnection) -> None:
    produce = ProduceRequest07("clicks", 0, b"messages")
    with HostileServer([hear, hear, send(OffsetsAnswer07(0, (8,)).encode()), stall]) as server:
        connection = open_connection(server.broker)
        connection.send(produce)
        assert connection.confirm(OFFSETS) == OffsetsAnswer07(0, (8,))
        assert server.requests == heard(produce, OFFSETS)


def test_nothing_is_confirmed_on_another_connection(open_connection: OpenConnection) -> None:
    with HostileServer([hear]) as server:
        connection = open_connection(server.broker)
        connection.send(ProduceRequest07("clicks", 0, b"refused"))
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                connection.confirm(OFFSETS)
        assert len(server.peers) == 1


def test_sending_to_a_broker_that_is_down_is_an_error(open_connection: OpenConnection) -> None:
    with HostileServer() as server:
        broker = server.broker
    with pytest.raises(ConnectFailed) as raised:
        open_connection(broker).send(ProduceRequest07("clicks", 0, b""))
    assert raised.value.where.broker == f"7@127.0.0.1:{broker.port}"


def test_the_address_of_an_ipv6_broker_has_brackets(open_connection: OpenConnection) -> None:
    assert open_connection(Broker(1, "::1", 9092)).where == Where(broker="1@[::1]:9092")
