"""A request for a replay is refused if it cannot have a meaning, and otherwise means offsets that brokers hold."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from kafka_io.errors import ConnectFailed, KafkaIOError
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.plan.positions import NamedPosition
from pipelines.rewrites.replay_request import ReplayRequest, ReplayResolver
from resources.errors import ReplayRefused

OLD, NEW = BrokerPartition(0, 0), BrokerPartition(None, 0)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def parsed(since: str, until: str, *partitions: str) -> ReplayRequest:
    return ReplayRequest.parse("clicks", since, until, partitions, now=NOW)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("5", "latest"), "an offset belongs to a single partition"),
        (("earliest", "5"), "an offset belongs to a single partition"),
        (("5", "9"), "an offset belongs to a single partition"),
        (("5", "latest", "0", "1"), "an offset belongs to a single partition"),
        (("latest", "earliest"), "nothing is between latest and earliest"),
        (("latest", "-1h"), "nothing is between"),
        (("earliest", "earliest"), "nothing is between"),
        (("committed", "latest"), "nothing is between"),
        (("5", "5", "0"), "nothing is between"),
        (("6", "5", "0"), "nothing is between"),
        (("-1h", "-1h"), "nothing is between"),
        (("-1h", "-2h"), "nothing is between"),
        (("soon", "latest"), "is not a position in a log"),
    ],
)
def test_a_request_without_a_meaning_is_refused(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parsed(*words)


@pytest.mark.parametrize(
    "words", [("5", "6", "0"), ("-2h", "-1h"), ("earliest", "latest"), ("earliest", "-1h", "0", "1"), ("-1h", "latest")]
)
def test_a_request_may_have_two_edges_of_any_kind(words: tuple[str, ...]) -> None:
    assert parsed(*words).partitions == {BrokerPartition(None, int(number)) for number in words[2:]}


def test_edges_keep_their_kind() -> None:
    request = parsed("7", "latest", "3")
    assert (request.since, request.until, request.on_compacted) == (7, NamedPosition.LATEST, "fail")


def resolver(
    partition: BrokerPartition, bound: Bounds | KafkaIOError, *, cursor: int = 100, messages: tuple[int, int] = (0, 0)
) -> ReplayResolver:
    """For a table with [0, cursor) of one partition. A message of 0.7 lies at the offsets `messages`."""
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    rows = Mock(start_before=lambda _: messages[0], start_after=lambda _: messages[1])
    cluster = Mock(bounds=lambda _, partitions: dict.fromkeys(partitions, bound), truncations=lambda *_: {})
    return ReplayResolver.of(cluster, TableState(topic=topic, covered={partition: (0, cursor)}), (), lambda _: rows)


def between(since: int, until: int) -> ReplayRequest:
    return ReplayRequest(topic="clicks", since=since, until=until)


@pytest.mark.parametrize(
    ("partition", "edges", "ranges"),
    [
        (OLD, (25, 30), [(20, 40)]),
        (OLD, (25, 25), []),  # also inside of a message nothing is requested
        (NEW, (25, 30), [(25, 30)]),
        (NEW, (25, 25), []),
    ],
)
def test_a_range_of_0_7_consists_of_whole_messages(
    partition: BrokerPartition, edges: tuple[int, int], ranges: list[tuple[int, int]]
) -> None:
    resolved = resolver(partition, Bounds(earliest=0, latest=100), messages=(20, 40)).ranges(between(*edges))
    assert resolved == [OffsetRange(partition, *edge) for edge in ranges]


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (Bounds(earliest=10, latest=100), r"no longer hold offsets \[5, 10\): the log begins at 10"),
        (Bounds(earliest=60, latest=100), r"no longer hold offsets \[5, 50\): the log begins at 60"),
        (Bounds(earliest=0, latest=40), r"no longer hold offsets \[40, 50\): the log ends at 40"),
        (Bounds(earliest=0, latest=3), r"no longer hold offsets \[5, 50\): the log ends at 3"),
    ],
)
def test_the_offsets_that_the_brokers_do_not_hold_are_named(bound: Bounds, reason: str) -> None:
    with pytest.raises(ReplayRefused, match=reason):
        resolver(NEW, bound).ranges(between(5, 50))


def test_what_the_brokers_hold_exactly_is_replayed() -> None:
    assert resolver(NEW, Bounds(earliest=5, latest=50)).ranges(between(5, 50)) == [OffsetRange(NEW, 5, 50)]


def test_a_replay_of_a_partition_whose_broker_does_not_answer_fails() -> None:
    with pytest.raises(ConnectFailed):
        resolver(NEW, ConnectFailed("away"))
