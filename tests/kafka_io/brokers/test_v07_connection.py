"""A link to a server that misbehaves: what is asked again, what is not, and whose answer an answer is."""

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
from tests.kafka_io.conftest import ATTEMPTS, OpenLink

FETCH = FetchRequest07("clicks", 0, 40, 100)
OTHER = FetchRequest07("clicks", 1, 0, 100)
OFFSETS = OffsetsRequest07("clicks", 0, -1, 1)
ANSWER = FetchAnswer07(0, b"for the first")
OTHER_ANSWER = FetchAnswer07(0, b"for the other")
SHORT = 0.3


def heard(*requests: FetchRequest07 | OffsetsRequest07 | ProduceRequest07) -> list[bytes]:
    """As the server keeps them."""
    return [request.encode()[4:] for request in requests]


def test_a_connection_is_opened_when_needed_and_kept(open_link: OpenLink) -> None:
    with HostileServer([hear, send(ANSWER.encode()), hear, send(OTHER_ANSWER.encode()), stall]) as server:
        link = open_link(server.broker)
        assert server.peers == []
        assert [link.request(FETCH), link.request(OTHER)] == [ANSWER, OTHER_ANSWER]
        assert len(server.peers) == 1


def test_a_refused_connection_is_tried_again_until_the_attempts_are_used_up(open_link: OpenLink) -> None:  # fault W01
    with HostileServer() as server:
        broker = server.broker
    pauses: list[float] = []
    with pytest.raises(ConnectFailed) as caught:
        open_link(broker, sleep=pauses.append).request(FETCH)
    assert len(pauses) == ATTEMPTS - 1
    assert min(pauses) >= 0.1
    assert caught.value.where == Where(broker=f"7@127.0.0.1:{broker.port}")


@pytest.mark.parametrize("end", [[], [reset]], ids=["closed", "reset"])
def test_an_answer_cut_once_is_asked_for_again_on_a_new_connection(  # fault W02
    open_link: OpenLink, end: list[Act]
) -> None:
    data = ANSWER.encode()
    with HostileServer([hear, send(data[:9]), *end], [hear, send(data), stall]) as server:
        assert open_link(server.broker).request(FETCH) == ANSWER
        assert server.requests == heard(FETCH, FETCH)
        assert len(server.peers) == 2


def test_an_answer_cut_for_good_is_an_error_after_the_retry_budget(open_link: OpenLink) -> None:  # fault W03
    pauses: list[float] = []
    with HostileServer([hear, send(ANSWER.encode()[:9])]) as server:
        with pytest.raises(ConnectionLost):
            open_link(server.broker, sleep=pauses.append).request(FETCH)
        assert server.requests == heard(*[FETCH] * ATTEMPTS)
        assert len(pauses) == ATTEMPTS - 1


def test_silence_in_mid_answer_is_an_error_after_the_retry_budget(open_link: OpenLink) -> None:  # fault W04
    with HostileServer([hear, send(ANSWER.encode()[:9]), stall]) as server:
        with pytest.raises(DeadlineExceeded):
            open_link(server.broker, timeout_s=SHORT).request(FETCH)
        assert len(server.requests) == ATTEMPTS


@pytest.mark.parametrize("answer", [bytes.fromhex("7fffffff"), bytes.fromhex("00000000"), bytes.fromhex("fffffffb")])
def test_what_is_no_answer_is_not_asked_for_again(open_link: OpenLink, answer: bytes) -> None:  # faults W06, W07
    with HostileServer([hear, send(answer), stall], [hear, send(ANSWER.encode()), stall]) as server:
        link = open_link(server.broker)
        with pytest.raises((Corrupt, TooLarge)) as caught:
            link.request(FETCH)
        assert caught.value.where == link.where
        assert link.request(FETCH) == ANSWER  # on a new connection: the old one is dropped
        assert len(server.peers) == 2


def test_an_answer_not_good_enough_is_asked_for_again(open_link: OpenLink) -> None:
    def accepted(answer: AnyAnswer) -> None:
        if answer != ANSWER:
            raise LogShort("not yet")

    empty = FetchAnswer07(0).encode()
    with HostileServer([hear, send(empty), hear, send(ANSWER.encode()), stall]) as server:
        assert open_link(server.broker).request(FETCH, accepted=accepted) == ANSWER
        assert len(server.peers) == 1


def test_an_answer_not_good_enough_is_not_asked_for_again_when_that_cannot_help(open_link: OpenLink) -> None:
    def refuse(_: AnyAnswer) -> None:
        raise BrokerError("never")

    with HostileServer([hear, send(ANSWER.encode()), stall]) as server:
        with pytest.raises(BrokerError, match="never"):
            open_link(server.broker).request(FETCH, accepted=refuse)
        assert len(server.requests) == 1


def test_an_answer_asked_for_ahead_is_there_when_it_is_wanted(open_link: OpenLink) -> None:
    with HostileServer([hear, send(ANSWER.encode()), stall]) as server:
        ahead = open_link(server.broker).request_ahead(FETCH)
        assert (ahead.answer(), ahead.answer()) == (ANSWER, None)


@pytest.mark.parametrize("later", ["request", "request_ahead"])
def test_an_answer_nobody_collected_is_never_taken_for_anothers(
    open_link: OpenLink, later: str
) -> None:  # faults W08, W11
    with HostileServer([hear, send(ANSWER.encode()), stall], [hear, send(OTHER_ANSWER.encode()), stall]) as server:
        link = open_link(server.broker)
        ahead = link.request_ahead(FETCH)
        answer = link.request(OTHER) if later == "request" else link.request_ahead(OTHER).answer()
        assert (answer, ahead.answer()) == (OTHER_ANSWER, None)
        assert server.requests == heard(FETCH, OTHER)


def test_what_was_asked_ahead_is_gone_with_its_connection(open_link: OpenLink) -> None:
    with HostileServer([hear]) as server:
        assert open_link(server.broker).request_ahead(FETCH).answer() is None


def test_asking_ahead_of_a_broker_that_is_away_is_no_error(open_link: OpenLink) -> None:
    with HostileServer() as server:
        broker = server.broker
    assert open_link(broker).request_ahead(FETCH).answer() is None


def test_a_wrong_answer_asked_for_ahead_is_an_error_with_its_place(open_link: OpenLink) -> None:  # fault W06
    with HostileServer([hear, send(bytes.fromhex("7fffffff")), stall]) as server:
        link = open_link(server.broker)
        ahead = link.request_ahead(FETCH)
        with pytest.raises(TooLarge) as caught:
            ahead.answer()
        assert caught.value.where == link.where


def test_a_closed_link_opens_again(open_link: OpenLink) -> None:
    with HostileServer([hear, send(ANSWER.encode()), stall]) as server:
        link = open_link(server.broker)
        for _ in range(2):
            assert link.request(FETCH) == ANSWER
            link.close()
            link.close()
        assert len(server.peers) == 2


def test_confirming_asks_on_the_connection_that_was_told(open_link: OpenLink) -> None:
    told = ProduceRequest07("clicks", 0, b"messages")
    with HostileServer([hear, hear, send(OffsetsAnswer07(0, (8,)).encode()), stall]) as server:
        link = open_link(server.broker)
        link.send(told)
        assert link.confirm(OFFSETS) == OffsetsAnswer07(0, (8,))
        assert server.requests == heard(told, OFFSETS)


def test_nothing_is_confirmed_on_another_connection_however_often_it_is_asked(open_link: OpenLink) -> None:
    with HostileServer([hear]) as server:
        link = open_link(server.broker)
        link.send(ProduceRequest07("clicks", 0, b"refused"))
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                link.confirm(OFFSETS)
        assert len(server.peers) == 1


def test_telling_a_broker_that_is_away_is_an_error(open_link: OpenLink) -> None:
    with HostileServer() as server:
        broker = server.broker
    with pytest.raises(ConnectFailed) as caught:
        open_link(broker).send(ProduceRequest07("clicks", 0, b""))
    assert caught.value.where.broker == f"7@127.0.0.1:{broker.port}"


def test_an_ipv6_broker_is_named_with_brackets(open_link: OpenLink) -> None:
    assert open_link(Broker(1, "::1", 9092)).where == Where(broker="1@[::1]:9092")
