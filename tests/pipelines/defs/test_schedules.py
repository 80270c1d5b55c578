"""The schedules request runs for topics with new records. Topics whose records are lost first have priority."""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.partitions import RANGE_END, RANGE_START, run_tags
from pipelines.status.status import TopicStatus
from resources.penstock import PenstockResource
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import DEFS, GROUP, know, run

pytestmark = pytest.mark.zookeeper


def fire(instance: dg.DagsterInstance) -> Any:
    resources = {"penstock": PenstockResource()}
    schedule = DEFS.resolve_schedule_def("load__main__topics")
    with dg.build_schedule_context(
        instance=instance, resources=resources, scheduled_execution_time=datetime.now(UTC)
    ) as context:
        return schedule.evaluate_tick(context)


def ranges(tick_data: Any) -> list[tuple[str, str]]:
    return [(request.tags[RANGE_START], request.tags[RANGE_END]) for request in tick_data.run_requests]


def test_topics_with_something_new_are_loaded_in_one_run(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    know(instance, "views", "clicks")
    assert ranges(fire(instance)) == [("views", "clicks")]
    assert run(instance, ["views", "clicks"]).success
    assert fire(instance).skip_message == "nothing new in 2 topics; 0 are being loaded"
    configured.publish("clicks", numbered(10, start=10))
    assert ranges(fire(instance)) == [("clicks", "clicks")]


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
    know(instance, "a", "b", "c", "d", "e", "f")
    assert ranges(fire(instance)) == [("b", "c"), ("f", "f")]


@pytest.mark.parametrize(
    ("name", "selected"),
    [("load__main__topics", None), ("backfill__main__topics", None), ("__ASSET_JOB", frozenset({GROUP.tables}))],
)
def test_a_topic_of_an_unfinished_run_is_not_requested_again(
    instance: dg.DagsterInstance, configured: LiveCluster, name: str, selected: frozenset[dg.AssetKey] | None
) -> None:
    for topic in ("a", "b", "c"):
        configured.publish(topic, numbered(4))
    know(instance, "a", "b", "c")
    job = DEFS.resolve_job_def(name)
    under_way = instance.create_run_for_job(
        job, tags=run_tags(["a", "b"]), status=dg.DagsterRunStatus.STARTED, asset_selection=selected
    )
    assert ranges(fire(instance)) == [("c", "c")]
    instance.report_run_canceled(under_way)
    assert ranges(fire(instance)) == [("a", "c")]


@pytest.mark.parametrize(("share", "priority"), [(0.05, "20"), (0.2, "10"), (0.9, None), (None, None)])
def test_a_run_that_is_about_to_lose_records_has_priority(
    instance: dg.DagsterInstance,
    configured: LiveCluster,
    monkeypatch: pytest.MonkeyPatch,
    share: float | None,
    priority: str | None,
) -> None:
    configured.publish("clicks", numbered(4))
    know(instance, "clicks")
    monkeypatch.setattr(TopicStatus, "left_share", lambda _one, _now: share)
    (request,) = fire(instance).run_requests
    assert request.tags.get("dagster/priority") == priority


def test_two_ticks_use_two_run_keys(instance: dg.DagsterInstance, configured: LiveCluster) -> None:  # fault O02
    configured.publish("clicks", numbered(4))
    know(instance, "clicks")
    (first_request,), (second_request,) = fire(instance).run_requests, fire(instance).run_requests
    assert first_request.run_key != second_request.run_key
