"""More than a hundred topics: two ticks and three runs load them, and a failing topic affects no other."""

# fault O07

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from pipelines.defs.partitions import run_tags
from selenium import webdriver

from tests.ui.browser import Browser
from tests.ui.many import CLUSTER, FOREIGN, LOADED_TOPICS, MESSAGES, TOPICS, TOPICS_PER_RUN
from tests.ui.stand import Stand

pytestmark = [pytest.mark.ui, pytest.mark.spark, pytest.mark.zookeeper, pytest.mark.timeout(1800)]

LOAD = f"load__{CLUSTER}__topics"
PAGE = f"/assets/lake/{CLUSTER}/topics"


@pytest.fixture
def many(stand: Stand) -> Stand:
    """The stand with the cluster of many topics, which existed when Dagster started."""
    return replace(stand, cluster=CLUSTER)


def failed_run(many: Stand) -> dg.DagsterRun:
    """The run that failed because of the foreign table."""
    (run,) = many.instance.get_runs(dg.RunsFilter(job_name=LOAD, statuses=[dg.DagsterRunStatus.FAILURE]))
    return run


def test_two_ticks_add_all_topics_and_request_their_runs(many: Stand) -> None:
    *later, second, first = many.ticks(f"new_topics__{CLUSTER}")
    assert first["skipReason"] == f"new topics seen: {len(TOPICS)}; the next tick adds and loads them"
    assert first["runIds"] == []
    assert [len(tick["partitionKeys"]) for tick in second["dynamicPartitionsRequestResults"]] == [len(TOPICS)]
    assert len(second["runIds"]) == 3
    assert [tick["runIds"] for tick in later] == [[]] * len(later)


def test_all_topics_except_the_failing_one_are_loaded(many: Stand) -> None:
    """The check `offsets_covered` of the next test proves the tables."""
    assert many.instance.get_materialized_partitions(many.asset) == set(LOADED_TOPICS)
    assert all(many.values(topic) == sorted(MESSAGES) for topic in LOADED_TOPICS)


def test_the_failed_run_names_its_topic_and_the_checks_cover_the_others(many: Stand) -> None:
    logged = many.instance.all_logs(failed_run(many).run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    failures = [entry.dagster_event.step_failure_data.user_failure_data for entry in logged if entry.dagster_event]
    assert [str(failure and failure.description).partition(": Table")[0] for failure in failures] == [
        f"1 of {TOPICS_PER_RUN} topics were not loaded completely: {FOREIGN}"
    ]
    assert evaluations(many) == ["tables proven: 39", "tables proven: 40", "tables proven: 40"]


def evaluations(many: Stand) -> list[str]:
    """The descriptions of the check `offsets_covered` of all runs, sorted."""
    key = dg.AssetCheckKey(many.asset, "offsets_covered")
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


def test_the_pages_show_all_topics(many: Stand, driver: webdriver.Chrome, blank_after: None, tmp_path: Path) -> None:
    browser = Browser.of(driver, many.url, tmp_path)
    browser.open(f"{PAGE}?view=partitions", f"Materialized ({len(LOADED_TOPICS)})", "Failed (1)", TOPICS[0])
    browser.open(f"{PAGE}?view=partitions&partition={TOPICS[-1]}", "rows_per_second", "table_version")
    browser.open(PAGE, "rows_per_second")
    browser.open(
        f"/runs/{failed_run(many).run_id}", f"1 of {TOPICS_PER_RUN} topics were not loaded completely: {FOREIGN}"
    )
