"""Commits of a group's offsets, one after the other on a thread of their own, whether they are waited for or not."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from kafka_io.client.membership import Membership
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Place
from kafka_io.client.modern.offsets import CoordinatorOffsets
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition

Offsets = Mapping[Place, int]
OnCommit = Callable[[Offsets, KafkaIOError | None], None]
"""Told what was committed, or why it was not."""


class Commits(Closing):
    """Commits to the coordinator of `group` that `brokers` lead to; they are used by no other thread."""

    def __init__(self, brokers: Brokers, group: str) -> None:
        self._brokers = brokers
        self._offsets = CoordinatorOffsets(brokers)
        self._group = group
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"penstock-commits-{group}")
        self._pending: deque[tuple[Future[None], Offsets, OnCommit]] = deque()

    def commit(self, offsets: Offsets, member: Membership) -> None:
        """Keep these offsets, behind those that are under way.

        Raises:
            KafkaIOError: see GroupOffsets.
        """
        self._thread.submit(self._commit, offsets, member).result()

    def start(self, offsets: Offsets, member: Membership, on_done: OnCommit) -> None:
        """The same, without waiting for it; `settle` tells."""
        self._pending.append((self._thread.submit(self._commit, offsets, member), offsets, on_done))

    def settle(self) -> None:
        """Tell of the commits that are done."""
        while self._pending and self._pending[0][0].done():
            done, offsets, on_done = self._pending.popleft()
            error = done.exception()
            if error is not None and not isinstance(error, KafkaIOError):
                raise error
            on_done(offsets, error)

    def committed(self, places: Iterable[Place]) -> dict[Place, int]:
        """What is committed of these partitions, of those that have such.

        Raises:
            KafkaIOError: it cannot be told.
        """
        wanted = set(places)
        found = self._thread.submit(self._offsets.fetch, self._group, {topic for topic, _ in wanted}).result()
        return {
            (topic, one.partition): offset
            for topic, offsets in found.items()
            for one, offset in offsets.items()
            if offset is not None and (topic, one.partition) in wanted
        }

    def _commit(self, offsets: Offsets, member: Membership) -> None:
        topics: dict[str, dict[BrokerPartition, int]] = {}
        for (topic, number), offset in offsets.items():
            topics.setdefault(topic, {})[BrokerPartition(None, number)] = offset
        self._offsets.commit(self._group, topics, member=member)

    def close(self) -> None:
        """End, behind the commits that are under way; safe to call again."""
        self._thread.shutdown()
        self._brokers.close()
        self.settle()
