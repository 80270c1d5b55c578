"""The cursors of tables told to a consumer group, for tools that watch lag. Nothing reads it back.

It comes after the commit. Where it fails the load tells so, and is no worse for it: the next one tells the cursors
again, as every load does, also without news, so that brokers do not let go of a group that says nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_io.client.cluster import Cluster
from kafka_io.client.link import Patience
from kafka_io.client.offsets import group_offsets
from kafka_io.client.retry import Backoff
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Covered
from pipelines.loading.work import Facts

Cursors = Mapping[BrokerPartition, int]
Mirror = Callable[[str, Cursors], Sequence[str]]
"""Given a topic and its cursors; what a person should know of it."""

# A coordinator that was never asked before takes a second or two to be made.
_PATIENCE = Patience(timeout_s=3.0, backoff=Backoff(attempts=4, first_s=0.5, most_s=2.0))


def cursors_after(covered: Covered, committed: Iterable[Facts]) -> Cursors:
    """The cursors of a table that covered so much, once more is committed: a backfill moves none."""
    cursors = {id_: cursor for id_, (_, cursor) in covered.items()}
    for one in committed:
        cursors[one.id] = max(cursors.get(one.id, one.stop), one.stop)
    return cursors


def no_mirror(_topic: str, _cursors: Cursors) -> Sequence[str]:
    """Tell nobody."""
    return ()


def mirror_of(cluster: Cluster, group: str | None) -> Mirror:
    """What tells the cursors of the cluster's topics to `group`, if there is to be one."""
    return GroupMirror(cluster, group) if group else no_mirror


class GroupMirror:
    """Tells the cursors of the topics of one run. After no answer it leaves the rest of the run in peace."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._silent: KafkaIOError | None = None

    def __call__(self, topic: str, cursors: Cursors) -> Sequence[str]:
        """Commit the topic's cursors as the group's; one warning if they could not be."""
        if not cursors:
            return ()
        error = self._silent or self._failure(topic, cursors)
        return (f"group {self._group} was not told of the cursors: {error}",) if error else ()

    def _failure(self, topic: str, cursors: Cursors) -> KafkaIOError | None:
        try:
            group_offsets(self._cluster, patience=_PATIENCE).commit(self._group, {topic: cursors})
        except KafkaIOError as error:
            self._silent = error if error.retriable else None
            return error
        return None
