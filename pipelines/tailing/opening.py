"""A tail of one of the settings' clusters."""

from collections.abc import Callable, Mapping

from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.tailing.follow import Tail
from pipelines.tailing.query import Query
from resources.kafka import open_cluster
from resources.settings import Settings

_FEW_ATTEMPTS = 2  # the first may meet a connection that its broker closed as idle


def open_tail(settings: Settings, cluster: str, query: Query, *, on_trouble: Callable[[str], None]) -> Tail:
    """What `query` asks for of a cluster of the settings; nothing is connected yet."""

    def cursors(topic: TopicEntry) -> Mapping[BrokerPartition, int]:
        from pipelines.tailing import committed  # noqa: PLC0415 - Delta is for those who ask for its cursor
        from resources.lake import Lake  # noqa: PLC0415 - same

        return committed.cursors(Lake.of(settings), cluster, topic)

    # A tail without end tries again by itself, and goes on with other partitions meanwhile.
    chosen = settings if query.until is not None else settings.hasty(attempts=_FEW_ATTEMPTS)
    return Tail(lambda: open_cluster(chosen, cluster), query, cursors=cursors, on_trouble=on_trouble)
