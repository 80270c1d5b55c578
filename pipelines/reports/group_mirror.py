"""Copies the cursors of tables to a consumer group, for tools that watch its lag. No cursor is ever read from it.

The copy follows the commit. If it fails, the load has a warning and is otherwise complete; the next load copies the
cursors again. A load without new offsets copies them too, because brokers forget a group that does not commit.
"""

from collections.abc import Mapping, Sequence

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition

MirroredCursors = Mapping[BrokerPartition, int]

# When a cluster is asked for its first coordinator, it takes a second or two to create the offsets topic.
RETRY_POLICY = RetryPolicy(timeout_s=3.0, backoff=Backoff(attempts=4, first_s=0.5, max_s=2.0))


class GroupMirror:
    """Copies the cursors of the topics of one run to `group`; without a group it copies nothing.

    After a temporary error it does not try again in the same run.
    """

    def __init__(self, cluster: Cluster, group: str | None) -> None:
        self._cluster = cluster
        self._group = group
        self._temporary_error: KafkaIOError | None = None

    def __call__(self, topic: str, cursors: MirroredCursors) -> Sequence[str]:
        """Commit the topic's cursors as the group's offsets; returns one warning if that fails."""
        if not (self._group and cursors):
            return ()
        error = self._temporary_error or self._commit(self._group, topic, cursors)
        return (f"the cursors were not copied to the consumer group {self._group}: {error}",) if error else ()

    def _commit(self, group: str, topic: str, cursors: MirroredCursors) -> KafkaIOError | None:
        from kafka_io.consumer.group_offsets import group_offsets  # noqa: PLC0415 - few clusters have such a group

        try:
            group_offsets(self._cluster, retry_policy=RETRY_POLICY).commit(group, {topic: cursors})
        except KafkaIOError as error:
            self._temporary_error = error if error.retriable else None
            return error
        return None
