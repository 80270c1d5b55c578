"""OpenLineage events of jobs, as JSON values: START, COMPLETE and FAIL (openlineage.io, version 2-0-2 of the spec).

The events are a few dictionaries, so Penstock writes them itself: the client library would bring two HTTP clients into
every load. Tests compare them with what the library makes of the same facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from pipelines.layout.delta_schema import DeltaField
from pipelines.reports.outcome import TopicLoad

EventType = Literal["START", "COMPLETE", "FAIL"]
JobKind = Literal["LOAD", "REPLAY", "REDECODE", "REWRITE", "STATE", "INCREMENT"]
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
Columns = Sequence[Mapping[str, Any]]
"""The columns of a table, as OpenLineage lists them."""


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
            return cls(namespace="file", name=str(Path(parts.path).absolute()))
        scheme = "s3" if parts.scheme == "s3a" else parts.scheme
        return cls(namespace=f"{scheme}://{parts.netloc}", name=parts.path.strip("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutput:
    """The dataset that a job writes.

    Args:
        name: its name.
        version: the version of the Delta table after the job.
        columns: its columns in that version, as `schema_fields` gives them.
        rows: the number of rows that the job wrote; None if it is unknown, as `files` is.
        files: the number of files with these rows.
    """

    name: DatasetName
    version: int | None = None
    columns: Columns = ()
    rows: int | None = None
    files: int | None = None

    @classmethod
    def of_load(cls, load: TopicLoad, columns: Columns) -> Self:
        """The output of a load: a table that has these columns now."""
        name = DatasetName.of_table(load.table)
        return cls(name=name, version=load.version, columns=columns, rows=load.rows, files=load.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """The result of a job.

    Args:
        outputs: what the job wrote, as far as it is known.
        source_version: the version of the source, if it is a Delta table.
        read_rows: the number of rows that were read from the source; None if it is unknown, as `read_bytes` is.
        read_bytes: the number of bytes that were read for them.
        error: what failed; None if nothing did.
        trace: the stack trace of the error, if it has one.
    """

    outputs: Sequence[JobOutput] = ()
    source_version: int | None = None
    read_rows: int | None = None
    read_bytes: int | None = None
    error: str | None = None
    trace: str | None = None

    @classmethod
    def of_load(cls, load: TopicLoad, *columns: Columns) -> Self:
        """The result of a load whose tables have these columns."""
        return cls(
            outputs=[JobOutput.of_load(own, of_own) for own, of_own in zip(load.of_tables, columns, strict=True)],
            read_rows=sum(own.rows for own in load.of_tables),
            read_bytes=load.bytes,
            error=load.error,
            trace=load.trace,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageJob:
    """A run of a job as OpenLineage describes it: from one dataset into others.

    Args:
        namespace: the namespace of all jobs.
        kind: what the job does.
        cluster: the cluster's name in the settings.
        topic: the topic.
        consumer: the consumer of an increment; empty for other jobs.
        source: the dataset that the job reads.
        run: the id of this run of the job.
        parent: the id of the run of Penstock or Dagster, which possibly has other jobs too.
    """

    namespace: str
    kind: JobKind = "LOAD"
    cluster: str
    topic: str
    consumer: str = ""
    source: DatasetName
    run: UUID
    parent: UUID

    def started(self, now: datetime) -> Mapping[str, Any]:
        """The event of the beginning. The output is not known before it is opened."""
        return self._event("START", now, {}, JobEnd())

    def ended(self, end: JobEnd, now: datetime) -> Mapping[str, Any]:
        """The event of the end: COMPLETE, or FAIL if anything failed. What was committed is in both."""
        run_facets: dict[str, Facets] = {}
        if end.error is not None:
            trace = {"stackTrace": end.trace} if end.trace else {}
            run_facets["errorMessage"] = _facet(
                "errorMessage", {"message": end.error, "programmingLanguage": "python", **trace}
            )
        return self._event("COMPLETE" if end.error is None else "FAIL", now, run_facets, end)

    def _event(self, event_type: EventType, now: datetime, run_facets: Facets, end: JobEnd) -> Mapping[str, Any]:
        kind = self.kind.lower()
        parent_job = {"namespace": self.namespace, "name": f"{kind}.{self.cluster}", "facets": {}}
        parent = {"run": {"runId": str(self.parent), "facets": {}}, "job": parent_job}
        engine = {"version": _VERSION, "name": "Penstock", "openlineageAdapterVersion": _VERSION}
        kind_of_job = {"processingType": "BATCH", "integration": "PENSTOCK", "jobType": self.kind}
        facets = {"parent": _facet("parent", parent), "processing_engine": _facet("processing_engine", engine)}
        return {
            "eventType": event_type,
            "eventTime": now.astimezone(UTC).isoformat(),
            "run": {"runId": str(self.run), "facets": {**facets, **run_facets}},
            "job": {
                "namespace": self.namespace,
                "name": ".".join(filter(None, (kind, self.cluster, self.topic, self.consumer))),
                "facets": {"jobType": _facet("jobType", kind_of_job)},
            },
            "inputs": [self._input(end)],
            "outputs": [_output(output) for output in end.outputs],
            "producer": PRODUCER,
            "schemaURL": _EVENT_SCHEMA,
        }

    def _input(self, end: JobEnd) -> Mapping[str, Any]:
        read = _known({"rowCount": end.read_rows, "size": end.read_bytes})
        return {
            "namespace": self.source.namespace,
            "name": self.source.name,
            "facets": _version_facet(end.source_version),
            "inputFacets": {"inputStatistics": _facet("inputStatistics", read)} if read else {},
        }


def _output(output: JobOutput) -> Mapping[str, Any]:
    schema = {"schema": _facet("schema", {"fields": list(output.columns)})} if output.columns else {}
    written = _known({"rowCount": output.rows, "fileCount": output.files})
    return {
        "namespace": output.name.namespace,
        "name": output.name.name,
        "facets": {**_version_facet(output.version), **schema},
        "outputFacets": {"outputStatistics": _facet("outputStatistics", written)} if written else {},
    }


def _version_facet(number: int | None) -> Facets:
    return {} if number is None else {"version": _facet("version", {"datasetVersion": str(number)})}


def _known(statistics: Mapping[str, int | None]) -> Mapping[str, int]:
    return {name: number for name, number in statistics.items() if number is not None}


def schema_fields(fields: Sequence[DeltaField]) -> Columns:
    """The columns of a table as OpenLineage lists them."""
    return [_field(str(field["name"]), field["type"]) for field in fields]


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
