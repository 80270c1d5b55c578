"""Evidence that a topic without a table was loaded before, into another lake or under another name of the cluster.

A lake on a disk that is not mounted looks like a new one, and so does a cluster that was renamed in the settings. A
load would then begin every topic again (fault N17).
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition
from pipelines.formats.tables import lake_table
from pipelines.ledger.ledger import TableState
from pipelines.reports.group_mirror import RETRY_POLICY
from resources.errors import LoadError
from resources.stores.lake import Lake

Evidence = Callable[[TableState], str | None]
"""Returns a sentence that says why the topic was loaded before, and how to continue; None without a reason."""


@dataclass(frozen=True)
class FormerName:
    """Looks for the topic's table under names of clusters that are in the lake, but not in the settings.

    Args:
        lake: the lake.
        clusters: the names of the clusters in the settings.
    """

    lake: Lake
    clusters: Collection[str]

    def __call__(self, state: TableState) -> str | None:
        """Say under which name of the cluster the lake has a table of this topic."""
        for name in self._former_names:
            if self._has_table(name, state):
                return (
                    f"the lake has a table of this topic under the cluster name {name!r}, which the settings do not "
                    f"have: call the cluster {name} in the settings again"
                )
        return None

    # A run asks for each topic without a table, and a listing of the lake costs requests to its store.
    @cached_property
    def _former_names(self) -> Collection[str]:
        return sorted(set(self.lake.clusters()) - set(self.clusters))

    def _has_table(self, cluster: str, state: TableState) -> bool:
        with suppress(LoadError):  # a table that cannot be read shows nothing
            snapshot = lake_table(self.lake, cluster, state.topic.name).existing()
            if snapshot is not None and snapshot.entry is not None:
                # The name alone proves nothing: two clusters can have a topic of the same name. So an id must be the
                # same (fault N17).
                return snapshot.entry.state.ids.shares_one(state.ids)
        return False


@dataclass(frozen=True)
class MirroredOffsets:
    """Looks for offsets of the topic in the group to which loads copy their cursors; see GroupMirror."""

    cluster: Cluster
    group: str | None

    def __call__(self, state: TableState) -> str | None:
        """Say which group has offsets of this topic."""
        if state.topic.name not in self._offsets:
            return None
        return (
            f"the consumer group {self.group} (mirror_group) has offsets of this topic, but the lake has no rows of "
            f"it: check `lake` in the settings; `penstock offsets import {state.topic.name} --from group:{self.group}` "
            "begins the table at these offsets"
        )

    @cached_property
    def _offsets(self) -> Mapping[str, Mapping[BrokerPartition, int | None]]:
        """The group's offsets; none if they cannot be read, which the copy after the load then reports."""
        if self.group is not None:
            from kafka_io.consumer.group_offsets import group_offsets  # noqa: PLC0415 - few clusters have such a group

            with suppress(KafkaIOError):
                return group_offsets(self.cluster, retry_policy=RETRY_POLICY).fetch(self.group)
        return {}
