"""What each load tells other programs, if the settings ask for it: metrics for Prometheus, events for OpenLineage.

A report never fails a load: what could not be delivered is a warning.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from pipelines.reports.outcome import TopicLoad
from resources.settings.settings import Settings

OnStart = Callable[[str, str], Sequence[str]]
"""Is called with the topic and the id of the run when a load begins; returns warnings."""
OnEnd = Callable[[TopicLoad], Sequence[str]]
"""Is called with the result of a load; returns warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReports:
    """The reports of the loads of one run.

    Args:
        on_start: called in this order when the load of a topic begins.
        on_end: called in this order when it has ended, also if it failed.
    """

    on_start: tuple[OnStart, ...] = field(default=())
    on_end: tuple[OnEnd, ...] = field(default=())

    @classmethod
    def of(cls, settings: Settings, cluster: str) -> Self:
        """The reports that the settings ask for."""
        starts: list[OnStart] = []
        ends: list[OnEnd] = []
        if settings.metrics.is_used:
            from pipelines.reports.load_metrics import LoadMetrics  # noqa: PLC0415 - most loads do not need its library

            ends.append(LoadMetrics(settings.metrics, cluster))
        if settings.lineage.is_used:
            from pipelines.reports.lineage import Lineage  # noqa: PLC0415 - most loads do not need it

            lineage = Lineage(settings, cluster)
            starts.append(lineage.started)
            ends.append(lineage.ended)
        return cls(on_start=tuple(starts), on_end=tuple(ends))

    def started(self, topic: str, run_id: str) -> Sequence[str]:
        """The load of a topic begins; returns warnings."""
        return [warning for report in self.on_start for warning in report(topic, run_id)]

    def ended(self, load: TopicLoad) -> Sequence[str]:
        """The load of a topic has ended; returns warnings."""
        return [warning for report in self.on_end for warning in report(load)]
