"""A member that runs this library, with the interface that members of other clients have."""

from contextlib import ExitStack

from kafka_io.cluster.opening import open_cluster
from kafka_io.consumer.group.assignors import ASSIGNORS
from kafka_io.consumer.group.consumer import GroupConsumer
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.model import TopicPartition

_POLL_S = 0.1


class OurMember:
    """See others.Client."""

    def __init__(self, address: str, group: str, topic: str, assignor: str) -> None:
        settings = GroupSettings(group=group, heartbeat_s=0.2, assignors=(ASSIGNORS[assignor],))
        with ExitStack() as opened:
            cluster = opened.enter_context(open_cluster("main", bootstrap=address))
            self._consumer = opened.enter_context(GroupConsumer(cluster, settings, topics=[topic]))
            self._opened = opened.pop_all()

    def read(self) -> list[bytes]:
        """See others.Client."""
        return [value for batch in self._consumer.poll(_POLL_S) for value in batch.records.column("value").to_pylist()]

    def assignment(self) -> frozenset[TopicPartition]:
        """See others.Client."""
        return self._consumer.assignment

    def close(self) -> None:
        """See others.Client."""
        self._opened.close()
