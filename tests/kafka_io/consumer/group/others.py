"""Members of other clients, each polled by a thread of its own until it is closed."""

import gc
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import MemberState

from kafka_io.model import TopicPartition

_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_POLL_S = 0.1
_JOIN_S = 2.0
_SESSION_MS = 30_000  # the maximum of 0.9
NO_SETTINGS: Mapping[str, str] = {}


class Client(Protocol):
    """What a test needs of a member, whatever its client."""

    def read(self) -> list[bytes]:
        """Poll once; returns the values of the records."""
        ...

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that it reads."""
        ...

    def close(self) -> None:
        """Commit, and leave the group."""
        ...


class ConfluentMember:
    """A member that runs librdkafka."""

    def __init__(
        self, address: str, group: str, topic: str, assignor: str, settings: Mapping[str, str] = NO_SETTINGS
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
                **settings,
            }
        )
        self._consumer.subscribe([topic])

    def read(self) -> list[bytes]:
        """See Client."""
        return [record.value() for record in self._consumer.consume(100, timeout=_POLL_S) if record.error() is None]

    def assignment(self) -> frozenset[TopicPartition]:
        """See Client."""
        return frozenset(TopicPartition(assigned.topic, assigned.partition) for assigned in self._consumer.assignment())

    def close(self) -> None:
        """See Client."""
        self._consumer.close()


class PythonMember:
    """A member that runs kafka-python."""

    def __init__(
        self, address: str, group: str, topic: str, assignor: str, settings: Mapping[str, Any] = NO_SETTINGS
    ) -> None:
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[_PYTHON[assignor]],
            heartbeat_interval_ms=200,
            session_timeout_ms=_SESSION_MS,
            **settings,
        )
        # A leader of version 3.0.12 may assign before it knows the partitions, and then sometimes ignores its share.
        self._consumer.partitions_for_topic(topic)
        self._consumer.subscribe([topic])

    def read(self) -> list[bytes]:
        """See Client."""
        # Version 3.0.12 drops the result of a join that ends at the same moment as a poll, and joins again. On a busy
        # machine each step of its loop takes longer than a short poll, so it would never take an assignment.
        timeout_s = _POLL_S if self._consumer.group_metadata().state is MemberState.STABLE else _JOIN_S
        polled = self._consumer.poll(timeout_ms=round(1000 * timeout_s))
        return [record.value for records in polled.values() for record in records]

    def assignment(self) -> frozenset[TopicPartition]:
        """See Client."""
        return frozenset(TopicPartition(assigned.topic, assigned.partition) for assigned in self._consumer.assignment())

    def close(self) -> None:
        """See Client."""
        self._consumer.close()
        # Version 3.0.12 forgets a connection that it is just opening, and does not close its socket. The collector must
        # find it here: otherwise the warning of an unclosed socket fails the test that runs when it is found.
        del self._consumer
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


class Polled:
    """Polls a member on a thread of its own; other threads may read its values and its assignment."""

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
                self.assignment = client.assignment()
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
    """Wait until `holds` returns True."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, [sorted(member.assignment) for member in members]
        time.sleep(0.05)


def is_shared(members: list[Polled], partitions: int) -> bool:
    """Whether each partition has one owner, and each member owns at least one."""
    assigned = [partition for member in members for partition in member.assignment]
    return len(assigned) == len(set(assigned)) == partitions and all(member.assignment for member in members)
