"""Loads send OpenLineage events, which are those that OpenLineage's own library makes of the same facts."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from openlineage.client import facet_v2 as facets
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from pipelines.load.load import Loader
from pipelines.reports.lineage_events import PRODUCER, DatasetName, JobEnd, LineageJob, run_uuid, schema_fields
from pipelines.reports.outcome import TopicLoad
from resources.kafka import open_cluster
from resources.settings.lineage import LineageSettings
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.brokers.ports import free_ports
from tests.fakes.cluster import FakeCluster
from tests.kafka_io.net.test_canary import CANARY
from tests.pipelines.load.test_run_target import no_spark

RUN, PARENT = UUID(int=1), UUID(int=2)
NOW = datetime.fromisoformat("2026-01-31T12:00:00+00:00")
JOB = LineageJob(
    namespace="penstock",
    cluster="main",
    topic="clicks",
    source=DatasetName.of_topic("kafka1:9092", "clicks"),
    run=RUN,
    parent=PARENT,
)
NESTED: Mapping[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": {"type": "array", "elementType": "string"}},
        {"name": "at", "type": {"type": "struct", "fields": [{"name": "x", "type": "double"}]}},
        {"name": "names", "type": {"type": "map", "keyType": "string", "valueType": "string"}},
    ],
}
LOADED = TopicLoad(topic="clicks", table="s3://lake/main/clicks", version=7, rows=16, bytes=160, files=2)


def made_by_the_library(load: TopicLoad | None) -> Any:
    """The event of the library for a load that has ended, or has begun."""
    column = facets.schema_dataset.SchemaDatasetFacetFields
    parts = {
        "tags": [column("_element", "string")],
        "at": [column("x", "double")],
        "names": [column("key", "string"), column("value", "string")],
    }
    types = {"id": "long", "tags": "array", "at": "struct", "names": "map"}
    columns = [column(name, type_, fields=parts.get(name, [])) for name, type_ in types.items()]
    run_facets: dict[str, Any] = {
        "parent": facets.parent_run.ParentRunFacet(
            run=facets.parent_run.Run(str(PARENT)), job=facets.parent_run.Job("penstock", "load.main")
        ),
        "processing_engine": facets.processing_engine_run.ProcessingEngineRunFacet(
            PRODUCER.rpartition(":")[2], "Penstock", PRODUCER.rpartition(":")[2]
        ),
    }
    if load and load.error:
        run_facets["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(load.error, "python", load.trace)
    source, outputs = InputDataset("kafka://kafka1:9092", "clicks"), []
    if load:
        read = facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(load.rows, load.bytes)
        source = InputDataset("kafka://kafka1:9092", "clicks", inputFacets={"inputStatistics": read})
        written = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=load.rows, fileCount=load.files
        )
        about: dict[str, Any] = {
            "version": facets.dataset_version_dataset.DatasetVersionDatasetFacet(str(load.version)),
            "schema": facets.schema_dataset.SchemaDatasetFacet(columns),
        }
        known = about if load.version is not None else {}
        outputs = [OutputDataset("s3://lake", "main/clicks", facets=known, outputFacets={"outputStatistics": written})]
    state = RunState.START if load is None else RunState.FAIL if load.error else RunState.COMPLETE
    job_type = facets.job_type_job.JobTypeJobFacet("BATCH", "PENSTOCK", "LOAD")
    job = Job("penstock", "load.main.clicks", facets={"jobType": job_type})
    run = Run(str(RUN), run_facets)
    event = RunEvent(eventTime=NOW.isoformat(), run=run, job=job, eventType=state, inputs=[source], outputs=outputs)
    return Serde.to_dict(event)


@pytest.mark.parametrize(
    "load",
    [
        None,
        LOADED,
        TopicLoad(topic="clicks", table=LOADED.table, error="a checksum is wrong", trace="Traceback"),
        TopicLoad(topic="clicks", table=LOADED.table, version=7, rows=5, error="a partition failed"),
    ],
    ids=["started", "complete", "failed", "failed in part"],
)
def test_an_event_is_that_of_the_library(load: TopicLoad | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openlineage.client.generated.base.PRODUCER", PRODUCER)
    schema = schema_fields(NESTED["fields"]) if load and load.version is not None else ()
    event = JOB.ended(JobEnd.of_load(load, schema), NOW) if load else JOB.started(NOW)
    assert event == made_by_the_library(load)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("/lake/main/clicks", ("file", "/lake/main/clicks")),
        ("file:///lake/main/clicks", ("file", "/lake/main/clicks")),
        ("lake/main/clicks", ("file", str(Path("lake/main/clicks").absolute()))),
        ("s3a://lake/a/b", ("s3://lake", "a/b")),
        ("abfss://box@account.dfs.core.windows.net/a", ("abfss://box@account.dfs.core.windows.net", "a")),
    ],
)
def test_a_table_has_the_name_that_other_programs_give_it(uri: str, name: tuple[str, str]) -> None:
    dataset = DatasetName.of_table(uri)
    assert (dataset.namespace, dataset.name) == name


def test_the_id_of_every_run_is_a_uuid() -> None:
    assert run_uuid(PARENT.hex) == run_uuid(str(PARENT)) == PARENT
    assert run_uuid("nightly") == run_uuid("nightly") != run_uuid("daily")


@contextmanager
def server_of_events(status: int = 201) -> Iterator[tuple[str, list[Any]]]:
    """The URL of a server, and the requests that it got: the header `Authorization` and the event."""
    received: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api/v1/lineage", received
        server.shutdown()


def load_twice(fake: FakeCluster, folder: Path, topic: str = "clicks", **lineage: Any) -> list[TopicLoad]:
    """Load a topic twice in one run."""
    with fake:
        settings = Settings(
            lake=str(folder / "lake"),
            clusters={"main": ClusterSettings(bootstrap=",".join(broker.address for broker in fake.bootstrap))},
            caps=Caps(attempts=1),
            lineage=LineageSettings.model_validate(lineage),
        )
        with open_cluster(settings, "main") as cluster:
            loader = Loader.of(settings, cluster, no_spark, run_id=PARENT.hex)
            return [loader.load(topic) for _ in range(2)]


def events_of(file: Path) -> list[Mapping[str, Any]]:
    """The events in a file."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_load_sends_its_begin_and_its_end(
    fake: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_TOKEN", CANARY)
    file = tmp_path / "lineage.jsonl"
    allowed: dict[str, Any] = {"token": "env:LINEAGE_TOKEN", "allow_secret_over_plaintext": True}
    with server_of_events() as (url, received):
        loads = load_twice(fake, tmp_path, url=url, file=str(file), **allowed)
    assert [(load.error, load.rows, load.warnings) for load in loads[1:]] == [(None, 0, ())]
    events = events_of(file)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2
    assert [request for *_, request in received] == events
    assert {(path, login) for path, login, _ in received} == {("/api/v1/lineage", f"Bearer {CANARY}")}
    runs = [event["run"]["runId"] for event in events]
    assert (runs[0] == runs[1], runs[1] == runs[2], runs[2] == runs[3]) == (True, False, True)
    assert {event["run"]["facets"]["parent"]["run"]["runId"] for event in events} == {str(PARENT)}
    assert events[0]["inputs"][0]["namespace"] == f"kafka://{fake.bootstrap[0].address}"
    output = events[1]["outputs"][0]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "lake" / "main" / "clicks"))
    assert output["facets"]["version"]["datasetVersion"] == str(loads[0].version)
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 30
    columns = {column["name"]: column["type"] for column in output["facets"]["schema"]["fields"]}
    assert (columns["value"], columns["offset"], columns["timestamp"]) == ("binary", "long", "timestamp")


def test_a_load_that_fails_sends_the_reason(fake: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    (load, _) = load_twice(fake, tmp_path, topic="views", file=str(file))
    event = events_of(file)[1]
    assert (event["eventType"], event["run"]["facets"]["errorMessage"]["message"]) == ("FAIL", load.error)
    assert event["outputs"][0]["facets"] == {}


def test_lineage_that_is_lost_is_one_warning_and_the_load_succeeds(fake: FakeCluster, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url, file = f"http://127.0.0.1:{port}/lineage", str(tmp_path / "missing" / "lineage.jsonl")
    first, second = load_twice(fake, tmp_path, url=url, file=file)
    assert (first.error, first.rows, second.error, second.warnings) == (None, 30, None, ())
    warnings = [warning for warning in first.warnings if "lineage" in warning]
    lost = "the lineage of this run is lost"
    assert warnings == [
        f"{lost}: the file {file} cannot be written: no such file or directory",
        f"{lost}: {url} cannot take it: cannot connect to port {port} (127.0.0.1: connection refused)",
    ]


def test_a_server_that_refuses_events_is_a_warning(fake: FakeCluster, tmp_path: Path) -> None:
    with server_of_events(status=422) as (url, received):
        first, _ = load_twice(fake, tmp_path, url=url)
    assert first.warnings[-1] == f"the lineage of this run is lost: {url} answers with status 422"
    assert len(received) == 1


@pytest.mark.parametrize(
    ("lineage", "message"),
    [
        ({"token": "env:T"}, "belong to a `url`"),
        ({"url": "http://marquez/", "token": "env:T"}, "lets everyone on the way read the secret"),
        ({"url": "http://marquez/", "tls": {}}, "begins with http://"),
        ({"url": "ftp://marquez/"}, "url: write `http"),
        ({"url": "https://canary@marquez/"}, "url: write `http"),
    ],
)
def test_settings_that_are_not_safe_are_refused(lineage: dict[str, Any], message: str) -> None:  # fault X08
    with pytest.raises(ValueError, match=message) as raised:
        LineageSettings.model_validate(lineage)
    assert "canary" not in str(raised.value)
