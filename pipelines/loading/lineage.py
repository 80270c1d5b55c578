"""Sends the OpenLineage events of the loads of one run to a file or a server. A failure is a warning of the load."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from deltalake import DeltaTable

from kafka_io.errors import KafkaIOError, LocatedError, system_reason
from kafka_io.net.http_address import HttpAddress
from kafka_io.net.http_exchange import HttpContent, HttpServer, http_post
from kafka_io.net.http_login import HttpLogin
from kafka_io.net.security import Tls
from kafka_io.net.tls import tls_context
from pipelines.loading.lineage_events import DatasetName, LoadJob, run_uuid, schema_fields
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.report_places import ReportPlaces
from resources.lake import Lake, lake_errors
from resources.lineage_settings import LineageSettings
from resources.settings import Settings
from resources.store_options import store_options

_MAX_ANSWER_BYTES = 64 * 1024
_ACCEPTED = range(200, 300)
Event = Mapping[str, Any]


class LineageFailed(LocatedError):
    """An event could not be sent."""


class Lineage:
    """Sends events about the loads of one run.

    Args:
        settings: where to send them.
        cluster: the name of the cluster.
        address: the address of the cluster, by which other programs name its topics.
        lake_options: the options of the lake's store, for reading the columns of a table.
    """

    def __init__(
        self, settings: LineageSettings, *, cluster: str, address: str, lake_options: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._address = address
        self._lake_options = lake_options
        self._jobs: dict[str, LoadJob] = {}
        self._places = ReportPlaces("the lineage of this run is lost", LineageFailed)

    @classmethod
    def of(cls, settings: Settings, cluster: str) -> Self:
        """The events of the loads from a cluster. Of several addresses the first names its topics."""
        addresses = settings.clusters[cluster].bootstrap or settings.clusters[cluster].zookeeper or ""
        return cls(
            settings.lineage,
            cluster=cluster,
            address=addresses.partition("/")[0].partition(",")[0].strip(),
            lake_options=Lake.of(settings).options,
        )

    def started(self, topic: str, run_id: str) -> Sequence[str]:
        """Send the event that the load of a topic has begun; returns warnings."""
        self._jobs[topic] = LoadJob(
            namespace=self._settings.namespace,
            cluster=self._cluster,
            topic=topic,
            source=DatasetName.of_topic(self._address, topic),
            run=uuid4(),
            parent=run_uuid(run_id),
        )
        return self._send(self._jobs[topic].started(datetime.now(UTC)))

    def ended(self, load: TopicLoad) -> Sequence[str]:
        """Send the event that the load has ended; returns warnings."""
        job = self._jobs.pop(load.topic)
        warnings: list[str] = []
        schema: Sequence[Mapping[str, Any]] = ()
        if load.version is not None:
            try:
                schema = self._columns(load.table, load.version)
            except Exception as error:  # noqa: BLE001 - whatever the store says, the load has ended
                warnings.append(f"the lineage of this run lacks the columns of the table: {error}")
        return [*warnings, *self._send(job.ended(load, schema, datetime.now(UTC)))]

    def _columns(self, uri: str, version: int) -> Sequence[Mapping[str, Any]]:
        with lake_errors(uri):
            handle = DeltaTable(uri, version=version, storage_options=store_options(self._lake_options))
            return schema_fields(handle.schema().to_json())

    def _send(self, event: Event) -> Sequence[str]:
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
            server = HttpServer(
                host=address.host,
                port=address.port,
                tls=tls_context(settings.tls or Tls()) if address.uses_tls else None,
                login=HttpLogin.bearer(settings.token.read()) if settings.token else None,
            )
            content = HttpContent(media_type="application/json", data=json.dumps(event).encode())
            answer = http_post(
                server, address.path or "/", content, timeout_s=settings.timeout_s, max_bytes=_MAX_ANSWER_BYTES
            )
        except KafkaIOError as error:
            raise LineageFailed(f"{url} cannot take it: {error.reason}") from error
        if answer.status not in _ACCEPTED:
            raise LineageFailed(f"{url} answers with status {answer.status}")
