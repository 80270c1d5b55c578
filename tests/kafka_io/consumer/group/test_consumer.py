"""A member of a group reads each message once, starts at the right offset, and commits what it has read."""

import threading

import pytest

from kafka_io.consumer.group.assignors import ASSIGNORS, Assignor
from kafka_io.consumer.group.consumer import GroupConsumer
from kafka_io.consumer.group.fetcher import ConsumedBatch
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.errors import KafkaIOError, OffsetOutOfRange
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import FetchSizes
from tests.kafka_io.consumer.group.conftest import GroupBroker, all_values, poll_until, shares_are, values
from tests.kafka_io.testing.modern.talk import START_MS

SMALL_0 = TopicPartition("small", 0)


@pytest.fixture
def small(group_broker: GroupBroker) -> GroupBroker:
    """A broker with a topic of one partition, which holds value-0 to value-9, a second apart."""
    group_broker.create("small", 1)
    group_broker.append("small", 10)
    return group_broker


def numbers(batches: list[ConsumedBatch]) -> list[int]:
    return [int(value.removeprefix(b"value-")) for value in values(batches)]


def read_small(member: GroupConsumer, count: int) -> list[int]:
    """The first `count` numbers that the member reads."""
    return numbers(poll_until([member], lambda read: len(values(read[member])) >= count)[member])


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=lambda assignor: assignor.name)
def test_each_message_is_read_once_while_members_come_and_go(group_broker: GroupBroker, assignor: Assignor) -> None:
    sent = group_broker.publish(20)
    first = group_broker.member(assignors=(assignor,))
    got = all_values(poll_until([first], lambda read: len(all_values(read)) == 20))
    second = group_broker.member(assignors=(assignor,))
    got += all_values(poll_until([first, second], shares_are(2, 2)))
    sent += group_broker.publish(20)
    got += all_values(poll_until([first, second], lambda read: len(all_values(read)) == 20))
    first.close()
    got += all_values(poll_until([second], shares_are(4)))
    sent += group_broker.publish(20)
    got += all_values(poll_until([second], lambda read: len(all_values(read)) == 20))
    assert sorted(got) == sorted(sent)


def test_messages_have_all_fields_of_their_records(small: GroupBroker) -> None:
    [batch] = poll_until([member := small.member(topics=["small"])], lambda read: bool(read[member]))[member]
    first, *_, last = batch
    assert (first.topic, first.partition.partition, first.offset, first.next_offset) == ("small", 0, 0, 1)
    assert (last.key, last.value, last.timestamp_ms) == (b"k", b"value-9", START_MS + 9000)
    assert batch.next_offset == 10


def test_reading_continues_at_the_committed_offset(small: GroupBroker) -> None:
    with small.member(topics=["small"], auto_commit_s=None) as first:
        assert read_small(first, 10) == list(range(10))
        first.commit({SMALL_0: 4})
        assert first.committed([SMALL_0, TopicPartition("clicks", 0)]) == {SMALL_0: 4}
    with small.member(topics=["small"]) as second:
        assert read_small(second, 6) == [4, 5, 6, 7, 8, 9]
    third = small.member(topics=["small"])
    small.append("small", 1)
    assert read_small(third, 1) == [0]
    assert third.position(SMALL_0) == 11


def test_delivered_records_are_not_committed_if_an_error_ends_the_block(small: GroupBroker) -> None:
    def fail() -> None:
        with small.member(topics=["small"]) as member:
            read_small(member, 10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert read_small(small.member(topics=["small"]), 10) == list(range(10))


def test_due_offsets_are_committed_automatically(small: GroupBroker) -> None:
    member = small.member(topics=["small"], auto_commit_s=0.05)
    poll_until([member], lambda _: member.committed([SMALL_0]) == {SMALL_0: 10})
    assert member.position(SMALL_0) == 10


def test_an_asynchronous_commit_calls_its_callback_in_a_poll(small: GroupBroker) -> None:
    member = small.member(topics=["small"], auto_commit_s=None)
    read_small(member, 10)
    calls: list[tuple[dict[TopicPartition, int], KafkaIOError | None, int]] = []
    member.commit_async(on_done=lambda offsets, error: calls.append((dict(offsets), error, threading.get_ident())))
    poll_until([member], lambda _: bool(calls))
    assert calls == [({SMALL_0: 10}, None, threading.get_ident())]
    assert member.committed([SMALL_0]) == {SMALL_0: 10}


def test_each_seek_sets_the_position(small: GroupBroker) -> None:
    member = small.member(topics=["small"])
    read_small(member, 10)
    member.seek(SMALL_0, 7)
    assert read_small(member, 3) == [7, 8, 9]
    member.seek_to_beginning([SMALL_0])
    assert read_small(member, 10) == list(range(10))
    member.seek_to_time([SMALL_0], START_MS + 8000)
    assert member.position(SMALL_0) == 8
    member.seek_to_end([SMALL_0])
    assert member.position(SMALL_0) == 10


@pytest.mark.parametrize(("partition", "offset"), [(TopicPartition("clicks", 0), 1), (SMALL_0, -1)])
def test_a_seek_needs_an_assigned_partition_and_a_valid_offset(
    small: GroupBroker, partition: TopicPartition, offset: int
) -> None:
    member = small.member(topics=["small"])
    poll_until([member], shares_are(1))
    with pytest.raises(ValueError, match=r"not assigned|must not be negative"):
        member.seek(partition, offset)


def test_no_record_of_a_paused_partition_is_delivered(small: GroupBroker) -> None:
    member = small.member(topics=["small", "clicks"])
    poll_until([member], lambda read: shares_are(5)(read) and len(values(read[member])) == 10)
    member.pause([SMALL_0])
    small.append("small", 5)
    sent = small.publish(4)
    assert all_values(poll_until([member], lambda read: len(all_values(read)) == 4)) == sent
    assert member.paused == {SMALL_0}
    member.resume([SMALL_0])
    assert read_small(member, 5) == [0, 1, 2, 3, 4]


def test_partitions_for_which_an_answer_has_no_room_are_fetched_next(small: GroupBroker) -> None:
    small.create("idle", 1)
    room_for_one = FetchSizes(fetch_bytes=1000, max_fetch_bytes=1000)
    with GroupConsumer(small.cluster(room_for_one), "readers", topics=["idle", "small"]) as member:
        assert read_small(member, 10) == list(range(10))


def test_a_partition_without_an_offset_starts_at_the_offset_reset(small: GroupBroker) -> None:
    latest = small.member(group="latest", topics=["small"], reset="latest")
    poll_until([latest], lambda _: shares_are(1)({latest: []}) and latest.position(SMALL_0) == 10)
    none = small.member(group="none", topics=["small"], reset="none")
    with pytest.raises(OffsetOutOfRange, match="none"):
        poll_until([none], lambda _: False)


def test_an_offset_that_the_log_does_not_hold_is_reset(small: GroupBroker) -> None:
    member = small.member(topics=["small"])
    read_small(member, 10)
    member.seek(SMALL_0, 99)
    assert read_small(member, 10) == list(range(10))


def test_iterating_over_a_consumer_yields_batches(small: GroupBroker) -> None:
    member = small.member(topics=["small"], auto_commit_s=None)
    for batch in member:
        assert numbers([batch]) == list(range(10))
        member.close()
    with pytest.raises(ValueError, match="closed"):
        member.poll()


@pytest.mark.parametrize(
    "settings",
    [
        {"heartbeat_s": 0.0},
        {"heartbeat_s": 5.0, "session_timeout_s": 4.0},
        {"max_poll_s": 0.0},
        {"assignors": ()},
    ],
)
def test_invalid_group_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"times must be|at least one assignor"):
        GroupSettings(**{"group": "g", **settings})  # type: ignore[arg-type] # a caller may pass anything


@pytest.mark.parametrize(("topics", "pattern"), [(None, None), (["a"], "b"), (None, "(")])
def test_a_subscription_is_to_topics_or_to_a_pattern(
    group_broker: GroupBroker, topics: list[str] | None, pattern: str | None
) -> None:
    with pytest.raises(ValueError, match=r"pattern|regular"):
        GroupConsumer(group_broker.cluster(), "g", topics=topics, pattern=pattern)
