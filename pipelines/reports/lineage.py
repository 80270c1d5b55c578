"""Sends the OpenLineage events of the jobs of one run to a file or a server. A failure is a warning of the job."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from kafka_io.errors import KafkaIOError, LocatedError, system_reason
from kafka_io.net.http_address import HttpAddress
from kafka_io.net.http_exchange import HttpContent, HttpServer, http_exchange
from kafka_io.net.http_login import HttpLogin
from pipelines.formats.tables import open_version
from pipelines.reports.lineage_events import Columns, DatasetName, JobEnd, JobKind, LineageJob, run_uuid, schema_fields
from pipelines.reports.outcome import TopicLoad
from pipelines.reports.report_places import ReportPlaces
from resources.settings.lineage import LineageSettings
from resources.settings.settings import Settings
from resources.stores.lake import Lake, lake_errors
from resources.table_names import topic_of

_MAX_ANSWER_BYTES = 64 * 1024
_ACCEPTED = range(200, 300)
Event = Mapping[str, Any]


class LineageFailed(LocatedError):
    """An event could not be sent."""


class LineageSender:
    """Sends the events of one run to the places that the settings name. A failure is a warning."""

    def __init__(self, settings: LineageSettings) -> None:
        self._settings = settings
        self._places = ReportPlaces("the lineage of this run is lost", LineageFailed)

    def send(self, event: Event) -> Sequence[str]:
        """Send an event to each place; returns warnings."""
        return self._places.write(event, (self._settings.file, self._append), (self._settings.url, self._post))

    @staticmethod
    def _append(file: str, event: Event) -> None:
        """Add a line to the file. It is a single write at its end, so lines of several runs do not mix."""
        try:
            with Path(file).open("ab", buffering=0) as lines:
                lines.write(json.dumps(event).encode() + b"\n")
        except OSError as error:
            raise LineageFailed(f"the file {file} cannot be written: {system_reason(error)}") from error

    def _post(self, url: str, event: Event) -> None:
        address, settings = HttpAddress.parse(url), self._settings
        try:
            login = HttpLogin.bearer(settings.token.read()) if settings.token else None
            server = HttpServer.at(address, settings.tls, login)
            content = HttpContent(media_type="application/json", data=json.dumps(event).encode())
            answer = http_exchange(
                server, address.path or "/", content, timeout_s=settings.timeout_s, max_bytes=_MAX_ANSWER_BYTES
            )
        except KafkaIOError as error:
            raise LineageFailed(f"{url} cannot take it: {error.reason}") from error
        if answer.status not in _ACCEPTED:
            raise LineageFailed(f"{url} answers with status {answer.status}")


class Lineage:
    """Sends events about the loads of one run.

    Args:
        settings: the settings, with the places to send to and the lake.
        cluster: the name of the cluster.
    """

    def __init__(self, settings: Settings, cluster: str) -> None:
        self._settings = settings
        self._cluster = cluster
        self._jobs: dict[str, LineageJob] = {}
        self._sender = LineageSender(settings.lineage)

    def started(self, topic: str, run_id: str) -> Sequence[str]:
        """Send the event that the load of a topic has begun; returns warnings."""
        source = topic_dataset(self._settings, self._cluster, topic)
        self._jobs[topic] = new_job(self._settings, "LOAD", self._cluster, topic, source=source, run_id=run_id)
        return self._sender.send(self._jobs[topic].started(datetime.now(UTC)))

    def ended(self, load: TopicLoad) -> Sequence[str]:
        """Send the event that the load has ended; returns warnings."""
        job = self._jobs.pop(load.topic)
        warnings: list[str] = []
        columns = [self._columns(own, warnings.append) for own in load.of_tables]
        return [*warnings, *self._sender.send(job.ended(JobEnd.of_load(load, *columns), datetime.now(UTC)))]

    def _columns(self, load: TopicLoad, warn: Callable[[str], object]) -> Columns:
        """The columns of a table after a load; none if there is no table."""
        if load.version is None:
            return ()
        return version_and_columns(Lake.of(self._settings), load.table, warn, load.version)[1]


def topic_dataset(settings: Settings, cluster: str, table: str) -> DatasetName:
    """The name of the topic of a table as a dataset.

    Other programs name it by the first address of its cluster in the settings.
    """
    addresses = settings.clusters[cluster].bootstrap or settings.clusters[cluster].zookeeper or ""
    return DatasetName.of_topic(addresses.partition("/")[0].partition(",")[0].strip(), topic_of(table))


def new_job(
    settings: Settings, kind: JobKind, cluster: str, topic: str, *, source: DatasetName, run_id: str, consumer: str = ""
) -> LineageJob:
    """A job that begins now, in the run with this id."""
    return LineageJob(
        namespace=settings.lineage.namespace,
        kind=kind,
        cluster=cluster,
        topic=topic,
        consumer=consumer,
        source=source,
        run=uuid4(),
        parent=run_uuid(run_id),
    )


def version_and_columns(
    lake: Lake, uri: str, warn: Callable[[str], object], version: int | None = None
) -> tuple[int | None, Columns]:
    """The number of a version of a table, by default of the newest one, and the columns in it.

    If the table cannot be read, `warn` is called, and neither is known.
    """
    try:
        with lake_errors(uri):
            opened = open_version(lake, uri, version)
            return opened.version, schema_fields(opened.fields())
    except Exception as error:  # noqa: BLE001 - whatever the store says, the job has ended
        warn(f"the lineage of this run lacks the columns of the table: {error}")
        return None, ()
