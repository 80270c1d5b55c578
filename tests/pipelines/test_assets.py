"""The asset: runs in this process, against a live cluster, with real Spark and Delta."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_io.broker import session
from kafka_io.v07.messages import Fetch, MultiFetch
from resources.settings import PATH_VARIABLE
from tests.live import LiveCluster, numbered
from tests.pipelines.declared import failure, loaded, observed, run

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]


def retries(result: dg.ExecuteInProcessResult) -> list[dg.DagsterEvent]:
    return [event for event in result.all_events if event.is_step_up_for_retry]


def test_one_run_loads_every_topic_of_its_range(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "Views"):
        configured.publish(name, numbered(100))
    result = run(instance, ["main/clicks", "main/~56iews"])
    assert result.success
    found = loaded(result)
    assert {key: values["rows"] for key, values in found.items()} == {"main/clicks": 100, "main/~56iews": 100}
    assert found["main/~56iews"]["topic"] == "Views"
    assert found["main/clicks"]["table"] == str(configured.lake / "main" / "clicks")
    assert sum(record.data["rows"] for record in found["main/clicks"]["partitions"].records) == 100


def test_a_run_whose_topics_have_nothing_new_succeeds_and_says_so(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:  # O05
    configured.publish("clicks", numbered(100))
    first = loaded(run(instance, ["main/clicks"]))["main/clicks"]
    again = run(instance, ["main/clicks"])
    assert again.success
    found = loaded(again)["main/clicks"]
    assert (found["rows"], found["files"], found["table_version"]) == (0, 0, first["table_version"])


def test_a_topic_that_fails_takes_nothing_from_the_others(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(100))
    result = run(instance, ["main/clicks", "main/gone"], job="retrying")
    assert not result.success
    assert not retries(result)
    assert {key: values["rows"] for key, values in loaded(result).items()} == {"main/clicks": 100}
    told = failure(result)
    assert told.description == f"1 of 2 topics were not loaded in full: {told.metadata['errors'].value[0]}"
    sentence = "TopicUnknown: the registry has no such topic [cluster=main topic=gone]"
    assert told.metadata["errors"].value == [f"main/gone: {sentence}"]
    assert observed(result)["main/gone"]["error"] == sentence


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("elsewhere/views", "SettingsError: there is no cluster 'elsewhere'"),
        ("main/Views", "ValueError: 'Views' stands"),
    ],
)
def test_a_partition_that_names_no_topic_of_ours_fails_alone(
    instance: dg.DagsterInstance, configured: LiveCluster, key: str, reason: str
) -> None:
    configured.publish("clicks", numbered(10))
    result = run(instance, [key, "main/clicks"])
    assert not result.success
    assert loaded(result).keys() == {"main/clicks"}
    assert observed(result)[key]["error"].startswith(reason)


def test_missing_settings_are_one_sentence_at_the_run(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "none.toml"))
    result = run(instance, ["main/clicks"])
    assert "there is no settings file" in failure(result).description


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Brokers that get a FETCH and do not answer it; the event tells that one got one."""
    asked, over = threading.Event(), threading.Event()

    def silent(_request: Any, _logs: Any) -> Any:
        asked.set()
        over.wait(60)
        return ()

    with monkeypatch.context() as patch:
        for request in (Fetch, MultiFetch):
            patch.setitem(session.APIS, request, silent)
        yield asked
    over.set()


@pytest.mark.parametrize("messages", [100, 1000], ids=["fetched here", "spread by Spark"])
def test_a_run_that_is_terminated_ends_its_work_and_is_not_retried(
    instance: dg.DagsterInstance, configured: LiveCluster, spark: SparkSession, fetched: threading.Event, messages: int
) -> None:  # S04
    configured.configure(spark="").write_text(configured.settings.read_text().replace("= 5", "= 60"))
    configured.publish("clicks", numbered(messages))
    main_thread = threading.get_ident()

    def interrupt() -> None:
        if fetched.wait(30):
            signal.pthread_kill(main_thread, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    result = run(instance, ["main/clicks"])
    interrupting.join()
    told = failure(result)
    assert told.description == "the run was terminated; nothing uncommitted is visible"
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert DeltaTable(configured.lake / "main" / "clicks").to_pyarrow_table().num_rows == 0
