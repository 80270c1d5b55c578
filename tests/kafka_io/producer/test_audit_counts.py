"""The published totals are the confirmed messages of each window, however often publishing fails or is repeated."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from kafka_io.errors import ConnectionLost, Unsupported
from kafka_io.model import BrokerPartition
from kafka_io.producer import audit_counts
from kafka_io.producer.audit_counts import HOUR_MS, AuditCounts
from kafka_io.producer.callbacks import Dispatch, Outcome
from kafka_io.producer.message import Delivered, Message, Undelivered
from kafka_io.producer.opening import open_producer
from kafka_io.producer.settings import ProducerSettings, Queueing
from tests.kafka_io.producer.conftest import World

WAIT_S = 60.0
LOST = ConnectionLost("the answer was lost")


def counted(values: Sequence[bytes]) -> list[dict[str, Any]]:
    return [json.loads(value) for value in values]


def totals(values: Sequence[bytes]) -> Mapping[tuple[str, int], int]:
    """The sums that a reader computes: for each topic and window, of the largest total of each producer and session."""
    largest: dict[tuple[Any, ...], int] = {}
    for count in counted(values):
        key = tuple(count[name] for name in ("topic", "window_start_ms", "producer", "session"))
        largest[key] = max(largest.get(key, 0), count["count"])
    sums: dict[tuple[str, int], int] = {}
    for (topic, start_ms, _, _), total in largest.items():
        sums[topic, start_ms] = sums.get((topic, start_ms), 0) + total
    return sums


@dataclass
class Broker:
    """Confirms the messages that it gets, except those of topics that are down."""

    sent: list[Message] = field(default_factory=list)
    counts: list[Message] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    published: Event = field(default_factory=Event)

    def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """One outcome for each message."""
        self.sent += messages
        self.counts += [message for message in messages if message.topic == "counts" and "counts" not in self.down]
        if self.counts:
            self.published.set()
        confirmed = Delivered(topic="any", partition=BrokerPartition(None, 0))
        return [LOST if message.topic in self.down else confirmed for message in messages]

    @property
    def values(self) -> list[bytes]:
        """The values of the confirmed count messages."""
        return [message.value for message in self.counts]


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def counts() -> AuditCounts:
    return AuditCounts("counts", producer="web-1", interval_s=3600)


@pytest.fixture
def send(broker: Broker, counts: AuditCounts) -> Iterator[Dispatch]:
    yield counts.counting(broker.send)
    counts.close()


def message(time_ms: int | None, topic: str = "clicks") -> Message:
    return Message(topic=topic, value=b"x", timestamp_ms=time_ms)


def test_each_window_has_a_running_total(broker: Broker, counts: AuditCounts, send: Dispatch) -> None:
    send([message(HOUR_MS), message(2 * HOUR_MS - 1), message(2 * HOUR_MS), message(-1), message(0, "views")])
    counts.publish()
    send([message(HOUR_MS)])
    counts.publish()
    counts.publish()
    keys = ("topic", "window_start_ms", "window_ms", "producer", "count")
    assert [tuple(count[key] for key in keys) for count in counted(broker.values)] == [
        ("clicks", HOUR_MS, HOUR_MS, "web-1", 2),
        ("clicks", 2 * HOUR_MS, HOUR_MS, "web-1", 1),
        ("clicks", -HOUR_MS, HOUR_MS, "web-1", 1),
        ("views", 0, HOUR_MS, "web-1", 1),
        ("clicks", HOUR_MS, HOUR_MS, "web-1", 3),
    ]
    assert len({count["session"] for count in counted(broker.values)}) == 1
    assert broker.counts[0].key == broker.counts[-1].key


def test_a_message_without_a_time_is_sent_with_the_time_that_counts(
    broker: Broker, counts: AuditCounts, send: Dispatch
) -> None:
    send([message(None)])
    counts.publish()
    time_ms = broker.sent[0].timestamp_ms
    assert time_ms is not None
    assert totals(broker.values) == {("clicks", time_ms // HOUR_MS * HOUR_MS): 1}


def test_only_confirmed_messages_count(broker: Broker, counts: AuditCounts, send: Dispatch) -> None:
    broker.down.add("views")
    outcomes = send([message(0), message(0, "views")])
    assert outcomes[1] is LOST
    counts.publish()
    assert totals(broker.values) == {("clicks", 0): 1}


def test_totals_that_were_not_published_are_published_later(
    broker: Broker, counts: AuditCounts, send: Dispatch
) -> None:
    send([message(0)])
    broker.down.add("counts")
    counts.publish()
    with pytest.raises(Undelivered) as failed:
        counts.check()
    assert [failure.message.topic for failure in failed.value.failures] == ["counts"]
    counts.check()
    broker.down.clear()
    counts.publish()
    counts.check()
    assert totals(broker.values) == {("clicks", 0): 1}


def test_a_thread_publishes_at_intervals(broker: Broker) -> None:
    counts = AuditCounts("counts", producer="web-1", interval_s=0.01)
    counts.counting(broker.send)([message(0)])
    assert broker.published.wait(WAIT_S)
    counts.close()
    assert totals(broker.values) == {("clicks", 0): 1}


def test_clocks_that_name_many_windows_begin_new_sessions_and_no_record_is_counted_less(
    broker: Broker, counts: AuditCounts, send: Dispatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_counts, "_MAX_WINDOWS", 2)
    for _ in range(3):
        for hour in range(4):
            send([message(hour * HOUR_MS)])
            counts.publish()
    assert totals(broker.values) == {("clicks", hour * HOUR_MS): 3 for hour in range(4)}
    assert len({count["session"] for count in counted(broker.values)}) > 1
    assert len(counts._totals) <= 2


@pytest.mark.parametrize("queue", [None, Queueing(queue_time_ms=1)])
def test_the_stored_records_are_those_that_are_counted(modern: World, queue: Queueing | None) -> None:
    counts = AuditCounts("counts", producer="web-1", window_ms=1000)
    options: dict[str, Any] = {} if queue is None else {"queue": queue}
    with open_producer(audit=counts, **modern.address, **options) as producer:
        producer.send_many([Message(topic="clicks", value=b"x") for _ in range(5)])
        producer.flush()
        assert sum(totals(modern.values("counts")).values()) == 5
        producer.send("clicks", b"late", timestamp_ms=7)
    stored: dict[tuple[str, int], int] = {}
    for row in modern.rows("clicks"):
        start_ms = int(row["timestamp"].timestamp() * 1000) // 1000 * 1000
        stored["clicks", start_ms] = stored.get(("clicks", start_ms), 0) + 1
    assert totals(modern.values("counts")) == stored
    assert stored["clicks", 0] == 1


def test_a_producer_reports_counts_that_it_could_not_publish(modern: World) -> None:
    counts = AuditCounts("no such topic!", producer="web-1")
    producer = open_producer(audit=counts, **modern.address)
    producer.send("clicks", b"x")
    with pytest.raises(Undelivered):
        producer.flush()
    with pytest.raises(Undelivered):
        producer.close()


def test_what_cannot_be_counted_is_refused(broker: Broker, counts: AuditCounts, send: Dispatch) -> None:
    with pytest.raises(ValueError, match="of its own"):
        counts.counting(broker.send)
    with pytest.raises(Unsupported, match="transactions"):
        open_producer(bootstrap="127.0.0.1:1", settings=ProducerSettings(transactional_id="a"), audit=counts)
    for wrong in ({"window_ms": 7_000_000}, {"window_ms": 999}, {"window_ms": 7001}, {"interval_s": 0}):
        with pytest.raises(ValueError, match="window_ms must divide"):
            AuditCounts("counts", **{"producer": "web-1", **wrong})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name"):
        AuditCounts("counts", producer="")
