"""Tails of a cluster that grows, moves, breaks and comes back while it is watched."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.opening import open_cluster
from kafka_io.errors import ConnectFailed, Corrupt, OffsetOutOfRange, TopicReplaced
from kafka_io.model import BrokerPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.build import Record, record_batch
from pipelines.cli.output.tail_lines import rows_of
from pipelines.plan.positions import NamedPosition, TableCursor, TopicPosition
from pipelines.tail.follow import Tail
from pipelines.tail.query import TailQuery, TailRefused
from tests.fakes.cluster import FakeBroker, FakeCluster, Log

READ_SETTINGS = ReadSettings(retry_policy=RetryPolicy(timeout_s=5.0, backoff=Backoff(attempts=1)))
LIFE, OTHER_LIFE = UUID(int=7), UUID(int=8)
P0, P1, P2 = (BrokerPartition(None, number) for number in range(3))
Seen = tuple[int, int]


def log(count: int, *, leader: int = 0, size: int = 1) -> Log:
    """Records in batches of one, whose values are their offsets; the first offset is 3."""
    grown = Log(entries=[], start=3, end=3, leader=leader)
    for _ in range(count):
        append(grown, size=size)
    return grown


def append(log: Log, *, size: int = 1) -> None:
    """One more record; readers may ask at any time."""
    value = b"%d" % log.end * size
    log.entries.append((log.end, record_batch([Record(offset=log.end, value=value)])))
    log.end += 1


class Watch:
    """Opens tails whose pauses take no time: in each, the next of `events` happens, and `step_s` of clock go by."""

    def __init__(self, fake: FakeCluster, closing: ExitStack) -> None:
        self.fake = fake
        self.events: list[Callable[[], object]] = []
        self.notes: list[str] = []
        self.cursors: Mapping[BrokerPartition, int] = {}
        self.step_s = 0.5
        self._now = 0.0
        self._closing = closing

    def tail(
        self,
        since: TopicPosition = NamedPosition.EARLIEST,
        until: TopicPosition | None = None,
        partitions: Sequence[BrokerPartition] = (),
    ) -> Iterator[Seen]:
        """(partition, offset) of what comes; each value must be that of its offset."""
        address = ",".join(broker.address for broker in self.fake.bootstrap)
        tail = Tail(
            open_cluster=lambda: open_cluster("main", bootstrap=address, read_settings=READ_SETTINGS),
            query=TailQuery(topic="clicks", since=since, until=until, partitions=frozenset(partitions)),
            cursors=lambda _: self.cursors,
            on_warning=self.notes.append,
            sleep=self._pass,
            clock=lambda: self._now,
        )
        self._closing.enter_context(tail)
        for rows in rows_of(tail.batches()):
            for row in rows:
                assert row.value is not None
                assert row.value.startswith(b"%d" % row.offset)
                yield row.partition.partition, row.offset

    def _pass(self, _seconds: float) -> None:
        self._now += self.step_s
        if self.events:
            self.events.pop(0)()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def watch(closing: ExitStack) -> Callable[..., Watch]:
    """`watch({0: log})`: a cluster with these partitions."""

    def open_(logs: dict[int, Log], **options: Any) -> Watch:
        return Watch(closing.enter_context(FakeCluster(logs=logs, topic_id=LIFE, **options)), closing)

    return open_


OpenWatch = Callable[..., Watch]


def test_all_records_at_the_start_are_shown_up_to_the_end(watch: OpenWatch) -> None:
    watched = watch({0: log(4), 1: log(2, leader=1)})
    seen = list(watched.tail(until=NamedPosition.LATEST))
    assert sorted(seen) == [(0, 3), (0, 4), (0, 5), (0, 6), (1, 3), (1, 4)]
    assert watched.notes == []


def test_partitions_take_turns_and_each_stays_in_order(watch: OpenWatch) -> None:
    watched = watch({number: log(4, size=800_000) for number in range(2)})
    seen = list(watched.tail(until=NamedPosition.LATEST))
    assert [offset for partition, offset in seen if partition == 0] == [3, 4, 5, 6]
    assert {partition for partition, _ in seen[:4]} == {0, 1}


@pytest.mark.parametrize(
    ("since", "until", "offsets"),
    [
        (NamedPosition.EARLIEST, NamedPosition.LATEST, [3, 4, 5, 6]),
        (NamedPosition.LATEST, NamedPosition.LATEST, []),
        (4, 6, [4, 5]),
        (7, 7, []),
        (6, 4, []),
        (TableCursor.COMMITTED, NamedPosition.LATEST, [5, 6]),
    ],
)
def test_a_tail_begins_and_ends_at_the_positions_of_its_query(
    since: TopicPosition, until: TopicPosition, offsets: list[int], watch: OpenWatch
) -> None:
    watched = watch({0: log(4)})
    watched.cursors = {P0: 5}
    assert [offset for _, offset in watched.tail(since, until)] == offsets


def test_a_partition_without_a_cursor_begins_at_the_earliest_offset(watch: OpenWatch) -> None:
    watched = watch({0: log(2), 1: log(2)})
    watched.cursors = {P1: 5}
    assert list(watched.tail(TableCursor.COMMITTED, NamedPosition.LATEST)) == [(0, 3), (0, 4)]


def test_a_tail_waits_for_an_end_that_the_log_has_not_reached(watch: OpenWatch) -> None:
    partition_log = log(1)
    watched = watch({0: partition_log})
    watched.events = [lambda: append(partition_log)] * 3
    assert list(watched.tail(until=6)) == [(0, 3), (0, 4), (0, 5)]


@pytest.mark.parametrize("since", [2, 8, TableCursor.COMMITTED])
def test_a_start_outside_the_log_is_refused(since: TopicPosition, watch: OpenWatch) -> None:
    watched = watch({0: log(4)})
    watched.cursors = {P0: 2}
    with pytest.raises(OffsetOutOfRange, match=r"outside the broker's log, which is \[3, 7\)") as caught:
        list(watched.tail(since))
    assert (caught.value.where.topic, caught.value.where.partition) == ("clicks", "0")


def test_an_offset_needs_a_single_partition(watch: OpenWatch) -> None:
    watched = watch({0: log(2), 1: log(2)})
    with pytest.raises(
        TailRefused, match="offset 4 is meaningful in one partition only; choose a partition of topic clicks: 0, 1"
    ):
        list(watched.tail(4))
    assert list(watched.tail(4, NamedPosition.LATEST, [P1])) == [(1, 4)]


def test_a_missing_partition_or_topic_is_refused(watch: OpenWatch) -> None:
    watched = watch({0: log(2), 1: log(2)})
    with pytest.raises(TailRefused, match="topic clicks has no partition 2; its partitions are: 0, 1"):
        list(watched.tail(partitions=[P1, P2]))
    watched.fake.topic = "views"
    with pytest.raises(TailRefused, match="the cluster has no topic 'clicks'"):
        list(watched.tail())


def test_later_records_are_shown_when_they_arrive(watch: OpenWatch) -> None:
    partition_log = log(2)
    watched = watch({0: partition_log, 1: log(1)})
    watched.events = [lambda: None, lambda: append(partition_log), lambda: append(partition_log)]
    assert list(islice(watched.tail(NamedPosition.LATEST), 2)) == [(0, 5), (0, 6)]
    assert watched.notes == []


def test_a_new_partition_is_shown_from_its_start(watch: OpenWatch) -> None:
    watched = watch({0: log(2)})
    watched.step_s = 6.0
    watched.events = [lambda: watched.fake.logs.update({1: log(2)})]
    assert list(islice(watched.tail(NamedPosition.LATEST), 2)) == [(1, 3), (1, 4)]


def test_a_tail_waits_for_a_missing_broker_and_reads_the_others(watch: OpenWatch) -> None:
    """It comes back at another address."""
    here, away = log(1), log(1, leader=1)
    watched = watch({0: here, 1: away})
    brokers = watched.fake.brokers

    def back() -> None:
        brokers[1] = FakeBroker(watched.fake, 1)

    tail = watched.tail()
    assert sorted(islice(tail, 2)) == [(0, 3), (1, 3)]
    watched.step_s = 4.0
    watched.events = [brokers[1].close, lambda: append(here), lambda: append(away), back]
    assert list(islice(tail, 2)) == [(0, 4), (1, 4)]
    assert len(watched.notes) == 2  # that it left, and that it cannot be reached
    assert all("partition=1]; trying again" in note for note in watched.notes)


def test_with_an_end_a_temporary_error_is_raised(watch: OpenWatch) -> None:
    watched = watch({0: log(1), 1: log(1, leader=1)})
    watched.fake.brokers[1].close()
    with pytest.raises(ConnectFailed) as caught:
        list(watched.tail(until=NamedPosition.LATEST))
    assert caught.value.where.partition == 1


def test_records_before_a_damaged_batch_are_shown_before_the_error(watch: OpenWatch) -> None:  # fault R06
    partition_log = log(6)
    offset, data = partition_log.entries[4]
    partition_log.entries[4] = (offset, data[:-1] + b"\xff")
    seen: list[Seen] = []
    with pytest.raises(Corrupt, match="CRC") as caught:
        extend(seen, watch({0: partition_log}).tail())
    assert seen == [(0, 3), (0, 4), (0, 5), (0, 6)]
    assert caught.value.where.offset == 7


def extend(seen: list[Seen], tail: Iterator[Seen]) -> None:
    """Keep what came before an error."""
    for shown in tail:
        seen.append(shown)  # noqa: PERF402 - a list that is extended keeps nothing of what came before an error


# fault B05
def test_a_recreated_topic_ends_the_tail(watch: OpenWatch) -> None:
    watched = watch({0: log(1)})
    watched.step_s = 20.0

    def recreate() -> None:
        watched.fake.topic_id = OTHER_LIFE

    watched.events = [recreate]
    with pytest.raises(TopicReplaced):
        list(watched.tail())


def test_a_tail_waits_for_a_topic_that_the_brokers_do_not_know_for_a_while(watch: OpenWatch) -> None:
    partition_log = log(1)
    watched = watch({0: partition_log})
    watched.step_s = 6.0

    def hide() -> None:
        watched.fake.topic = "other"

    def show() -> None:
        watched.fake.topic = "clicks"
        append(partition_log)

    watched.events = [hide, lambda: None, lambda: None, show]
    assert list(islice(watched.tail(), 2)) == [(0, 3), (0, 4)]
    assert any("no such topic now; waiting for it" in note for note in watched.notes)


def test_a_log_that_became_shorter_is_reported(watch: OpenWatch) -> None:
    partition_log = log(4)
    watched = watch({0: partition_log})

    def cut() -> None:
        del partition_log.entries[2:]
        partition_log.end = 5

    watched.events = [cut, *[lambda: None] * 5, *[lambda: append(partition_log)] * 4]
    assert list(islice(watched.tail(), 6)) == [(0, 3), (0, 4), (0, 5), (0, 6), (0, 7), (0, 8)]
    assert ["read up to 7 and now ends before" in note for note in watched.notes] == [True]


def test_records_that_expire_before_they_are_read_are_an_error(watch: OpenWatch) -> None:
    partition_log = log(2)
    watched = watch({0: partition_log})

    def expire() -> None:
        for _ in range(5):
            append(partition_log)
        del partition_log.entries[:4]
        partition_log.start = 7

    watched.events = [expire]
    with pytest.raises(OffsetOutOfRange):
        list(watched.tail())
