"""Hundreds of topics in one Dagster: two ticks and three runs load them, and a failing topic affects no other."""

# fault O07

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from deltalake import write_deltalake
from selenium import webdriver

from kafka_io.producer.publishing import publish_values
from pipelines.defs.partitions import run_tags
from resources.kafka import open_producer
from resources.settings import Settings
from tests.live import numbered
from tests.ui.browser import Browser
from tests.ui.modern import modern_cluster
from tests.ui.stand import ASSET, PAGE, Stand, dagster_on, until

pytestmark = [pytest.mark.ui, pytest.mark.timeout(1800)]

TOPICS = tuple(f"topic-{number:03}" for number in range(300))
FOREIGN = "topic-123"
"""The topic whose table folder contains a foreign Delta table."""
LOADED_TOPICS = tuple(topic for topic in TOPICS if topic != FOREIGN)
MESSAGES = numbered(3)
LOAD = "load__main__topics"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Dagster after the runs for the 300 topics that existed at its start."""
    home = tmp_path_factory.mktemp("many")
    with ExitStack() as running:
        settings = running.enter_context(modern_cluster(home, topics_per_run=100))
        write_foreign(home / "lake" / "main" / FOREIGN)
        with open_producer(Settings.load(settings), "main") as producer:
            for topic in TOPICS:
                publish_values((producer,), topic, MESSAGES)
        stand = running.enter_context(dagster_on(home, settings, runs_at_once=2))
        until(lambda: len(stand.instance.get_runs()) == 3, "three runs")
        stand.wait_for_runs()
        yield stand


def write_foreign(folder: Path) -> None:
    """Write a Delta table that Penstock did not create."""
    write_deltalake(str(folder), pa.table({"other": [1, 2, 3]}))


def failed_run(many: Stand) -> dg.DagsterRun:
    """The run that failed because of the foreign table."""
    (run,) = many.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
    return run


def test_two_ticks_add_all_topics_and_request_their_runs(many: Stand) -> None:
    *later, second, first = many.ticks("new_topics__main")
    assert (first["skipReason"], first["runIds"]) == (
        "new topics seen: 300; the next tick adds and loads them",
        [],
    )
    assert [len(tick["partitionKeys"]) for tick in second["dynamicPartitionsRequestResults"]] == [300]
    assert len(second["runIds"]) == 3
    assert [tick["runIds"] for tick in later] == [[]] * len(later)


def test_all_topics_except_the_failing_one_are_loaded(many: Stand) -> None:
    """The check `offsets_covered` of the next test proves the tables."""
    assert many.instance.get_materialized_partitions(ASSET) == set(LOADED_TOPICS)
    assert all(many.values(topic) == sorted(MESSAGES) for topic in LOADED_TOPICS)


def test_the_failed_run_names_its_topic_and_the_checks_cover_the_others(many: Stand) -> None:
    logged = many.instance.all_logs(failed_run(many).run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    failures = [entry.dagster_event.step_failure_data.user_failure_data for entry in logged if entry.dagster_event]
    assert [str(failure and failure.description).partition(": Table")[0] for failure in failures] == [
        f"1 of 100 topics were not loaded completely: {FOREIGN}"
    ]
    assert evaluations(many) == ["tables proven: 100", "tables proven: 100", "tables proven: 99"]


def evaluations(many: Stand) -> list[str]:
    """The descriptions of the check `offsets_covered` of all runs, sorted."""
    key = dg.AssetCheckKey(ASSET, "offsets_covered")
    history = many.instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
    succeeded = [
        execution.event
        for execution in history
        if execution.event and execution.status is AssetCheckExecutionRecordStatus.SUCCEEDED
    ]
    events = [event.dagster_event for event in succeeded]
    return sorted(event.asset_check_evaluation_data.description or "" for event in events if event)


def test_the_schedule_requests_only_the_failing_topic(many: Stand) -> None:
    (request,) = many.preview(LOAD)["runRequests"]
    tags = {tag["key"]: tag["value"] for tag in request["tags"]}
    assert tags.items() >= run_tags([FOREIGN]).items()


def test_the_pages_show_300_topics(many: Stand, driver: webdriver.Chrome, blank_after: None, tmp_path: Path) -> None:
    browser = Browser.of(driver, many.url, tmp_path)
    browser.open(f"{PAGE}?view=partitions", "Materialized (299)", "Failed (1)", TOPICS[0])
    browser.open(f"{PAGE}?view=partitions&partition={TOPICS[-1]}", "rows_per_second", "table_version")
    browser.open(PAGE, "rows_per_second")
    browser.open(f"/runs/{failed_run(many).run_id}", f"1 of 100 topics were not loaded completely: {FOREIGN}")
