"""What the threads of a run share: a cluster, values that are made once, and turns."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import Generation
from kafka_io.stopping import Stopped, check_stop

P = ParamSpec("P")
T = TypeVar("T")

_POLL_S = 0.2


def _asked(question: Callable[Concatenate[Cluster, P], T]) -> Callable[Concatenate["SharedCluster", P], T]:
    """The same question to the shared cluster, asked when no other thread asks one."""
    name = question.__name__  # the cluster is of a subclass, which answers in its own way

    def ask(self: "SharedCluster", /, *arguments: P.args, **options: P.kwargs) -> T:
        with self._turn():
            answer: T = getattr(self._cluster, name)(*arguments, **options)
            return answer

    return ask


class SharedCluster(Cluster):
    """A cluster for several threads: it asks one question at a time. Its user closes the cluster.

    A thread that was asked to stop asks nothing more; see `stops_with`. What `metadata` returns belongs to one thread.
    """

    cluster_id = _asked(Cluster.cluster_id)
    topics = _asked(Cluster.topics)
    topic = _asked(Cluster.topic)
    described = _asked(Cluster.described)
    topic_at_leaders = _asked(Cluster.topic_at_leaders)
    bounds = _asked(Cluster.bounds)
    bounds_of = _asked(Cluster.bounds_of)
    times_at = _asked(Cluster.times_at)
    ends_at = _asked(Cluster.ends_at)
    open_transactions = _asked(Cluster.open_transactions)
    retention = _asked(Cluster.retention)
    cleanup_policies = _asked(Cluster.cleanup_policies)
    truncations = _asked(Cluster.truncations)
    last_messages = _asked(Cluster.last_messages)
    offsets_at = _asked(Cluster.offsets_at)
    source = _asked(Cluster.source)
    metadata = _asked(Cluster.metadata)
    brokers_by_id = _asked(Cluster.brokers_by_id)
    close = _asked(Cluster.close)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self.name = cluster.name
        self.zookeeper = cluster.zookeeper
        self.partitions_have_brokers = cluster.partitions_have_brokers

    @property
    def generation(self) -> Generation:
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


def once(make: Callable[P, T]) -> Callable[P, T]:
    """The same function, called once for each of its arguments: later calls return the value that the first one made.

    `functools.cache` lets two threads make the same value at the same time.
    """
    lock, made = threading.Lock(), dict[object, T]()

    @wraps(make)
    def value(*arguments: P.args, **options: P.kwargs) -> T:
        with lock:
            if arguments not in made:
                made[arguments] = make(*arguments, **options)
            return made[arguments]

    return value


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
