"""What the brokers say about many topics at the beginning of a run: a few requests serve all of them.

The brokers are asked before the tables are read, and other runs can commit in between. Then a table ends after what the
brokers said, or belongs to a newer incarnation of its topic. So the answers are only used for a table that agrees with
them, and the load asks again for any other.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from pipelines.load.discovered import TopicAnswers

TOPICS_PER_REQUEST = 1000
_MAX_AGE = timedelta(seconds=30)


class FirstAnswers:
    """The answers for the topics of a run, in the order in which their loads begin. Several threads take them.

    The brokers are asked for up to TOPICS_PER_REQUEST topics at once, and again for the topics that have not begun when
    the answers are older than 30 s.

    Args:
        cluster: the cluster, which several threads may use.
        topics: the topics in order.
        now: the time, in UTC.
    """

    def __init__(self, cluster: Cluster, topics: Sequence[str], now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._waiting = dict.fromkeys(topics)
        self._now = now
        self._lock = threading.Lock()
        self._asked: datetime | None = None
        self._answers: dict[str, TopicAnswers] = {}
        self._requested: set[str] = set()
        self._error: KafkaIOError | None = None

    def of(self, topic: str) -> TopicAnswers | None:
        """The answers about a topic whose load begins; None if the load must ask by itself.

        Raises:
            KafkaIOError: no broker answers; this is the error of each topic of the request.
        """
        with self._lock:
            is_old = self._asked is None or self._now() - self._asked > _MAX_AGE
            if is_old or topic not in self._requested:
                others = (name for name in self._waiting if name != topic)
                self._ask([topic, *islice(others, TOPICS_PER_REQUEST - 1)])
            self._waiting.pop(topic, None)
            self._requested.remove(topic)
            if self._error is not None:
                raise self._error.with_traceback(None)
            return self._answers.pop(topic, None)

    def _ask(self, names: Sequence[str]) -> None:
        asked = self._now()
        self._answers, self._error = {}, None
        try:
            entries = self._cluster.described(names)
            bounds = self._cluster.bounds_of({name: entry.partitions for name, entry in entries.items()})
        except KafkaIOError as error:
            self._error = error
        else:
            self._answers = {
                name: TopicAnswers(asked=asked, topic=entry, bounds=bounds[name]) for name, entry in entries.items()
            }
        self._asked, self._requested = asked, set(names)
