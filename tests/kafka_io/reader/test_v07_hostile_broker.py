"""Bounded reads from a server that lies, breaks off or sends too early return each row once, or a typed error."""

import threading
from collections.abc import Sequence

import pytest

from kafka_io.errors import (
    BrokerError,
    ConnectionLost,
    Corrupt,
    DeadlineExceeded,
    KafkaIOError,
    LogShort,
    OffsetOutOfRange,
    WireError,
)
from kafka_io.model import MAX_OFFSET, Bounds, BrokerPartition
from kafka_io.reader.reader import FetchSizes, ReadSettings
from kafka_io.reader.v07.partition import Partition07, fetch_firsts
from kafka_io.v07.messages import (
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    OffsetsAnswer07,
    OffsetsRequest07,
)
from tests.fakes.hostile import Act, HostileServer, drip, hear, reset, send, stall
from tests.kafka_io.conftest import ATTEMPTS, OpenConnection
from tests.kafka_io.reader.v07.test_partition import SIZE, expected, rows
from tests.kafka_io.testing.v07.talk import message, numbered

LOG = b"".join(numbered(10))
SHORT = 0.3


def partition(
    server: HostileServer, open_connection: OpenConnection, *, size: int = 100, timeout_s: float = 20.0
) -> Partition07:
    """A partition of 10 messages, read 5 at a time."""
    connection = open_connection(server.broker, timeout_s=timeout_s)
    read_settings = ReadSettings(sizes=FetchSizes(fetch_bytes=size, max_fetch_bytes=200))
    return Partition07(
        connection=connection, topic="clicks", id=BrokerPartition(7, 0), cluster="main", read_settings=read_settings
    )


def answers(*parts: FetchAnswer07 | bytes) -> list[Act]:
    """Acts that answer one fetch after the other with these parts of a log."""
    frames = [(FetchAnswer07(0, part) if isinstance(part, bytes) else part).encode() for part in parts]
    return [act for frame in frames for act in (hear, send(frame))]


def fetches(server: HostileServer) -> list[tuple[int, int]]:
    """Offset and size of every fetch the server heard."""
    return [
        (int.from_bytes(request[-12:-4], "big"), int.from_bytes(request[-4:], "big")) for request in server.requests
    ]


# fault G15
def test_the_broker_receives_the_next_fetch_before_the_first_batch_is_consumed(open_connection: OpenConnection) -> None:
    received = threading.Event()
    second = FetchAnswer07(0, LOG[100:]).encode()
    with HostileServer([*answers(LOG[:100]), hear, lambda _: received.set(), send(second), stall]) as server:
        batches = partition(server, open_connection).read(0, 200)
        first_rows = rows([next(batches)])
        assert received.wait(10)
        assert fetches(server) == [(0, 100), (100, 100)]
        assert first_rows + rows(batches) == expected(0, 200)
        assert len(fetches(server)) == 2


@pytest.mark.parametrize("end", [[], [reset]], ids=["closed", "reset"])
def test_an_answer_that_breaks_off_is_fetched_again_from_the_same_offset(  # fault W02
    open_connection: OpenConnection, end: Sequence[Act]
) -> None:
    half = FetchAnswer07(0, LOG[100:]).encode()[:57]
    with HostileServer([*answers(LOG[:100]), hear, send(half), *end], [*answers(LOG[100:]), stall]) as server:
        assert rows(partition(server, open_connection).read(0, 200)) == expected(0, 200)
        assert fetches(server) == [(0, 100), (100, 100), (100, 100)]


def test_an_answer_that_always_breaks_off_is_an_error_after_all_attempts(
    open_connection: OpenConnection,
) -> None:  # fault W03
    half = FetchAnswer07(0, LOG[:100]).encode()[:57]
    with HostileServer([hear, send(half)]) as server:
        with pytest.raises(ConnectionLost) as caught:
            rows(partition(server, open_connection).read(0, 200))
        assert fetches(server) == [(0, 100)] * ATTEMPTS
        assert caught.value.where.offset == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "last_acts", [[stall], [drip(bytes(100), every_s=0.05)]], ids=["silence", "a byte now and then"]
)
def test_an_answer_that_stops_ends_with_the_deadline(  # faults W04, W05
    open_connection: OpenConnection, last_acts: Sequence[Act]
) -> None:
    half = FetchAnswer07(0, LOG[:100]).encode()[:7]
    with HostileServer([hear, send(half), *last_acts]) as server:
        with pytest.raises(DeadlineExceeded):
            rows(partition(server, open_connection, timeout_s=SHORT).read(0, 200))
        assert fetches(server) == [(0, 100)] * ATTEMPTS


def test_a_repeated_answer_is_never_decoded_at_the_next_offset(open_connection: OpenConnection) -> None:  # fault W08
    repeated = FetchAnswer07(0, LOG[:100]).encode()
    with HostileServer([hear, send(repeated * 2), stall]) as server:
        read_settings = partition(server, open_connection).read(0, 200)
        with pytest.raises(Corrupt, match="without a request"):
            rows(read_settings)
        assert fetches(server) == [(0, 100)]


@pytest.mark.parametrize(
    ("code", "error"), [(-1, BrokerError), (1, OffsetOutOfRange), (3, BrokerError), (999, BrokerError)]
)
def test_an_error_code_is_raised_at_once_with_its_number_and_place(  # faults W13, W14, B08
    open_connection: OpenConnection, code: int, error: type[BrokerError]
) -> None:
    with HostileServer([*answers(LOG[:100], FetchAnswer07(code)), stall]) as server:
        read_settings = partition(server, open_connection).read(0, 200)
        assert rows([next(read_settings)]) == expected(0, 100)
        with pytest.raises(error) as caught:
            next(read_settings)
        assert (type(caught.value), caught.value.code, caught.value.where.offset) == (error, code, 100)
        assert caught.value.where.partition == "7-0"
        assert len(server.requests) == 2


@pytest.mark.parametrize("size", [bytes.fromhex("7fffffff"), bytes.fromhex("00000000"), bytes.fromhex("fffffffb")])
def test_an_invalid_size_is_an_error_with_its_place(
    open_connection: OpenConnection, size: bytes
) -> None:  # faults W06, W07
    with HostileServer([*answers(LOG[:100]), hear, send(size), stall]) as server:
        read_settings = partition(server, open_connection).read(0, 200)
        assert rows([next(read_settings)]) == expected(0, 100)
        with pytest.raises(WireError) as caught:
            next(read_settings)
        assert caught.value.where.partition == "7-0"
        assert len(server.requests) == 2


def test_a_fetch_doubles_until_the_length_is_known_then_asks_for_it_and_stays_large(
    open_connection: OpenConnection,
) -> None:  # fault R03
    large = message(b"x" * 90)
    with HostileServer([*answers(large[:3], large[:6], large, *numbered(1)), stall]) as server:
        assert rows(partition(server, open_connection, size=3).read(0, 120)) == [(0, b"x" * 90), (100, b"message-00")]
        assert fetches(server) == [(0, 3), (0, 6), (0, 100), (100, 20)]


def test_a_message_that_is_never_whole_is_an_error(open_connection: OpenConnection) -> None:  # faults R03, R04
    stump = message(b"x" * 90)[:30]
    with HostileServer([*answers(stump, stump), stall]) as server:
        with pytest.raises(Corrupt, match="a message of 100 bytes runs past the end"):
            rows(partition(server, open_connection, size=30).read(0, 120))
        assert fetches(server) == [(0, 30), (0, 100)]


def test_an_answer_that_stays_empty_is_a_short_log(open_connection: OpenConnection) -> None:  # fault B03
    with HostileServer(answers(*[b""] * 100)) as server:
        with pytest.raises(LogShort):
            rows(partition(server, open_connection).read(0, 200))
        assert len(server.requests) == ATTEMPTS


def test_a_first_answer_that_is_given_is_not_fetched(open_connection: OpenConnection) -> None:
    with HostileServer([stall]) as server:
        first = FetchAnswer07(0, LOG[:100])
        assert rows(partition(server, open_connection).read(0, 100, first=first)) == expected(0, 100)
        assert server.peers == []


def test_a_first_answer_that_is_too_small_for_a_message_is_continued(open_connection: OpenConnection) -> None:
    large = message(b"x" * 90)
    with HostileServer([*answers(large, *numbered(1)), stall]) as server:
        reader = partition(server, open_connection, size=30)
        assert len(rows(reader.read(0, 120, first=FetchAnswer07(0, large[:30])))) == 2
        assert fetches(server) == [(0, 100), (100, 20)]


def test_an_error_code_says_nothing_about_the_messages(open_connection: OpenConnection) -> None:
    with HostileServer([*answers(FetchAnswer07(1)), stall]) as server:
        with pytest.raises(OffsetOutOfRange):
            partition(server, open_connection).unreadable(0, 200)
        assert len(server.requests) == 1


def test_a_message_without_a_payload_may_follow_a_damaged_one(open_connection: OpenConnection) -> None:
    broken, empty = message(b"x")[:-1] + b"y", message(b"", magic=0)
    with HostileServer([*answers(broken[:9], broken[:9], broken, empty, empty, broken), stall]) as server:
        unreadable = partition(server, open_connection).unreadable(0, 200)
        assert (unreadable.stop, unreadable.data) == (len(broken), broken)


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_a_multifetch_answer_with_another_number_of_parts_is_refused(
    open_connection: OpenConnection, parts: int
) -> None:  # faults W10, W11
    with HostileServer([hear, send(MultiFetchAnswer07((FetchAnswer07(0),) * parts).encode()), stall]) as server:
        reader = partition(server, open_connection)
        with pytest.raises(Corrupt, match=f"{parts} answers to 2 fetches") as caught:
            fetch_firsts(reader.connection, [(reader, 0, SIZE), (reader, SIZE, SIZE)])
        assert (caught.value.where, len(server.requests)) == (reader.connection.where, 1)


@pytest.mark.parametrize(
    ("offsets", "bounds"),
    [
        ((0,), Bounds(earliest=0, latest=0)),
        ((700,), Bounds(earliest=700, latest=700)),
        ((700, 400), Bounds(earliest=400, latest=700)),
        ((700, 700, 400), Bounds(earliest=400, latest=700)),
        ((700, 600, 500, 400), Bounds(earliest=400, latest=700, segment_starts=(500, 600))),
    ],
)
def test_bounds_come_from_one_answer(open_connection: OpenConnection, offsets: tuple[int, ...], bounds: Bounds) -> None:
    with HostileServer([hear, send(OffsetsAnswer07(0, offsets).encode()), stall]) as server:
        assert partition(server, open_connection).bounds() == bounds
        assert server.requests == [OffsetsRequest07("clicks", 0, -1, 1_000_000).encode()[4:]]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (OffsetsAnswer07(0), Corrupt),
        (OffsetsAnswer07(0, (-1,)), Corrupt),  # fault B14
        (OffsetsAnswer07(0, (5, -2)), Corrupt),  # fault B14
        (OffsetsAnswer07(0, (MAX_OFFSET + 1, 0)), Corrupt),  # fault H01
        (OffsetsAnswer07(0, (5, 9)), Corrupt),
        (OffsetsAnswer07(0, (9, 5, 7)), Corrupt),
        (OffsetsAnswer07(3), BrokerError),
        (OffsetsAnswer07(999, (5,)), BrokerError),  # fault W13
    ],
)
def test_invalid_bounds_are_an_error_with_its_place(
    open_connection: OpenConnection, answer: OffsetsAnswer07, error: type[KafkaIOError]
) -> None:
    with HostileServer([hear, send(answer.encode()), stall]) as server:
        reader = partition(server, open_connection)
        with pytest.raises(error) as caught:
            reader.bounds()
        assert (caught.value.where, len(server.requests)) == (reader.where, 1)


def test_a_fetch_names_its_own_partition(open_connection: OpenConnection) -> None:
    with HostileServer([stall]) as server:
        assert partition(server, open_connection).fetch(41, 100) == FetchRequest07("clicks", 0, 41, 100)
