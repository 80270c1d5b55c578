"""What the threads of a run share: a cluster, values that are made once, and turns."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar, cast

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import Generation
from kafka_io.stopping import Stopped, check_stop

MakeT = TypeVar("MakeT", bound=Callable[..., Any])

_POLL_S = 0.2


def _asked(name: str) -> Any:
    """The method of this name, which asks the shared cluster when no other thread does."""

    def ask(self: "SharedCluster", *arguments: Any, **options: Any) -> Any:
        with self._turn():
            return getattr(self._cluster, name)(*arguments, **options)

    return ask


class SharedCluster(Cluster):
    """A cluster for several threads: it asks one question at a time. Its user closes the cluster.

    A thread that was asked to stop asks nothing more; see `stops_with`. What `metadata` returns belongs to one thread.
    """

    cluster_id = _asked("cluster_id")
    topics = _asked("topics")
    topic = _asked("topic")
    described = _asked("described")
    topic_at_leaders = _asked("topic_at_leaders")
    bounds = _asked("bounds")
    bounds_of = _asked("bounds_of")
    times_at = _asked("times_at")
    ends_at = _asked("ends_at")
    open_transactions = _asked("open_transactions")
    retention = _asked("retention")
    cleanup_policies = _asked("cleanup_policies")
    truncations = _asked("truncations")
    last_messages = _asked("last_messages")
    offsets_at = _asked("offsets_at")
    source = _asked("source")
    metadata = _asked("metadata")
    brokers_by_id = _asked("brokers_by_id")
    close = _asked("close")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self.name = cluster.name
        self.zookeeper = cluster.zookeeper
        self.partitions_have_brokers = cluster.partitions_have_brokers

    @property
    def generation(self) -> Generation:
        """See Cluster."""
        with self._turn():
            return self._cluster.generation

    @contextmanager
    def _turn(self) -> Iterator[None]:
        check_stop()
        while not self._lock.acquire(timeout=_POLL_S):
            check_stop()
        try:
            yield
        finally:
            self._lock.release()


def once(make: MakeT) -> MakeT:
    """The same function, called once for each of its arguments: later calls return the value that the first one made.

    `functools.cache` lets two threads make the same value at the same time.
    """
    lock, cached = threading.Lock(), cache(make)

    @wraps(make)
    def value(*arguments: Any) -> Any:
        with lock:
            return cached(*arguments)

    return cast("MakeT", value)


class Turns:
    """Lets `most` threads in at a time, in the order in which they come."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, which lasts as long as the `with` block.

        Raises:
            Stopped: this thread was asked to stop while it waited.
        """
        self._take()
        try:
            yield
        finally:
            self._give()

    def _take(self) -> None:
        admitted = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            self._waiting.append(admitted)
        try:
            while not admitted.wait(_POLL_S):
                check_stop()
        except Stopped:
            with self._lock:
                is_waiting = admitted in self._waiting
                if is_waiting:
                    self._waiting.remove(admitted)
            if not is_waiting:
                self._give()
            raise

    def _give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
