"""The asset: runs in this process, against a live cluster, with real Delta, and with Spark where a load needs it."""

import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dagster as dg
import pytest
from deltalake import DeltaTable
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

import pipelines.defs.runs.run
from kafka_io.cluster.v07_cluster import Cluster07
from kafka_io.errors import RegistryUnavailable, Where
from kafka_io.testing.v07 import server
from kafka_io.v07.messages import FetchRequest07, MultiFetchRequest07
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.layout.conditions import parse_condition
from pipelines.load import load_topics
from pipelines.load.load import Loader
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.reports.outcome import TopicLoad
from pipelines.status.status import TopicStatus
from resources.settings.settings import PATH_VARIABLE
from resources.stores.lake import Lake
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import failure, key, loaded, observed, run

pytestmark = pytest.mark.zookeeper


def retries(result: dg.ExecuteInProcessResult) -> list[dg.DagsterEvent]:
    return [event for event in result.all_events if event.is_step_up_for_retry]


def test_one_run_loads_every_topic_of_its_selection(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "Views"):
        configured.publish(name, numbered(100))
    result = run(instance, ["clicks", "Views"])
    assert result.success
    metadata = loaded(result)
    assert {key: values["rows"] for key, values in metadata.items()} == {"clicks": 100, "Views": 100}
    assert metadata["Views"]["topic"] == "Views"
    assert metadata["clicks"]["table"] == str(configured.lake / "main" / "clicks")
    assert sum(record.data["rows"] for record in metadata["clicks"]["partitions"].records) == 100


def test_the_event_of_a_load_shows_sample_rows_if_the_settings_ask_for_them(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    text = configured.settings.read_text()
    configured.settings.write_text(f"{text}\n[topics.clicks]\nsample_rows = 2\n")
    for name in ("clicks", "Views"):
        configured.publish(name, [b"\xff" + b"x" * 100])
    metadata = loaded(run(instance, ["clicks", "Views"]))
    (row,) = metadata["clicks"]["sample_rows"].records
    assert (row.data["topic"], row.data["offset"], row.data["key"]) == ("clicks", 0, None)
    assert row.data["value"] == "\ufffd" + "x" * 98 + "…"
    assert "sample_rows" not in metadata["Views"]


def test_dagster_has_sample_rows_of_an_erased_person_until_its_events_are_deleted(
    instance: dg.DagsterInstance, configured: LiveCluster, tmp_path: Path
) -> None:
    """The certificate says it, and what it advises works (fault Y06)."""
    person = b"zelda@private.example"
    text = configured.settings.read_text()
    configured.settings.write_text(f"{text}\n[topics.clicks]\nsample_rows = 2\n")
    configured.publish("clicks", [person, b"adam"])
    result = run(instance, ["clicks"])
    table = DeltaLakeTable.of(Lake(root=str(configured.lake)), "main", "clicks")
    condition = parse_condition(f"value = '{person.decode()}'")
    assert erase(EraseRequest(table=table, condition=condition, run="erasure", name="T-1")).rows == 1
    finish_erasures(table, older_than=timedelta(), dry_run=False)
    made = certify(CertificateRequest(table=table, request="T-1", condition=condition, erase_days=7))
    assert made.complete, made.tasks
    [dagster] = [copy.says for copy in made.elsewhere if copy.place == "Dagster"]
    assert "`dagster run delete`" in dagster
    assert "`dagster asset wipe`" in dagster
    assert "vacuum" in dagster
    databases = [path for path in (tmp_path / "dagster").rglob("*.db") if person in path.read_bytes()]
    assert databases
    instance.delete_run(result.run_id)
    instance.wipe_assets([key("clicks")])
    for database in databases:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("vacuum")
    assert [path for path in (tmp_path / "dagster").rglob("*") if path.is_file() and person in path.read_bytes()] == []


def test_a_run_without_new_records_succeeds_with_zero_rows(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:  # fault O05
    configured.publish("clicks", numbered(100))
    first = loaded(run(instance, ["clicks"]))["clicks"]
    second = run(instance, ["clicks"])
    assert second.success
    assert not loaded(second)
    metadata = observed(second)["clicks"]
    assert (metadata["rows"], metadata["files"], metadata["table_version"]) == (0, 0, first["table_version"])


def test_a_topic_that_fails_does_not_affect_the_others(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    configured.publish("clicks", numbered(100))
    result = run(instance, ["clicks", "gone"])
    assert not result.success
    assert not retries(result)
    assert {key: values["rows"] for key, values in loaded(result).items()} == {"clicks": 100}
    failed_step = failure(result)
    assert (
        failed_step.description
        == f"1 of 2 topics were not loaded completely: gone: {failed_step.metadata['errors'].value['gone']}"
    )
    sentence = (
        "TopicUnknown: the cluster has no such topic; `penstock topics` lists its topics [cluster=main topic=gone] "
        "(PS-104)"
    )
    assert failed_step.metadata["errors"].value == {"gone": sentence}
    assert observed(result)["gone"]["error"] == sentence


def test_a_cluster_that_is_no_longer_in_the_settings_fails_the_run_with_a_sentence(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    text = configured.settings.read_text()
    configured.settings.write_text(text.replace("[clusters.main]", "[clusters.other]"))
    failed_step = failure(run(instance, ["clicks"]))
    assert (
        "SettingsError: there is no cluster 'main' in the settings; the clusters are: other (PS-101)"
        in failed_step.description
    )


def test_missing_settings_fail_the_run_with_a_sentence(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "none.toml"))
    result = run(instance, ["clicks"])
    assert "there is no settings file" in failure(result).description


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Brokers that do not answer a FETCH. The event is set when one of them receives it."""
    received, over = threading.Event(), threading.Event()

    def silent(_request: Any, _logs: Any) -> Any:
        received.set()
        over.wait(60)
        return ()

    with monkeypatch.context() as patch:
        for request in (FetchRequest07, MultiFetchRequest07):
            patch.setitem(server.HANDLERS, request, silent)
        yield received
    over.set()


@pytest.mark.spark
@pytest.mark.parametrize("messages", [100, 1000], ids=["fetched here", "spread by Spark"])
def test_a_run_that_is_terminated_ends_its_work_and_is_not_retried(
    instance: dg.DagsterInstance, configured: LiveCluster, spark: SparkSession, fetched: threading.Event, messages: int
) -> None:  # fault S04
    configured.configure(spark="").write_text(configured.settings.read_text().replace("= 5", "= 60"))
    configured.publish("clicks", numbered(messages))
    main_thread = threading.get_ident()

    def interrupt() -> None:
        if fetched.wait(120):
            signal.pthread_kill(main_thread, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    result = run(instance, ["clicks"])
    interrupting.join()
    failed_step = failure(result)
    assert (
        failed_step.description
        == "the run was terminated; uncommitted records are not visible and the next run loads them"
    )
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert DeltaTable(configured.lake / "main" / "clicks").to_pyarrow_table().num_rows == 0


def test_a_topic_that_is_gone_keeps_its_table_and_does_not_affect_others(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    assert run(instance, ["clicks", "views"]).success
    zookeeper = KazooClient(configured.zookeeper)
    zookeeper.start()
    try:
        zookeeper.delete("/brokers/topics/views", recursive=True)
    finally:
        zookeeper.stop()
        zookeeper.close()
    configured.publish("clicks", numbered(5, start=10))
    result = run(instance, ["clicks", "views"])
    assert result.success
    metadata = loaded(result)
    assert metadata.keys() == {"clicks"}
    assert metadata["clicks"]["rows"] == 5
    assert observed(result)["views"]["warnings"] == "not loaded: the cluster no longer has the topic"
    assert DeltaTable(configured.lake / "main" / "views").to_pyarrow_table().num_rows == 10


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("topics = { deny = ['views'] }", "the settings no longer allow the topic"),
        ("schedules = { pages = { topics = ['views'] } }", "the topic belongs to the schedule pages now"),
    ],
)
def test_a_topic_that_the_settings_no_longer_allow_is_not_loaded(
    instance: dg.DagsterInstance, configured: LiveCluster, settings: str, reason: str
) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    configured.configure(settings)
    result = run(instance, ["clicks", "views"])
    assert result.success
    assert {topic: values["rows"] for topic, values in loaded(result).items()} == {"clicks": 10}
    assert observed(result)["views"]["warnings"] == f"not loaded: {reason}"


def test_the_topic_that_retention_reaches_first_is_loaded_first(
    instance: dg.DagsterInstance, configured: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        configured.publish(name, numbered(10))
    order = {"c": 0.0, "a": 1.0, "b": 2.0}
    monkeypatch.setattr(TopicStatus, "urgency", lambda status, _now: order[status.topic])
    monkeypatch.setattr(load_topics, "tables_at_once", lambda _uri: 1)  # otherwise they begin in order, and end in any
    assert run(instance, ["a", "b", "c"]).success
    log = [
        event.message for event in instance.all_logs(instance.get_runs()[0].run_id) if " rows, version" in event.message
    ]
    assert [line.partition(":")[0] for line in log] == ["c", "a", "b"]


@pytest.mark.parametrize("times", [1, 3], ids=["it passes", "it stays"])
def test_a_temporary_error_is_retried_as_often_as_the_settings_say(
    instance: dg.DagsterInstance, configured: LiveCluster, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    configured.publish("clicks", numbered(10))
    opened = Loader.load
    troubles = [RegistryUnavailable("no ZooKeeper answers", Where(cluster="main"))] * times

    def load(loader: Loader, topic: str) -> TopicLoad:
        with monkeypatch.context() as patch:
            if troubles:
                patch.setattr(Cluster07, "topic", Mock(side_effect=troubles.pop()))
            return opened(loader, topic)

    monkeypatch.setattr(Loader, "load", load)
    result = run(instance, ["clicks"])
    assert len(retries(result)) == min(times, 2)
    assert result.success is (times == 1)


def test_in_a_failed_run_the_check_judges_the_loaded_tables(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(10))
    assert not run(instance, ["clicks", "gone"]).success
    check = dg.AssetCheckKey(key("clicks"), "coverage")
    (record,) = instance.event_log_storage.get_asset_check_execution_history(check, limit=5)
    assert record.event is not None
    assert record.event.dagster_event is not None
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert (evaluation.passed, evaluation.description) == (True, "the table is proven")


@pytest.mark.parametrize("how", ["config", "tags"])
def test_a_run_can_choose_the_window_that_it_loads(
    instance: dg.DagsterInstance, configured: LiveCluster, how: str
) -> None:
    configured.configure('start = "latest"')
    configured.publish("clicks", numbered(10))
    assert observed(run(instance, ["clicks"]))["clicks"]["rows"] == 0
    if how == "tags":
        result = run(instance, ["clicks"], since="earliest")
    else:
        config = {"ops": {"penstock_load__main__topics": {"config": {"since": "earliest"}}}}
        result = run(instance, ["clicks"], config=config)
    assert loaded(result)["clicks"]["rows"] == 10


def test_a_position_that_cannot_be_parsed_fails_with_a_sentence(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(10))
    result = run(instance, ["clicks"], since="yesterday")
    assert "'yesterday' is not a position in a log" in failure(result).description


@pytest.mark.spark
def test_a_run_with_spark_logs_the_url_of_the_spark_ui(
    instance: dg.DagsterInstance, configured: LiveCluster, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines.defs.runs.run, "ui_of", lambda _session: "http://driver:4040")
    configured.publish("clicks", numbered(1000))
    configured.publish("views", numbered(1))
    result = run(instance, ["clicks"])
    assert loaded(result)["clicks"]["spark_ui"] == "http://driver:4040"
    assert any("http://driver:4040" in str(event.message) for event in instance.all_logs(result.run_id))
    assert "spark_ui" not in loaded(run(instance, ["views"]))["views"]
