"""Replays, redecodes, state tables and increments send OpenLineage events, as loads do."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from openlineage.client import facet_v2 as facets
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from pipelines.cli.main import main
from pipelines.defs.increment_asset import increment_asset
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.output import IncrementOutput
from pipelines.increments.postgres_output import PostgresOutput
from pipelines.reports.lineage_events import PRODUCER, DatasetName, JobEnd, JobOutput, LineageJob
from pipelines.reports.lineage_jobs import JobLineage
from pipelines.state_tables.reported import reported_state_update
from pipelines.state_tables.state_table import state_output
from resources.errors import TableMissing
from resources.settings.lineage import LineageSettings
from resources.settings.settings import ClusterSettings, Settings
from tests.fakes.typed import TypedTopic
from tests.pipelines.conftest import Modern
from tests.pipelines.conftest import modern as modern_broker
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory
from tests.pipelines.reports.test_lineage import NOW, PARENT, RUN, events_of
from tests.pipelines.rewrites.test_redecode import topic as bad_records
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

FIXTURES = (bad_records, modern_broker)
FILE = "lineage.jsonl"
LINEAGE = f'[lineage]\nfile = "{FILE}"\n'
Event = Mapping[str, Any]


def only_output(event: Event) -> Mapping[str, Any]:
    [output] = event["outputs"]
    return dict(output)


def version_of(dataset: Event) -> str:
    return str(dataset["facets"]["version"]["datasetVersion"])


def column_names(dataset: Event) -> list[str]:
    return [column["name"] for column in dataset["facets"]["schema"]["fields"]]


def rows_of(dataset: Event) -> int:
    return int(dataset["outputFacets"]["outputStatistics"]["rowCount"])


def started_and_ended(file: Path, kind: str) -> Event:
    """The event of the end of the only job of a kind; it belongs to that of the start."""
    start, end = (event for event in events_of(file) if event["job"]["facets"]["jobType"]["jobType"] == kind)
    assert (start["eventType"], start["outputs"]) == ("START", [])
    assert start["run"]["runId"] == end["run"]["runId"]
    assert start["run"]["facets"]["parent"] == end["run"]["facets"]["parent"]
    return end


def test_an_event_without_statistics_of_its_input_is_that_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openlineage.client.generated.base.PRODUCER", PRODUCER)
    source = DatasetName.of_table("s3://lake/main/clicks")
    names: dict[str, Any] = {"namespace": "penstock", "cluster": "main", "topic": "clicks", "consumer": "sizes"}
    job = LineageJob(**names, kind="INCREMENT", source=source, run=RUN, parent=PARENT)
    written = JobOutput(name=DatasetName.of_table("s3://lake/sizes"), version=3, rows=5)
    version = facets.dataset_version_dataset.DatasetVersionDatasetFacet
    number = PRODUCER.rpartition(":")[2]
    parent_job = facets.parent_run.Job("penstock", "increment.main")
    run_facets: dict[str, Any] = {
        "parent": facets.parent_run.ParentRunFacet(run=facets.parent_run.Run(str(PARENT)), job=parent_job),
        "processing_engine": facets.processing_engine_run.ProcessingEngineRunFacet(number, "Penstock", number),
    }
    rows = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=5)
    output = OutputDataset(
        "s3://lake", "sizes", facets={"version": version("3")}, outputFacets={"outputStatistics": rows}
    )
    made_by_the_library = RunEvent(
        eventTime=NOW.isoformat(),
        run=Run(str(RUN), run_facets),
        job=Job(
            "penstock",
            "increment.main.clicks.sizes",
            facets={"jobType": facets.job_type_job.JobTypeJobFacet("BATCH", "PENSTOCK", "INCREMENT")},
        ),
        eventType=RunState.COMPLETE,
        inputs=[InputDataset("s3://lake", "main/clicks", facets={"version": version("7")})],
        outputs=[output],
    )
    assert job.ended(JobEnd(outputs=[written], source_version=7), NOW) == Serde.to_dict(made_by_the_library)


def test_a_replay_leads_from_the_topic_to_its_table(modern_broker: Modern) -> None:
    modern = modern_broker
    modern.publish(20)
    modern.topic.load()
    modern.topic.handle.delete('"offset" = 5')
    with modern.topic.settings.open("a") as settings:
        settings.write(LINEAGE)
    replay = ["--settings", str(modern.topic.settings), "replay", "clicks", "--partition", "0", "--from", "0", "--to"]
    assert CliRunner().invoke(main, [*replay, "10"]).exit_code == 0
    end = started_and_ended(modern.home / FILE, "REPLAY")
    assert (end["eventType"], end["job"]["name"]) == ("COMPLETE", "replay.main.clicks")
    [source] = end["inputs"]
    assert (source["namespace"], source["name"]) == (f"kafka://{modern.address}", "clicks")
    output = only_output(end)
    assert (output["name"], version_of(output)) == (modern.topic.table.uri, str(modern.topic.version))
    assert rows_of(output) == 10
    assert "offset" in column_names(output)
    (modern.home / FILE).unlink()
    assert CliRunner().invoke(main, [*replay, "30"]).exit_code == 1
    failed = started_and_ended(modern.home / FILE, "REPLAY")
    assert (failed["eventType"], failed["outputs"]) == ("FAIL", [])
    assert failed["run"]["facets"]["errorMessage"]["message"].startswith("ReplayRefused: ")


def test_a_redecode_leads_from_the_table_to_the_table(bad_records: TypedTopic, tmp_path: Path) -> None:
    settings = tmp_path / "penstock.toml"
    settings.write_text(
        f'lake = "{tmp_path / "lake"}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[topics.clicks]\nformat = "json"\n'
        f'columns = {{ id = "string", name = "string" }}\n{LINEAGE}'
    )
    redecode = ["--settings", str(settings), "redecode", "clicks"]
    assert CliRunner().invoke(main, [*redecode, "--dry-run"]).exit_code == 0
    assert not (tmp_path / FILE).exists()
    assert CliRunner().invoke(main, redecode).exit_code == 0
    end = started_and_ended(tmp_path / FILE, "REDECODE")
    [source], output = end["inputs"], only_output(end)
    assert source["name"] == output["name"] == bad_records.table.uri
    assert version_of(output) == str(DeltaTable(bad_records.table.uri).version())
    assert (rows_of(output), "name" in column_names(output)) == (4, True)


@pytest.fixture
def keyed(tmp_path: Path) -> KeyedHistory:
    """A table with the rows of two keys."""
    history = KeyedHistory(tmp_path / "lake", Random(1))
    history.load(("a", "1"), ("b", "1"), ("a", "2"))
    return history


@pytest.fixture
def lineage(tmp_path: Path) -> tuple[JobLineage, list[str]]:
    """The lineage of one run, and its warnings."""
    warnings: list[str] = []
    settings = Settings(
        lake=str(tmp_path / "lake"),
        clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")},
        lineage=LineageSettings(file=str(tmp_path / FILE)),
    )
    return JobLineage.of(settings, "main", run_id=PARENT.hex, warn=warnings.append), warnings


def test_a_state_table_is_made_from_the_table_of_the_topic(
    lineage: tuple[JobLineage, list[str]], keyed: KeyedHistory, tmp_path: Path
) -> None:
    jobs, warnings = lineage
    for _ in range(2):
        reported_state_update(jobs, keyed.table, BY_KEY)
    state = DeltaTable(state_output(keyed.table).uri)
    first, second = (event for event in events_of(tmp_path / FILE) if event["eventType"] == "COMPLETE")
    assert first["run"]["facets"]["parent"]["run"]["runId"] == str(PARENT)
    assert first["job"]["name"] == "state.main.clicks"
    [source] = first["inputs"]
    assert (source["name"], version_of(source)) == (keyed.uri, "1")
    output = only_output(first)
    assert (output["name"], version_of(output), rows_of(output)) == (state_output(keyed.table).uri, "1", 2)
    assert column_names(output) == [field.name for field in state.schema().fields]
    assert rows_of(only_output(second)) == 0
    assert warnings == []


def test_an_error_is_in_the_event_and_is_raised(
    lineage: tuple[JobLineage, list[str]], keyed: KeyedHistory, tmp_path: Path
) -> None:
    Path(keyed.uri).rename(tmp_path / "away")
    with pytest.raises(TableMissing):
        reported_state_update(lineage[0], keyed.table, BY_KEY)
    failed = started_and_ended(tmp_path / FILE, "STATE")
    assert failed["eventType"] == "FAIL"
    assert failed["run"]["facets"]["errorMessage"]["message"].startswith("TableMissing: ")


def test_events_that_are_lost_are_warnings(keyed: KeyedHistory, tmp_path: Path) -> None:
    warnings: list[str] = []
    settings = Settings(
        lake=str(tmp_path / "lake"),
        clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")},
        lineage=LineageSettings(file=str(tmp_path / "missing" / FILE)),
    )
    update = reported_state_update(
        JobLineage.of(settings, "main", run_id="nightly", warn=warnings.append), keyed.table, BY_KEY
    )
    assert update.changed == 2
    [warning] = warnings
    assert warning.startswith("the lineage of this run is lost: the file ")


def test_without_the_section_nothing_is_sent(keyed: KeyedHistory, tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path / "lake"), clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")})
    jobs = JobLineage.of(settings, "main", run_id="nightly", warn=pytest.fail)
    with jobs.job("STATE", "clicks", DatasetName.of_table(keyed.uri)) as report:
        assert report is None


@pytest.mark.parametrize("kind", ["delta", "duckdb", "other"])
def test_the_asset_of_an_increment_leads_to_its_output(
    kind: str, small: SmallTable, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    delta, duckdb = DeltaOutput(uri=str(tmp_path / "sizes")), DuckDBOutput(path=tmp_path / "a.duckdb", table="sizes")

    class OfAnotherProgram:
        begin = delta.begin

    outputs: dict[str, tuple[IncrementOutput, Any]] = {
        "delta": (delta, ("file", str(tmp_path / "sizes"))),
        "duckdb": (duckdb, (f"duckdb://{tmp_path / 'a.duckdb'}", "a.main.sizes")),
        "other": (OfAnotherProgram(), None),
    }
    into, expected = outputs[kind]
    cluster = {"main": {"bootstrap": "127.0.0.1:1"}}
    settings = {"lake": small.lake.root, "clusters": cluster, "lineage": {"file": str(tmp_path / FILE)}}

    @increment_asset(source="main/clicks", into=into, settings=settings)
    def sizes(rows: pa.RecordBatchReader) -> pa.Table:
        return rows.read_all()

    small.commit(small.write(0, 30))
    result = dg.materialize([sizes], instance=instance)
    end = started_and_ended(tmp_path / FILE, "INCREMENT")
    assert (end["job"]["name"], version_of(end["inputs"][0])) == ("increment.main.clicks.sizes", "1")
    assert end["run"]["facets"]["parent"]["run"]["runId"] == result.run_id
    assert [(output["namespace"], output["name"]) for output in end["outputs"]] == ([expected] if expected else [])
    if kind == "delta":
        assert "value" in column_names(only_output(end))


def test_an_output_that_does_not_answer_has_no_name_in_the_event(
    lineage: tuple[JobLineage, list[str]], tmp_path: Path
) -> None:
    output = PostgresOutput(dsn="host=127.0.0.1 port=1", table="sizes", timeout_s=2)
    with lineage[0].job("INCREMENT", "clicks", DatasetName.of_table("/lake/main/clicks")) as report:
        assert report is not None
        report.wrote(output.dataset)
    assert started_and_ended(tmp_path / FILE, "INCREMENT")["outputs"] == []
    [warning] = lineage[1]
    assert warning.startswith("the lineage of this run lacks its output: Postgres ")
