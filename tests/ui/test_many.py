"""Two ticks and three runs load many topics, and a failing topic affects no other."""

# fault O07

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from selenium import webdriver

from pipelines.defs.runs.check_runs import newest_results
from tests.thorough import first
from tests.ui.browser import Browser
from tests.ui.many import CLUSTER, FEW, HUNDRED, MESSAGES, ManyTopics
from tests.ui.stand import Stand

pytestmark = [pytest.mark.ui, pytest.mark.spark, pytest.mark.zookeeper, pytest.mark.timeout(1800)]

LOAD = f"load__{CLUSTER}__topics"


@pytest.fixture(params=first(1, [FEW, HUNDRED]), ids=lambda topics: str(len(topics.names)))
def topics(request: pytest.FixtureRequest) -> ManyTopics:
    """The topics of the cluster."""
    chosen: ManyTopics = request.param
    return chosen


@pytest.fixture
def many(topics: ManyTopics, stand_with: Callable[[ManyTopics], Stand]) -> Stand:
    """The stand with the cluster of many topics, which existed when Dagster started."""
    return replace(stand_with(topics), cluster=CLUSTER)


def failed_run(many: Stand) -> dg.DagsterRun:
    """The run that failed because of the foreign table."""
    (run,) = many.instance.get_runs(dg.RunsFilter(job_name=LOAD, statuses=[dg.DagsterRunStatus.FAILURE]))
    return run


def test_one_tick_adds_all_topics_and_requests_their_runs(topics: ManyTopics, many: Stand) -> None:
    ticks = [tick for tick in many.ticks(f"new_topics__{CLUSTER}") if tick["runIds"]]
    assert [len(tick["runIds"]) for tick in ticks] == [3]
    assert many.instance.get_dynamic_partitions(f"penstock/{CLUSTER}") == list(topics.names)


def test_all_topics_except_the_failing_one_are_loaded(topics: ManyTopics, many: Stand) -> None:
    assert [topic for topic in topics.names if not many.is_loaded(topic)] == [topics.foreign]
    assert all(many.values(topic) == sorted(MESSAGES) for topic in topics.loaded)


def test_the_failed_run_names_its_topic_and_the_checks_cover_the_others(topics: ManyTopics, many: Stand) -> None:
    logged = many.instance.all_logs(failed_run(many).run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    failures = [entry.dagster_event.step_failure_data.user_failure_data for entry in logged if entry.dagster_event]
    assert [str(failure and failure.description).partition(": Table")[0] for failure in failures] == [topics.failure]
    keys = [dg.AssetCheckKey(many.asset(topic), "coverage") for topic in topics.names]
    newest = newest_results(many.instance, keys)
    assert {key.asset_key for key in newest} == {many.asset(topic) for topic in topics.loaded}
    assert {result.state for result in newest.values()} == {"PASSED"}


def test_the_schedule_requests_only_the_failing_topic(topics: ManyTopics, many: Stand) -> None:
    assert many.requested(LOAD) == [{topics.foreign}]


def test_the_pages_show_all_topics(
    topics: ManyTopics, many: Stand, driver: webdriver.Chrome, blank_after: None, tmp_path: Path
) -> None:
    browser = Browser.of(driver, many.url, tmp_path)
    browser.open(many.page(topics.names[-1]), "rows_per_second", "table_version")
    browser.open(f"/assets/lake/{many.cluster}", min(topics.names, key=str.lower))
    browser.open(f"/runs/{failed_run(many).run_id}", topics.failure)
