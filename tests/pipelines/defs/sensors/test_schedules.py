"""The schedules request runs for topics with new records. Topics whose records are lost first have priority."""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.runs import check_runs
from pipelines.defs.sensors import schedules
from pipelines.defs.sensors.schedules import rests
from pipelines.reports.last_error import LastError
from pipelines.status.status import TopicStatus
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import LOAD, defs_of, job, key, known, observed, run, storage_of

pytestmark = pytest.mark.zookeeper


def fire(instance: dg.DagsterInstance, name: str = LOAD) -> Any:
    schedule = defs_of(*known(instance)).resolve_schedule_def(name)
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=datetime.now(UTC)) as context:
        return schedule.evaluate_tick(context)


def selected(tick_data: Any) -> list[set[str]]:
    """The topics of each requested run."""
    return [{asset.path[-1] for asset in request.asset_selection} for request in tick_data.run_requests]


def test_topics_with_something_new_are_loaded_in_one_run(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    storage_of(instance).add(["views", "clicks"])
    assert selected(fire(instance)) == [{"views", "clicks"}]
    assert run(instance, ["views", "clicks"]).success
    assert fire(instance).skip_message == "nothing new in 2 topics; 0 are being loaded"
    configured.publish("clicks", numbered(10, start=10))
    assert selected(fire(instance)) == [{"clicks"}]


def test_without_known_topics_the_schedule_skips_and_names_the_sensor(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    assert configured.settings.exists()
    tick_data = fire(instance)
    assert not tick_data.run_requests
    assert "new_topics" in tick_data.skip_message


def test_many_topics_are_split_into_runs_without_idle_topics(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.configure("topics_per_run = 2")
    for name in ("b", "c", "f"):
        configured.publish(name, numbered(4))
    storage_of(instance).add(["a", "b", "c", "d", "e", "f"])
    runs = selected(fire(instance))
    assert sorted(map(len, runs)) == [1, 2]
    assert set().union(*runs) == {"b", "c", "f"}


@pytest.mark.parametrize(
    ("name", "chosen"),
    [(LOAD, "a b"), ("backfill__main__topics", "a b"), ("__ASSET_JOB", "a b"), (LOAD, "")],
)
def test_a_topic_of_an_unfinished_run_is_not_requested_again(
    instance: dg.DagsterInstance, configured: LiveCluster, name: str, chosen: str
) -> None:
    for topic in ("a", "b", "c"):
        configured.publish(topic, numbered(4))
    storage_of(instance).add(["a", "b", "c"])
    job = defs_of("a", "b", "c").resolve_job_def(name)
    keys = frozenset(map(key, chosen.split())) or None
    under_way = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, asset_selection=keys)
    if keys:
        assert selected(fire(instance)) == [{"c"}]
    else:
        assert fire(instance).skip_message == "nothing new in 3 topics; 3 are being loaded"
    instance.report_run_canceled(under_way)
    assert selected(fire(instance)) == [{"a", "b", "c"}]


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("failed_for_h", "hours_ago", "expected"),
    [(0, 0, False), (1, 0.5, True), (1, 1.5, False), (100, 5, True), (100, 7, False)],
    ids=["first failure", "as long as it fails", "next attempt", "at most six hours", "after six hours"],
)
def test_a_topic_that_fails_again_and_again_is_tried_less_often(
    failed_for_h: float, hours_ago: float, expected: bool
) -> None:
    now = 1_800_000_000_000
    failed_ms = now - int(hours_ago * HOUR_MS)
    error = LastError(run="", time_ms=failed_ms, since_ms=failed_ms - int(failed_for_h * HOUR_MS), failures=(), count=1)
    status = TopicStatus(cluster="main", topic="clicks", incarnation="1", table="/t", last_error=error)
    assert rests(status, now) is expected


@pytest.mark.parametrize(("share", "priority"), [(0.05, "20"), (0.2, "10"), (0.9, None), (None, None)])
def test_a_run_that_is_about_to_lose_records_has_priority(
    instance: dg.DagsterInstance,
    configured: LiveCluster,
    monkeypatch: pytest.MonkeyPatch,
    share: float | None,
    priority: str | None,
) -> None:
    configured.publish("clicks", numbered(4))
    storage_of(instance).add(["clicks"])
    monkeypatch.setattr(TopicStatus, "left_share", lambda _one, _now: share)
    (request,) = fire(instance).run_requests
    assert request.tags.get("dagster/priority") == priority


def test_two_ticks_use_two_run_keys(instance: dg.DagsterInstance, configured: LiveCluster) -> None:  # fault O02
    configured.publish("clicks", numbered(4))
    storage_of(instance).add(["clicks"])
    (first_request,), (second_request,) = fire(instance).run_requests, fire(instance).run_requests
    assert first_request.run_key != second_request.run_key


# fault F17
def test_a_run_watches_topics_only_if_there_is_something_to_report(
    instance: dg.DagsterInstance, configured: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch() -> tuple[int, str]:
        tick_data = fire(instance, "watch__main__topics")
        return len(tick_data.run_requests or ()), tick_data.skip_message or ""

    nothing = (0, "nothing new to report; topics: 1")
    configured.publish("clicks", numbered(4))
    assert run(instance, ["clicks"]).success
    assert watch() == (1, "")
    job(instance, "watch")
    assert watch() == nothing
    configured.publish("clicks", numbered(4, start=4))
    assert watch() == (1, "")
    assert observed(job(instance, "watch"))["clicks"]["lag"] > 0
    assert watch() == nothing  # the lag was reported less than an hour ago
    assert observed(job(instance, "watch")) == {}
    monkeypatch.setattr(check_runs, "_OBSERVE_AFTER_S", 0.0)
    assert watch() == (1, "")


# fault F17
def test_many_topics_are_watched_in_a_run_because_a_tick_may_take_a_minute_at_most(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object) -> Any:
        raise AssertionError("the tick looks itself")

    monkeypatch.setattr(schedules, "_MAX_WATCHED", 1)
    monkeypatch.setattr(check_runs.CheckRun, "news", look)
    storage_of(instance).add(["a", "b"])
    assert len(fire(instance, "watch__main__topics").run_requests) == 1
