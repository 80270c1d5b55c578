"""What a run tells others about the topics that it loads: progress, cursors, last errors, metrics and lineage.

No report fails a load: what could not be delivered is a warning of the load.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import Bounds, BrokerPartition
from pipelines.reports.group_mirror import GroupMirror, MirroredCursors
from pipelines.reports.held_back import held_back_warnings
from pipelines.reports.last_error import LastError, LastErrors
from pipelines.reports.outcome import TopicLoad
from resources.progress import Progress, no_progress
from resources.settings.settings import Settings
from resources.stores.lake import Lake

if TYPE_CHECKING:  # most loads report neither metrics nor lineage
    from pipelines.reports.lineage import Lineage
    from pipelines.reports.load_metrics import LoadMetrics

OnProgress = Callable[[str], Progress]
"""Gives, for a topic, the function that is called with how many of how many offsets are fetched."""


class Reports:
    """The reports of a run. This class reports nothing; each method returns warnings, but for `progress`."""

    def started(self, topic: str, run_id: str) -> Sequence[str]:  # noqa: ARG002
        """The load of a topic begins."""
        return ()

    def progress(self, topic: str) -> Progress:  # noqa: ARG002
        """The function that is called with how many of how many offsets of the topic are fetched."""
        return no_progress

    def committed(self, topic: str, cursors: MirroredCursors) -> Sequence[str]:  # noqa: ARG002
        """A step of the load was committed, or had nothing to commit; the table of the topic has these cursors."""
        return ()

    def held_back(self, topic: str, bounds: Mapping[BrokerPartition, Bounds], now_ms: int) -> Sequence[str]:  # noqa: ARG002
        """The steps of the load of a topic have ended; these are the bounds that brokers gave."""
        return ()

    def failed(self, topic: str, error: LastError | None) -> Sequence[str]:  # noqa: ARG002
        """The load of a topic has failed with this error, or with none."""
        return ()

    def ended(self, load: TopicLoad) -> Sequence[str]:  # noqa: ARG002
        """The load of a topic has ended with this result."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReports(Reports):
    """The reports that the settings ask for.

    Args:
        cluster: is asked about transactions that hold records back.
        mirror: copies the cursors to a consumer group.
        last_errors: keeps why the load of a topic failed, until one succeeds.
        metrics: writes metrics for Prometheus; None if the settings name no place for them.
        lineage: sends events for OpenLineage; None if the settings name no place for them.
        on_progress: shows the progress to the user; None if nobody looks.
    """

    cluster: Cluster
    mirror: GroupMirror
    last_errors: LastErrors
    metrics: "LoadMetrics | None" = None
    lineage: "Lineage | None" = None
    on_progress: OnProgress | None = None

    @classmethod
    def of(cls, settings: Settings, cluster: Cluster, lake: Lake, on_progress: OnProgress | None) -> Self:
        """The reports of a run over topics of this cluster."""
        name, metrics, lineage = cluster.name, None, None
        if settings.metrics.is_used:
            from pipelines.reports.load_metrics import LoadMetrics  # noqa: PLC0415 - most loads do not need its library

            metrics = LoadMetrics(settings.metrics, name)
        if settings.lineage.is_used:
            from pipelines.reports.lineage import Lineage  # noqa: PLC0415 - most loads do not need it

            lineage = Lineage(settings, name)
        return cls(
            cluster=cluster,
            mirror=GroupMirror(cluster, settings.clusters[name].mirror_group),
            last_errors=LastErrors(lake, name),
            metrics=metrics,
            lineage=lineage,
            on_progress=on_progress,
        )

    def started(self, topic: str, run_id: str) -> Sequence[str]:
        return self.lineage.started(topic, run_id) if self.lineage else ()

    def progress(self, topic: str) -> Progress:
        return self.on_progress(topic) if self.on_progress else no_progress

    def committed(self, topic: str, cursors: MirroredCursors) -> Sequence[str]:
        return self.mirror(topic, cursors)

    def held_back(self, topic: str, bounds: Mapping[BrokerPartition, Bounds], now_ms: int) -> Sequence[str]:
        return list(held_back_warnings(self.cluster, topic, bounds, now_ms=now_ms))

    def failed(self, topic: str, error: LastError | None) -> Sequence[str]:
        return self.last_errors(topic, error)

    def ended(self, load: TopicLoad) -> Sequence[str]:
        warnings = self.metrics(load) if self.metrics else ()
        return [*warnings, *(self.lineage.ended(load) if self.lineage else ())]
