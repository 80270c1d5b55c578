"""What a cluster holds beside what its tables hold: bounds, cursors, lag. It reads, and changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka_io.client.cluster import Cluster
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.ledger import Covered
from pipelines.loading.table import LakeTable
from resources.lake import Lake
from resources.settings import TopicRules


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOverview:
    """One partition. `earliest` and `latest` are None while its broker does not answer, `cursor` before a first load.

    `lag` is what a load would fetch, in offsets: from the cursor, or else from the earliest.
    """

    broker: int | None
    partition: int
    earliest: int | None
    latest: int | None
    cursor: int | None
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOverview:
    """One topic of a cluster."""

    cluster: str
    topic: str
    incarnation: str
    table: str
    partitions: tuple[PartitionOverview, ...]

    def as_dict(self) -> dict[str, Any]:
        """As `penstock topics --json` prints it."""
        parts = PartitionOverview.__dataclass_fields__
        return {
            **{name: getattr(self, name) for name in ("cluster", "topic", "incarnation", "table")},
            "partitions": [{name: getattr(one, name) for name in parts} for one in self.partitions],
        }


def overview(cluster: Cluster, lake: Lake, rules: TopicRules) -> Iterator[TopicOverview]:
    """The cluster's topics that `rules` allow, by name.

    Raises:
        RegistryError: the registry gives no answer.
    """
    for found in sorted(cluster.topics().found, key=lambda topic: topic.name):
        if rules.allows(found.name):
            yield _topic(cluster, lake, found)


def _topic(cluster: Cluster, lake: Lake, found: TopicEntry) -> TopicOverview:
    table = LakeTable.of(lake, cluster.name, found.name)
    covered = _covered(table, found)
    bounds = cluster.bounds(found.name, found.partitions)
    known = sorted({*found.partitions, *covered})
    return TopicOverview(
        cluster=cluster.name,
        topic=found.name,
        incarnation=found.incarnation,
        table=table.uri,
        partitions=tuple(_partition(id_, bounds.get(id_), covered) for id_ in known),
    )


def _covered(table: LakeTable, found: TopicEntry) -> Covered:
    """The table's cursors, if it holds this very incarnation of the topic."""
    at = table.existing()
    entry = at.entry if at else None
    return entry.covered if entry and entry.topic.incarnation in {found.incarnation, *found.also} else {}


def _partition(id_: BrokerPartition, held: object, covered: Covered) -> PartitionOverview:
    cursor = covered[id_][1] if id_ in covered else None
    if not isinstance(held, Bounds):
        earliest = latest = lag = None
    else:
        earliest, latest = held.earliest, held.latest
        lag = latest - (earliest if cursor is None else cursor)
    return PartitionOverview(
        broker=id_.broker, partition=id_.partition, earliest=earliest, latest=latest, cursor=cursor, lag=lag
    )
