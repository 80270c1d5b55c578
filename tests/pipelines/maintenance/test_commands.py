"""`penstock replay`, `penstock verify --deep` and the job: what scripts and people rely on."""

import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from kafka_io.model import BrokerPartition
from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from resources.settings.settings import PATH_VARIABLE
from tests.pipelines.cli.walking import leads_on
from tests.pipelines.conftest import Modern
from tests.pipelines.defs.declared import defs_of, failure
from tests.pipelines.loaded import Loaded
from tests.pipelines.reports.test_lineage import events_of

ONE = BrokerPartition(None, 0)
Penstock = Callable[..., Result]


@pytest.fixture
def topic(modern: Modern) -> Loaded:
    """A topic whose table has a wrong value at offset 5; a run of one slice needs no Spark."""
    modern.publish(20)
    modern.topic.load()
    modern.topic.spoil(ONE, 5)
    return modern.topic


@pytest.fixture
def penstock(topic: Loaded) -> Penstock:
    return lambda *arguments: CliRunner().invoke(main, ["--settings", str(topic.settings), *arguments])


def answer(result: Result) -> Any:
    [result_fields] = json.loads(result.stdout)["results"]
    return result_fields


def test_deep_verify_and_replay_as_scripts_do(topic: Loaded, penstock: Penstock) -> None:
    assert penstock("verify", "clicks").exit_code == 0
    bad = penstock("verify", "clicks", "--deep", "--json")
    assert bad.exit_code == ExitCode.NOT_PROVEN
    assert answer(bad)["compared"] == [
        {
            "broker": None,
            "partition": 0,
            "start": 0,
            "end": 20,
            "not_compared": 0,
            "equal": 19,
            "differing": 1,
            "only_in_table": 0,
            "only_on_broker": 0,
            "copies": 0,
            "offsets": {"differing": [5]},
        }
    ]
    assert answer(bad)["problems"] == ["partition 0 differs from its broker: 1 row, at offsets 5"]
    process = penstock("replay", "clicks", "--from", "earliest", "--to", "latest", "--json")
    assert process.exit_code == 0, process.stderr
    printed = answer(process)
    assert (printed["cluster"], printed["topic"], printed["changed"], printed["rows"], printed["errors"]) == (
        "main",
        "clicks",
        True,
        20,
        [],
    )
    assert (printed["partitions"][0]["start"], printed["partitions"][0]["end"], printed["version"]) == (
        0,
        20,
        topic.version,
    )
    process = penstock("verify", "--all", "--deep", "--json")
    assert (process.exit_code, answer(process)["proven"]) == (0, True)


def test_without_json_the_commands_print_tables_and_sentences(penstock: Penstock) -> None:
    bad = penstock("verify", "clicks", "--deep")
    assert "NOT COMPARED" in bad.stdout
    assert "penstock: clicks: partition 0 differs from its broker: 1 row, at offsets 5" in bad.stderr
    points = ("--partition", "0", "--from", "0", "--to", "10")
    assert "replaced clicks: 10 rows, version 3" in penstock("replay", "clicks", *points).stdout
    assert "unchanged clicks: 10 rows are equal to the brokers' records" in penstock("replay", "clicks", *points).stdout
    future = ("--from", "2100-01-01T00:00Z", "--to", "2100-01-02T00:00Z")
    assert "unchanged clicks: the table has no rows in this interval" in penstock("replay", "clicks", *future).stdout


def test_a_replay_that_is_refused_is_one_sentence_and_exit_code_1(penstock: Penstock) -> None:
    result = penstock("replay", "clicks", "--partition", "0", "--from", "0", "--to", "30")
    assert result.exit_code == 1
    sentence = "ReplayRefused: the table covers [0, 20), and offset 30 is outside of it"
    place = "[cluster=main topic=clicks partition=0]"
    assert result.stderr == f"penstock: clicks: {sentence} {place} (PS-112)\n{leads_on('PS-112')}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("clicks",), "Missing option '--from'"),
        (("clicks", "--from", "1", "--to", "2"), "an offset belongs to a single partition"),
        (("clicks", "--from", "soon", "--to", "latest"), "is not a position in a log"),
        (("clicks", "--from", "earliest", "--to", "latest", "--partition", "x"), "is not a partition"),
    ],
)
def test_wrong_use_is_exit_code_2(penstock: Penstock, arguments: tuple[str, ...], said: str) -> None:
    result = penstock("replay", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_deep_verify_of_an_unknown_topic_is_wrong_use(penstock: Penstock, topic: Loaded) -> None:
    result = penstock("verify", "views", "--deep", "--json")
    assert (result.exit_code, json.loads(result.stdout)["results"]) == (2, [])
    assert "the topic 'views' has no table" in result.stderr


def run(instance: dg.DagsterInstance, **config: Any) -> dg.ExecuteInProcessResult:
    run_config = {"ops": {"penstock_replay__main": {"config": config}}}
    return (
        defs_of()
        .resolve_job_def("replay__main")
        .execute_in_process(run_config=run_config, instance=instance, raise_on_error=False)
    )


@pytest.mark.slow
def test_the_job_replays_and_reports_what_it_did(
    topic: Loaded, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(topic.settings))
    with topic.settings.open("a") as settings:
        settings.write('[lineage]\nfile = "lineage.jsonl"\n')
    result = run(instance, topic="clicks", since="0", until="10", partitions=["0"], on_compacted="drop")
    assert result.success
    [event] = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    observation = event.asset_observation_data.asset_observation
    assert observation.asset_key == dg.AssetKey(["lake", "main", "clicks"])
    assert (observation.metadata["rows"].value, observation.metadata["changed"].value) == (10, True)
    table: Any = observation.metadata["partitions"].value
    [record] = table.records
    assert (record.data["start"], record.data["end"], record.data["differing"]) == (0, 10, 1)
    assert topic.deep().proven
    *_, end = events_of(topic.settings.parent / "lineage.jsonl")
    assert (end["job"]["name"], end["run"]["facets"]["parent"]["run"]["runId"]) == ("replay.main.clicks", result.run_id)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"topic": "clicks", "since": "0", "until": "30"}, "ValueError: an offset belongs to a single partition"),
        ({"topic": "clicks", "since": "yesterday", "until": "latest"}, "ValueError: 'yesterday' is not a position"),
        ({"topic": "views", "since": "earliest", "until": "latest"}, "TopicUnknown: the cluster has no such topic"),
    ],
)
def test_a_job_that_cannot_replay_fails_with_the_reason(
    topic: Loaded, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], reason: str
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(topic.settings))
    result = run(instance, **config)
    assert not result.success
    assert failure(result).description.startswith(reason)
    assert failure(result).description.endswith((" (PS-102)", " (PS-104)"))
