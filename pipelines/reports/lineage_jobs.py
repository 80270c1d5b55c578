"""Reports jobs other than loads as OpenLineage events: replay, redecode, state tables and increments.

A job is reported around its code, which knows nothing of it. A report never fails a job: what could not be delivered is
a warning.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from kafka_io.errors import LocatedError, Where
from pipelines.ledger.failure import SliceFailure
from pipelines.reports.lineage import Event, LineageSender, new_job, topic_dataset, version_and_columns
from pipelines.reports.lineage_events import DatasetName, JobEnd, JobKind, JobOutput
from resources.settings.settings import Settings
from resources.stores.lake import Lake

Warn = Callable[[str], None]


class JobReport:
    """Collects what a job did, for the event at its end.

    Args:
        lake_options: the options of the lake's store, for reading the columns of a table.
        warn: is called with each warning.
    """

    def __init__(self, lake: Lake, warn: Warn) -> None:
        self.end = JobEnd()
        self._lake = lake
        self._warn = warn

    def read(self, version: int) -> None:
        """The job read this version of its source."""
        self.end = replace(self.end, source_version=version)

    def wrote(self, name: Callable[[], DatasetName]) -> None:
        """The job wrote into a dataset that is no table of a lake; `name` gives its name."""
        try:
            self.end = replace(self.end, outputs=[JobOutput(name=name())])
        except LocatedError as error:
            self._warn(f"the lineage of this run lacks its output: {error.reason}")

    def wrote_table(
        self, uri: str, *, rows: int | None = None, version: int | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        """The job wrote rows into a table, whose newest version counts unless another one is given.

        With `options` of a store, it is a Delta table outside of the lake.
        """
        lake = self._lake if options is None else Lake.of_table(uri, options)
        number, columns = version_and_columns(lake, uri, self._warn, version)
        output = JobOutput(name=DatasetName.of_table(uri), version=number, columns=columns, rows=rows)
        self.end = replace(self.end, outputs=[output])

    def failed(self, failure: SliceFailure | None) -> None:
        """The job failed, if there is a failure."""
        if failure is not None:
            self.end = replace(self.end, error=str(failure), trace=failure.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLineage:
    """Reports the jobs of one run for a cluster.

    Args:
        settings: the settings, with the places to send to and the lake.
        cluster: the name of the cluster.
        run_id: the id of the run.
        warn: is called with each warning.
        sender: sends the events; None if the settings name no place.
    """

    settings: Settings
    cluster: str
    run_id: str
    warn: Warn
    sender: LineageSender | None

    @classmethod
    def of(cls, settings: Settings, cluster: str, *, run_id: str, warn: Warn) -> Self:
        """Reports jobs as the settings say."""
        sender = LineageSender(settings.lineage) if settings.lineage.is_used else None
        return cls(settings=settings, cluster=cluster, run_id=run_id, warn=warn, sender=sender)

    def topic(self, table: str) -> DatasetName:
        """The name of the topic of a table as a dataset."""
        return topic_dataset(self.settings, self.cluster, table)

    @contextmanager
    def job(self, kind: JobKind, topic: str, source: DatasetName, consumer: str = "") -> Iterator[JobReport | None]:
        """Send the event that a job begins, and at the end of the block what became of it.

        The block gets the report to fill, or None if nobody wants it. An error that leaves the block is in the event.
        """
        if self.sender is None:
            yield None
            return
        job = new_job(self.settings, kind, self.cluster, topic, source=source, run_id=self.run_id, consumer=consumer)
        report = JobReport(Lake.of(self.settings), self.warn)
        self._send(self.sender, job.started(datetime.now(UTC)))
        try:
            yield report
        except Exception as error:
            report.failed(SliceFailure.of(error, Where(cluster=self.cluster, topic=topic)))
            self._send(self.sender, job.ended(report.end, datetime.now(UTC)))
            raise
        self._send(self.sender, job.ended(report.end, datetime.now(UTC)))

    def _send(self, sender: LineageSender, event: Event) -> None:
        for warning in sender.send(event):
            self.warn(warning)
