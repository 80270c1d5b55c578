"""OpenLineage events of loads, as JSON values: START, COMPLETE and FAIL (openlineage.io, version 2-0-2 of the spec).

The events are a few dictionaries, so Penstock writes them itself: the client library would bring two HTTP clients into
every load. Tests compare them with what the library makes of the same facts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from pipelines.loading.outcome import TopicLoad

EventType = Literal["START", "COMPLETE", "FAIL"]
_SPEC = "https://openlineage.io/spec"
_EVENT_SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS: Mapping[str, tuple[str, str]] = {  # the version of each facet's schema, and its name
    "parent": ("1-2-0", "ParentRunFacet"),
    "errorMessage": ("1-0-1", "ErrorMessageRunFacet"),
    "processing_engine": ("1-1-1", "ProcessingEngineRunFacet"),
    "jobType": ("2-0-4", "JobTypeJobFacet"),
    "schema": ("1-2-0", "SchemaDatasetFacet"),
    "version": ("1-0-1", "DatasetVersionDatasetFacet"),
    "inputStatistics": ("1-0-0", "InputStatisticsInputDatasetFacet"),
    "outputStatistics": ("1-0-2", "OutputStatisticsOutputDatasetFacet"),
}
_VERSION = version("penstock-etl")
PRODUCER = f"urn:penstock:{_VERSION}"
Facets = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetName:
    """A dataset as OpenLineage names it: all programs must use the same name, so that their graphs meet."""

    namespace: str
    name: str

    @classmethod
    def of_topic(cls, address: str, topic: str) -> "DatasetName":
        """A topic of the cluster with this bootstrap server, `host:port`."""
        return cls(namespace=f"kafka://{address}", name=topic)

    @classmethod
    def of_table(cls, uri: str) -> "DatasetName":
        """A table by its URI: the namespace is the bucket or container, or `file` for a local folder."""
        parts = urlsplit(uri)
        if not parts.scheme or parts.scheme == "file":
            return cls(namespace="file", name=parts.path)
        scheme = "s3" if parts.scheme == "s3a" else parts.scheme
        return cls(namespace=f"{scheme}://{parts.netloc}", name=parts.path.strip("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadJob:
    """A load as OpenLineage's job: from a topic into a table.

    Args:
        namespace: the namespace of all jobs.
        cluster: the cluster's name in the settings.
        topic: the topic.
        source: the name of the topic as a dataset.
        run: the id of this load.
        parent: the id of the run that loads the topic, possibly with others.
    """

    namespace: str
    cluster: str
    topic: str
    source: DatasetName
    run: UUID
    parent: UUID

    def started(self, now: datetime) -> Mapping[str, Any]:
        """The event of the beginning. The table is not known before it is opened."""
        return self._event("START", now, {}, {}, ())

    def ended(self, load: TopicLoad, schema: Sequence[Mapping[str, Any]], now: datetime) -> Mapping[str, Any]:
        """The event of the end: COMPLETE, or FAIL if anything could not be loaded. What was committed is in both."""
        run_facets: dict[str, Facets] = {}
        if load.error is not None:
            trace = {"stackTrace": load.trace} if load.trace else {}
            run_facets["errorMessage"] = _facet(
                "errorMessage", {"message": load.error, "programmingLanguage": "python", **trace}
            )
        facets: dict[str, Any] = {}
        if load.version is not None:
            facets["version"] = _facet("version", {"datasetVersion": str(load.version)})
        if schema:
            facets["schema"] = _facet("schema", {"fields": list(schema)})
        statistics = {"rowCount": load.rows, "fileCount": load.files}
        table = DatasetName.of_table(load.table)
        output = {
            "namespace": table.namespace,
            "name": table.name,
            "facets": facets,
            "outputFacets": {"outputStatistics": _facet("outputStatistics", statistics)},
        }
        read = {"inputStatistics": _facet("inputStatistics", {"rowCount": load.rows, "size": load.bytes})}
        return self._event("COMPLETE" if load.error is None else "FAIL", now, run_facets, read, (output,))

    def _event(
        self,
        kind: EventType,
        now: datetime,
        run_facets: Mapping[str, Any],
        input_facets: Mapping[str, Any],
        outputs: Sequence[Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        parent_job = {"namespace": self.namespace, "name": f"load.{self.cluster}", "facets": {}}
        parent = {"run": {"runId": str(self.parent), "facets": {}}, "job": parent_job}
        engine = {"version": _VERSION, "name": "Penstock", "openlineageAdapterVersion": _VERSION}
        kind_of_job = {"processingType": "BATCH", "integration": "PENSTOCK", "jobType": "LOAD"}
        facets = {"parent": _facet("parent", parent), "processing_engine": _facet("processing_engine", engine)}
        source = {"namespace": self.source.namespace, "name": self.source.name, "facets": {}}
        return {
            "eventType": kind,
            "eventTime": now.astimezone(UTC).isoformat(),
            "run": {"runId": str(self.run), "facets": {**facets, **run_facets}},
            "job": {
                "namespace": self.namespace,
                "name": f"load.{self.cluster}.{self.topic}",
                "facets": {"jobType": _facet("jobType", kind_of_job)},
            },
            "inputs": [{**source, "inputFacets": dict(input_facets)}],
            "outputs": list(outputs),
            "producer": PRODUCER,
            "schemaURL": _EVENT_SCHEMA,
        }


def schema_fields(delta_schema: str) -> Sequence[Mapping[str, Any]]:
    """The columns of a table, from Delta's schema in JSON, as OpenLineage lists them."""
    return [_field(field["name"], field["type"]) for field in json.loads(delta_schema)["fields"]]


def run_uuid(run_id: str) -> UUID:
    """The id of a run as a UUID, which OpenLineage demands. Dagster's ids are UUIDs; of another id it is a digest."""
    try:
        return UUID(run_id)
    except ValueError:
        return uuid5(NAMESPACE_URL, f"penstock:{run_id}")


def _field(name: str, kind: Any) -> Mapping[str, Any]:
    """A column, or a part of one: the parts of an array and of a map have the names that the spec gives them."""
    if isinstance(kind, str):
        return {"name": name, "type": kind, "fields": []}
    parts = {
        "struct": lambda: [_field(field["name"], field["type"]) for field in kind["fields"]],
        "array": lambda: [_field("_element", kind["elementType"])],
        "map": lambda: [_field("key", kind["keyType"]), _field("value", kind["valueType"])],
    }
    return {"name": name, "type": kind["type"], "fields": parts[kind["type"]]()}


def _facet(key: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    number, name = _FACETS[key]
    return {**fields, "_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/{number}/{name}.json#/$defs/{name}"}
