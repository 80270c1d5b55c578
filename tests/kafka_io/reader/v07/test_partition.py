"""Bounded reads from a real broker return each row of a slice once, whatever happens in between."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.errors import (
    BrokerError,
    ConnectFailed,
    ConnectionLost,
    Corrupt,
    LogShort,
    OffsetOutOfRange,
    TooLarge,
    Where,
    WireError,
)
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.reader.reader import FetchSizes, ReadSettings
from kafka_io.reader.v07 import partition as module
from kafka_io.reader.v07.partition import Partition07, fetch_firsts
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.v07.messages import EARLIEST_TIME, FetchAnswer07, FetchRequest07
from tests.kafka_io.conftest import ATTEMPTS, OpenConnection, StartBroker
from tests.kafka_io.testing.v07.talk import Client, message, numbered

Rows = list[tuple[int, bytes]]

COUNT = 40
SIZE = 20  # of one of `numbered`
END = COUNT * SIZE
PER_SEGMENT = 400  # of the broker's 300: a segment overshoots by one request, of 100
NEVER_MS = 10**9


def rows(batches: Iterable[DecodedBatch]) -> Rows:
    """Offset and payload of each message."""
    return [
        row
        for decoded in batches
        for row in zip(decoded.batch["offset"].to_pylist(), decoded.batch["value"].to_pylist(), strict=True)
    ]


def expected(start: int = 0, stop: int = END, *, first: int = 0) -> Rows:
    """The content of the log in `[start, stop)`, if it begins with message `first`."""
    return [(offset, b"message-%02d" % (first + offset // SIZE)) for offset in range(start, stop, SIZE)]


def partition(
    connection: BrokerConnection07, number: int = 0, *, topic: str = "clicks", most: int = 1000, size: int = 100
) -> Partition07:
    """A partition of broker 0 that is read `size` bytes at a time."""
    read_settings = ReadSettings(sizes=FetchSizes(fetch_bytes=size, max_fetch_bytes=most))
    return Partition07(
        connection=connection, topic=topic, id=BrokerPartition(0, number), cluster="main", read_settings=read_settings
    )


@pytest.fixture
def broker(start_broker: StartBroker) -> BrokerServer07:
    """Two partitions of 40 messages each, over two segments; the second one's have numbers from 50 on."""
    server = start_broker()
    with Client(server.port) as client:
        for number, first in ((0, 0), (1, 50)):
            messages = numbered(COUNT, first=first)
            for offset in range(0, COUNT, 5):
                client.produce("clicks", *messages[offset : offset + 5], partition=number)
    return server


@pytest.fixture
def connection(broker: BrokerServer07, open_connection: OpenConnection) -> BrokerConnection07:
    """A connection to that broker."""
    return open_connection(broker)


@pytest.fixture
def purge(start_broker: StartBroker, broker: BrokerServer07) -> Callable[..., BrokerServer07]:
    """Starts the broker again with a retention that leaves the last segment, or nothing."""

    def restart(**retention: int) -> BrokerServer07:
        port = broker.port
        broker.stop()
        again = start_broker(port=port, flush_interval_ms=10, retention_check_ms=1, **retention)
        with Client(again.port) as client:
            while client.offsets("clicks", EARLIEST_TIME) == [0]:
                pass
        return again

    return restart


@pytest.mark.parametrize("size", [SIZE, SIZE + 1, 3 * SIZE - 1, 100, PER_SEGMENT, END, 10**6])
def test_a_log_is_read_to_its_end_over_all_segments(connection: BrokerConnection07, size: int) -> None:  # fault R02
    """A short answer is not the end: the broker never answers across the end of a segment [kafka-0.7: Fetch]."""
    batches = list(partition(connection, size=size, most=10**6).read(0, END))
    assert rows(batches) == expected()
    assert batches[-1].next_offset == END


@pytest.mark.parametrize(("start", "stop"), [(0, 20), (380, 420), (400, 500), (100, 780), (780, 800), (400, 400)])
def test_a_slice_is_read_to_its_last_byte_and_not_beyond(connection: BrokerConnection07, start: int, stop: int) -> None:
    assert rows(partition(connection).read(start, stop)) == expected(start, stop)


@pytest.mark.parametrize("size", [SIZE - 1, SIZE, SIZE + 1, 100, END])
@pytest.mark.parametrize(("stop", "end"), [(1, 20), (19, 20), (20, 20), (21, 40), (399, 400), (401, 420), (799, 800)])
def test_a_read_to_a_message_ends_after_the_one_that_reaches_the_stop(  # fault U02
    connection: BrokerConnection07, size: int, stop: int, end: int
) -> None:
    batches = list(partition(connection, size=size).read(0, stop, to_message=True))
    assert rows(batches) == expected(0, end)
    assert batches[-1].next_offset == end


def test_a_last_message_that_is_larger_than_the_fetch_is_read(connection: BrokerConnection07) -> None:
    assert rows(partition(connection, size=SIZE - 5).read(END - SIZE, END)) == expected(END - SIZE)


def test_a_first_answer_that_ends_inside_the_last_message_is_continued(connection: BrokerConnection07) -> None:
    reader = partition(connection)
    [first] = fetch_firsts(connection, [(reader, 0, 30)])
    assert rows(reader.read(0, 30, first=first, to_message=True)) == expected(0, 40)


def test_an_answer_that_continues_after_the_slice_is_cut_at_its_end(connection: BrokerConnection07) -> None:
    (first,) = fetch_firsts(connection, [(partition(connection), 0, 200)])
    assert rows(partition(connection).read(0, 60, first=first)) == expected(0, 60)


@pytest.mark.parametrize("size", [1, 4, 10, 99, 200])
def test_a_message_larger_than_the_fetch_is_read_with_a_larger_one(  # fault R03
    broker: BrokerServer07, connection: BrokerConnection07, size: int
) -> None:
    large = message(b"x" * 200)
    with Client(broker.port) as client:
        client.produce("large", large, *numbered(3))
    read_rows = rows(partition(connection, topic="large", size=size, most=len(large)).read(0, len(large) + 60))
    assert read_rows == [(0, b"x" * 200), *((len(large) + offset, payload) for offset, payload in expected(0, 60))]


def test_a_message_above_the_cap_is_an_error_that_names_the_setting(
    broker: BrokerServer07, connection: BrokerConnection07
) -> None:  # fault R03
    with Client(broker.port) as client:
        client.produce("large", *numbered(1), message(b"x" * 200), *numbered(1))
    with pytest.raises(TooLarge, match="of 210 bytes is above max_fetch_bytes = 209") as caught:
        rows(partition(connection, topic="large", size=SIZE, most=209).read(0, 250))
    assert caught.value.where.offset == SIZE


@pytest.mark.parametrize("stop", [1, 4, 10, 19])
@pytest.mark.parametrize("size", [10, 1000])
def test_a_message_across_the_end_of_the_slice_is_an_error(
    connection: BrokerConnection07, size: int, stop: int
) -> None:
    read_rows: Rows = []
    with pytest.raises(Corrupt, match="past the end of the log or slice") as caught:
        read_rows.extend(
            row for decoded in partition(connection, size=size).read(0, 40 + stop) for row in rows([decoded])
        )
    assert read_rows == expected(0, 40)
    assert caught.value.where.offset == 40


@pytest.mark.parametrize("start", range(1, SIZE))
def test_a_slice_that_starts_inside_a_message_is_an_error(
    connection: BrokerConnection07, start: int
) -> None:  # fault R26
    """The broker answers as if nothing were wrong, with bytes from the middle of a message [kafka-0.7: Fetch]."""
    with pytest.raises(WireError) as caught:
        rows(partition(connection).read(start, END))
    assert caught.value.where.offset == start


def test_an_offset_beyond_the_log_is_an_error_at_once(connection: BrokerConnection07) -> None:
    with pytest.raises(OffsetOutOfRange) as caught:
        rows(partition(connection).read(END + 1, END + 50))
    assert (caught.value.code, caught.value.where.offset) == (1, END + 1)


def test_an_expired_offset_is_an_error_that_names_it(  # fault B07
    connection: BrokerConnection07, purge: Callable[..., BrokerServer07]
) -> None:
    purge(retention_bytes=PER_SEGMENT)
    with pytest.raises(OffsetOutOfRange) as caught:
        rows(partition(connection).read(20, END))
    assert caught.value.where.as_dict() == {**partition(connection).where.as_dict(), "offset": 20}


def test_retention_between_the_plan_and_the_read_is_an_error(
    connection: BrokerConnection07, purge: Callable[..., BrokerServer07]
) -> None:
    # fault B08
    planned = partition(connection).bounds()
    purge(retention_bytes=PER_SEGMENT)
    with pytest.raises(OffsetOutOfRange):
        rows(partition(connection).read(planned.earliest, planned.latest))
    now = partition(connection).bounds()
    assert rows(partition(connection).read(now.earliest, now.latest)) == expected(PER_SEGMENT)


def test_a_log_shorter_than_the_slice_is_an_error_after_the_retry_budget(  # fault B03
    broker: BrokerServer07, open_connection: OpenConnection
) -> None:
    pauses: list[float] = []
    read_rows: Rows = []
    cut = partition(open_connection(broker, sleep=pauses.append))
    with pytest.raises(LogShort) as caught:
        read_rows.extend(row for decoded in cut.read(0, END + 50) for row in rows([decoded]))
    assert read_rows == expected()
    assert len(pauses) == ATTEMPTS - 1
    assert caught.value.where == cut.where.at_offset(END)


def test_a_read_waits_for_records_that_are_not_flushed_yet(
    broker: BrokerServer07, open_connection: OpenConnection
) -> None:
    def publish_meanwhile(_: float) -> None:
        with Client(broker.port) as client:
            client.produce("clicks", *numbered(1, first=COUNT))

    late = partition(open_connection(broker, sleep=publish_meanwhile))
    assert rows(late.read(END - 40, END + SIZE)) == expected(END - 40, END + SIZE)


def test_a_damaged_message_is_named_and_stops_its_partition_alone(  # faults R01, B15
    broker: BrokerServer07, connection: BrokerConnection07, tmp_path: Path
) -> None:
    with (tmp_path / "broker-0" / "clicks-0" / f"{PER_SEGMENT:020d}.kafka").open("r+b") as segment:
        segment.seek(2 * SIZE - 1)
        segment.write(b"!")
    with pytest.raises(Corrupt, match="wrong CRC") as caught:
        rows(partition(connection).read(0, END))
    assert caught.value.where == Where(
        cluster="main",
        broker=f"0@127.0.0.1:{broker.port}",
        topic="clicks",
        partition="0-0",
        offset=PER_SEGMENT + SIZE,
    )
    assert rows(partition(connection, 1).read(0, END)) == expected(first=50)


def test_a_broker_that_restarts_causes_no_gap_and_no_repetition(  # faults W02, B12
    start_broker: StartBroker, broker: BrokerServer07, open_connection: OpenConnection
) -> None:
    port, pauses = broker.port, list[float]()

    def restart(pause_s: float) -> None:
        pauses.append(pause_s)
        start_broker(port=port)

    read_settings = partition(open_connection(broker, sleep=restart)).read(0, END)
    read_rows = rows([next(read_settings)])
    broker.stop()
    assert [*read_rows, *rows(read_settings)] == expected()
    assert len(pauses) == 1


def test_a_broker_that_stays_away_is_an_error_that_says_where_reading_stopped(
    broker: BrokerServer07, open_connection: OpenConnection
) -> None:
    # fault B12
    read_settings = partition(open_connection(broker)).read(0, END)
    read_rows = rows([next(read_settings)])
    broker.stop()
    with pytest.raises(ConnectFailed) as caught:
        read_rows.extend(row for decoded in read_settings for row in rows([decoded]))
    assert caught.value.where.offset == read_rows[-1][0] + SIZE


def test_an_abandoned_read_leaves_the_connection_usable(connection: BrokerConnection07) -> None:  # fault W11
    read_settings = partition(connection).read(0, END)
    assert rows([next(read_settings)]) == expected(0, 100)
    del read_settings
    assert partition(connection, 1).bounds().latest == END
    assert rows(partition(connection, 1).read(0, END)) == expected(first=50)


def test_an_abandoned_read_leaves_no_answer_for_a_read_with_a_first_answer(
    connection: BrokerConnection07,
) -> None:  # faults W08, W11
    firsts = fetch_firsts(connection, [(partition(connection, number), 0, 100) for number in (0, 1)])
    given_up = partition(connection, 0).read(0, END, first=firsts[0])
    assert rows([next(given_up)]) == expected(0, 100)
    assert rows(partition(connection, 1).read(0, END, first=firsts[1])) == expected(first=50)


def test_alternating_reads_over_one_connection_get_their_own_rows(connection: BrokerConnection07) -> None:  # fault W11
    readings = [partition(connection, number).read(0, END) for number in (0, 1)]
    all_rows: tuple[Rows, Rows] = ([], [])
    for batches in zip(*readings, strict=True):
        for partition_rows, batch in zip(all_rows, batches, strict=True):
            partition_rows.extend(rows([batch]))
    assert all_rows == (expected(), expected(first=50))


def test_bounds_are_the_ends_of_the_log_and_the_starts_of_its_segments_between(connection: BrokerConnection07) -> None:
    assert partition(connection).bounds() == Bounds(earliest=0, latest=END, segment_starts=(PER_SEGMENT,))


def test_a_topic_that_was_never_written_to_is_empty(connection: BrokerConnection07) -> None:
    assert partition(connection, topic="nothing").bounds() == Bounds(earliest=0, latest=0)


def test_a_purged_log_starts_where_its_oldest_segment_does(
    connection: BrokerConnection07, purge: Callable[..., BrokerServer07]
) -> None:
    purge(retention_bytes=PER_SEGMENT)
    assert partition(connection).bounds() == Bounds(earliest=PER_SEGMENT, latest=END)


def test_a_log_purged_of_everything_is_empty_at_its_end(
    connection: BrokerConnection07, purge: Callable[..., BrokerServer07]
) -> None:
    purge(retention_ms=-NEVER_MS)
    assert partition(connection).bounds() == Bounds(earliest=END, latest=END)


def test_a_partition_the_broker_does_not_have_is_a_closed_connection(connection: BrokerConnection07) -> None:
    with pytest.raises(ConnectionLost) as caught:
        partition(connection, 2).bounds()
    assert caught.value.where == partition(connection, 2).where


def test_more_segments_than_one_request_can_list_are_an_error(
    connection: BrokerConnection07, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer would end before the earliest offset, and older messages would never be loaded."""
    monkeypatch.setattr(module, "MAX_SEGMENTS", 2)
    with pytest.raises(TooLarge, match="2 segments or more"):
        partition(connection).bounds()


def test_each_part_of_a_multifetch_has_its_own_error(connection: BrokerConnection07) -> None:  # fault B11
    fetches = [
        (partition(connection), 0, 40),
        (partition(connection), END + 1, 40),
        (partition(connection, 2), 0, 40),
        (partition(connection, topic="a/b"), 0, 40),
        (partition(connection, topic="nothing"), 0, 40),
        (partition(connection, 1), 780, 20),
    ]
    firsts = fetch_firsts(connection, fetches)
    assert [first.error for first in firsts] == [0, 1, 3, -1, 0, 0]
    assert rows(fetches[0][0].read(0, 40, first=firsts[0])) == expected(0, 40)
    assert rows(fetches[5][0].read(780, 800, first=firsts[5])) == expected(780, first=50)
    for (reader, offset, size), first in zip(fetches[1:4], firsts[1:4], strict=True):
        with pytest.raises(BrokerError) as caught:
            rows(reader.read(offset, offset + size, first=first))
        assert (caught.value.code, caught.value.where) == (first.error, reader.where.at_offset(offset))


def test_an_empty_first_answer_is_fetched_again(connection: BrokerConnection07) -> None:
    assert rows(partition(connection).read(0, 40, first=FetchAnswer07(0))) == expected(0, 40)


@pytest.mark.parametrize(("size", "most"), [(0, 10), (-1, 10), (11, 10), (1, 2**31)])
def test_invalid_fetch_sizes_are_refused(size: int, most: int) -> None:
    with pytest.raises(ValueError, match="fetch_bytes"):
        FetchSizes(fetch_bytes=size, max_fetch_bytes=most)


def damage(folder: Path, segment: int, position: int, data: bytes = b"!") -> None:
    """Overwrite bytes of a segment of partition 0."""
    with (folder / "broker-0" / "clicks-0" / f"{segment:020d}.kafka").open("r+b") as file:
        file.seek(position)
        file.write(data)


# fault N03
@pytest.mark.parametrize("start", [0, 380, 400, 780])
def test_a_message_with_a_wrong_checksum_ends_where_its_length_says(
    broker: BrokerServer07, connection: BrokerConnection07, tmp_path: Path, start: int
) -> None:
    damage(tmp_path, start // PER_SEGMENT * PER_SEGMENT, start % PER_SEGMENT + SIZE - 1)
    unreadable = partition(connection).unreadable(start, END)
    assert (unreadable.start, unreadable.stop, len(unreadable.data), unreadable.data[-1:]) == (
        start,
        start + SIZE,
        SIZE,
        b"!",
    )
    assert rows(partition(connection).read(unreadable.stop, END)) == expected(unreadable.stop)


# fault N03
@pytest.mark.parametrize("length", [-1, 0, 3, 17, 10**6, 2**31 - 1])
@pytest.mark.parametrize(("start", "end"), [(0, PER_SEGMENT), (100, PER_SEGMENT), (PER_SEGMENT + SIZE, END)])
def test_a_message_with_a_wrong_length_hides_the_rest_of_its_segment(
    broker: BrokerServer07, connection: BrokerConnection07, tmp_path: Path, length: int, start: int, end: int
) -> None:
    segment = start // PER_SEGMENT * PER_SEGMENT
    damage(tmp_path, segment, start - segment, length.to_bytes(4, "big", signed=True))
    unreadable = partition(connection).unreadable(start, END)
    assert (unreadable.start, unreadable.stop, len(unreadable.data)) == (start, end, end - start)


def test_the_range_ends_at_the_first_segment_after_it(
    connection: BrokerConnection07, broker: BrokerServer07, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(tmp_path, 0, 100, b"\xff\xff\xff\xff")
    bounds = Bounds(earliest=0, latest=END, segment_starts=(100, PER_SEGMENT, PER_SEGMENT + 100))
    monkeypatch.setattr(Partition07, "bounds", lambda _: bounds)
    assert partition(connection).unreadable(100, END).stop == PER_SEGMENT


def test_a_damaged_message_of_the_size_of_the_largest_fetch_is_kept(
    connection: BrokerConnection07, broker: BrokerServer07, tmp_path: Path
) -> None:
    damage(tmp_path, 0, 2 * SIZE - 1)
    largest = partition(connection, most=SIZE, size=SIZE)
    unreadable = largest.unreadable(SIZE, END)
    assert (unreadable.start, unreadable.stop, len(unreadable.data)) == (SIZE, 2 * SIZE, SIZE)
    assert largest.unreadable(2 * SIZE, END).stop == 2 * SIZE


def test_no_look_is_larger_than_the_largest_fetch(
    connection: BrokerConnection07, broker: BrokerServer07, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(tmp_path, 0, 2 * SIZE - 1)
    looking, fetch, sizes = partition(connection, most=SIZE, size=SIZE), Partition07.fetch, []

    def noted(self: Partition07, offset: int, size: int) -> FetchRequest07:
        sizes.append(size)
        return fetch(self, offset, size)

    monkeypatch.setattr(Partition07, "fetch", noted)
    looking.unreadable(SIZE, END)
    assert max(sizes) == SIZE


def test_a_message_that_can_be_read_is_not_unreadable(broker: BrokerServer07, connection: BrokerConnection07) -> None:
    unreadable = partition(connection).unreadable(20, END)
    assert (unreadable.start, unreadable.stop) == (20, 20)


# fault N04
def test_a_message_above_the_largest_fetch_is_left_out_up_to_the_next(connection: BrokerConnection07) -> None:
    unreadable = partition(connection, most=SIZE - 1, size=SIZE - 1).unreadable(40, END)
    assert (unreadable.start, unreadable.stop, unreadable.data) == (40, 60, b"")
