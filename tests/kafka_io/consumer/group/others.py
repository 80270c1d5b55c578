"""Members of other clients, each polled by a thread of its own until it is closed."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from kafka_io.model import TopicPartition

_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_POLL_S = 0.1
_SESSION_MS = 30_000  # the most that 0.9 takes
NOTHING_MORE: Mapping[str, str] = {}


class Client(Protocol):
    """What a member of another client does."""

    def read(self) -> list[bytes]:
        """Poll, and the values that came."""
        ...

    def places(self) -> frozenset[TopicPartition]:
        """What it has."""
        ...

    def close(self) -> None:
        """Commit and leave."""
        ...


class ConfluentMember:
    """librdkafka's."""

    def __init__(
        self, address: str, group: str, topic: str, assignor: str, more: Mapping[str, str] = NOTHING_MORE
    ) -> None:
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": assignor,
                "heartbeat.interval.ms": 200,
                "session.timeout.ms": _SESSION_MS,
                "log_level": 0,
                **more,
            }
        )
        self._consumer.subscribe([topic])

    def read(self) -> list[bytes]:
        """See Client."""
        return [one.value() for one in self._consumer.consume(100, timeout=_POLL_S) if one.error() is None]

    def places(self) -> frozenset[TopicPartition]:
        """See Client."""
        return frozenset(TopicPartition(one.topic, one.partition) for one in self._consumer.assignment())

    def close(self) -> None:
        """See Client."""
        self._consumer.close()


class PythonMember:
    """kafka-python's."""

    def __init__(
        self, address: str, group: str, topic: str, assignor: str, more: Mapping[str, Any] = NOTHING_MORE
    ) -> None:
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[_PYTHON[assignor]],
            heartbeat_interval_ms=200,
            session_timeout_ms=_SESSION_MS,
            **more,
        )
        # As leader 3.0.12 may share out before it knows the partitions, and then at times never takes what it gets.
        self._consumer.partitions_for_topic(topic)
        self._consumer.subscribe([topic])

    def read(self) -> list[bytes]:
        """See Client."""
        found = self._consumer.poll(timeout_ms=round(1000 * _POLL_S))
        return [record.value for records in found.values() for record in records]

    def places(self) -> frozenset[TopicPartition]:
        """See Client."""
        return frozenset(TopicPartition(one.topic, one.partition) for one in self._consumer.assignment())

    def close(self) -> None:
        """See Client."""
        self._consumer.close()


class Polled:
    """A member on its own thread; what it has and has read may be looked at from another."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self.values: list[bytes] = []
        self.assignment: frozenset[TopicPartition] = frozenset()
        self._make = make
        self._ending = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def _run(self) -> None:
        client = self._make()
        try:
            while not self._ending.is_set():
                self.values += client.read()
                self.assignment = client.places()
        except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
            self._error = error
        finally:
            client.close()
            self.assignment = frozenset()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        if self._error is not None:
            raise self._error


def until(holds: Callable[[], bool], members: list[Polled], *, within_s: float) -> None:
    """Wait for what the members are to come to."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, [sorted(one.assignment) for one in members]
        time.sleep(0.05)


def shared_out(members: list[Polled], partitions: int) -> bool:
    """Whether each of so many partitions is one member's, and each member has some."""
    places = [place for one in members for place in one.assignment]
    return len(places) == len(set(places)) == partitions and all(one.assignment for one in members)
