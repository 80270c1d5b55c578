"""The sensor adds new topics and requests runs, for fixed topics of the test and for a live ZooKeeper."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.catalog.catalog import pool_of, watch_pool_of
from pipelines.defs.catalog.known_topics import Waiting
from pipelines.defs.runs.run import SINCE_TAG
from resources.penstock import PenstockResource
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import LOAD, FixedTopics, defs_of, key, known, storage_of, tick, waiting

POOLS = (pool_of("main"), watch_pool_of("main"))
NO_CODE_SERVER = "reload the code location"


def ticks(instance: dg.DagsterInstance, penstock: PenstockResource, count: int = 2) -> list[Any]:
    """Evaluate ticks one after the other."""
    results: list[Any] = []
    for _ in range(count):
        results.append(tick(instance, penstock, results[-1].cursor if results else None))
    return results


def selected(tick_data: Any) -> list[list[str]]:
    """The topics of the runs that a tick requests."""
    return [[asset.path[-1] for asset in request.asset_selection] for request in tick_data.run_requests or []]


def test_a_new_topic_is_known_at_once_and_loaded_when_its_asset_is(instance: dg.DagsterInstance) -> None:
    first, second = ticks(instance, FixedTopics(clusters={"main": ["clicks", "views"]}))
    assert first.skip_message == f"new topics: 2; {NO_CODE_SERVER}"
    assert known(instance) == ["clicks", "views"]
    (request,) = second.run_requests
    assert request.job_name == LOAD
    assert request.asset_selection == [key("clicks"), key("views")]
    assert request.tags["topics"] == "clicks, views"


def test_no_run_is_requested_of_an_asset_that_this_process_does_not_have(instance: dg.DagsterInstance) -> None:
    """Dagster would fail the whole tick, again and again."""
    penstock = FixedTopics(clusters={"main": ["clicks"]})
    assert not tick(instance, penstock).run_requests
    defs = defs_of(settings=penstock.settings(), source=penstock)  # the daemon has not loaded the definitions again
    with dg.build_sensor_context(instance=instance, definitions=defs) as context:
        assert not defs.resolve_sensor_def("new_topics__main").evaluate_tick(context).run_requests
    assert waiting(instance) == ["clicks"]


def test_a_topic_is_requested_only_once(instance: dg.DagsterInstance) -> None:
    *_, third, fourth = ticks(instance, FixedTopics(clusters={"main": ["clicks"]}), 4)
    for later in (third, fourth):
        assert not later.run_requests
        assert later.skip_message == "no new topic; topics in the cluster: 1"
    assert waiting(instance) == []


def test_every_topic_is_requested_again_if_the_storage_of_dagster_is_lost(instance: dg.DagsterInstance) -> None:
    """Its load continues from the table, which no storage of Dagster knows."""  # fault O08
    penstock = FixedTopics(clusters={"main": ["clicks"]})
    ticks(instance, penstock)
    with dg.DagsterInstance.ephemeral() as empty:
        _, second = ticks(empty, penstock)
        assert known(empty) == ["clicks"]
    assert selected(second) == [["clicks"]]


def test_a_change_in_zookeeper_ends_the_wait_of_a_tick(instance: dg.DagsterInstance) -> None:  # fault Z02
    storage_of(instance).add(["clicks"])
    tick_result = tick(instance, FixedTopics(clusters={"main": ["clicks"]}, later=["views"]))
    assert tick_result.skip_message == f"new topics: 1; {NO_CODE_SERVER}"


def test_each_topic_goes_to_the_first_schedule_that_takes_it(instance: dg.DagsterInstance) -> None:
    penstock = FixedTopics(
        clusters={"main": ["bill", "bill.log", "clicks"]}, scheduled={"billing": "bill.*", "logs": ".*log"}
    )
    _, second = ticks(instance, penstock)
    requested = {
        request.job_name: [asset.path[-1] for asset in request.asset_selection] for request in second.run_requests
    }
    assert requested == {"load__main__billing": ["bill", "bill.log"], LOAD: ["clicks"]}


def test_a_zookeeper_that_does_not_answer_fails_only_its_own_sensor(instance: dg.DagsterInstance) -> None:
    penstock = FixedTopics(clusters={"main": ["clicks"], "old": ["views"]}, silent=["main"])
    with pytest.raises(Exception, match="no ZooKeeper answers"):
        tick(instance, penstock)
    assert "new topics: 1" in tick(instance, penstock, cluster="old").skip_message


def test_a_topic_without_a_living_broker_is_added_later(instance: dg.DagsterInstance) -> None:  # fault Z07
    clusters = {"main": ["clicks", "views"]}
    ticks(instance, FixedTopics(clusters=clusters, pending=["views"]))
    assert known(instance) == ["clicks"]
    ticks(instance, FixedTopics(clusters=clusters))
    assert known(instance) == ["clicks", "views"]


def test_a_topic_that_is_deleted_before_its_run_is_not_requested(instance: dg.DagsterInstance) -> None:  # fault O07
    first = tick(instance, FixedTopics(clusters={"main": ["flapping"]}))
    assert not tick(instance, FixedTopics(clusters={"main": []}), first.cursor).run_requests
    assert waiting(instance) == []


@pytest.mark.slow
def test_many_topics_are_added_over_several_ticks_and_none_twice(instance: dg.DagsterInstance) -> None:  # fault O07
    names = [f"topic-{number:05}" for number in range(21)]
    results = ticks(instance, FixedTopics(clusters={"main": names}, per_tick=10, per_run=4), 5)
    assert results[0].skip_message == f"new topics: 10, and 11 more after them; {NO_CODE_SERVER}"
    pages = [names[:10], names[10:20], names[20:]]
    assert [run for result in results for run in selected(result)] == [
        page[start : start + 4] for page in pages for start in range(0, len(page), 4)
    ]
    assert known(instance) == names


def test_a_repeated_tick_uses_the_same_run_key(instance: dg.DagsterInstance) -> None:  # fault O01
    penstock = FixedTopics(clusters={"main": ["clicks", "views"]})
    noted = tick(instance, penstock).cursor
    (before,) = tick(instance, penstock, noted).run_requests
    (after,) = tick(instance, penstock, noted).run_requests  # the daemon died before it stored the cursor
    assert before.run_key == after.run_key
    assert len(f"run_key: {before.run_key}") <= 60  # Dagster cuts off the tag if it is longer (fault F17)


@pytest.mark.parametrize("names", [["clicks"], ["a", "clicks", "z"]])
def test_a_recreated_topic_is_requested_with_another_run_key(instance: dg.DagsterInstance, names: list[str]) -> None:
    # fault O02
    noted = tick(instance, FixedTopics(clusters={"main": names})).cursor
    keys = set()
    for incarnation in ("1", "2"):
        (request,) = tick(instance, FixedTopics(clusters={"main": names}, incarnation=incarnation), noted).run_requests
        keys.add(request.run_key)
    assert len(keys) == 2


@pytest.mark.slow
def test_a_topic_that_a_user_removed_is_added_again_with_another_run(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault O02
    penstock = FixedTopics(clusters={"main": ["clicks"]})
    *_, first, _ = ticks(instance, penstock, 3)
    instance.delete_dynamic_partition("penstock/main", "clicks")
    monkeypatch.setattr("pipelines.defs.sensors.new_topics.now_text", lambda: "2031-01-31T12:00:00+00:00")
    *_, second, _ = ticks(instance, penstock, 3)
    (before,), (after,) = first.run_requests, second.run_requests
    assert before.run_key != after.run_key


@pytest.mark.parametrize("cursor", ["", "17", "{", '{"at": "now", "topics": {"clicks": "1"}}', '"clicks"'])
def test_an_unreadable_cursor_or_that_of_an_older_version_is_an_empty_one(
    instance: dg.DagsterInstance, cursor: str
) -> None:
    tick_result = tick(instance, FixedTopics(clusters={"main": ["clicks"]}), cursor)
    assert "new topics: 1" in tick_result.skip_message


def test_a_deleted_topic_keeps_its_asset_and_is_marked(instance: dg.DagsterInstance) -> None:
    storage_of(instance).add(["clicks", "views"])
    tick_result = tick(instance, FixedTopics(clusters={"main": ["views"]}))
    assert tick_result.skip_message == NO_CODE_SERVER
    assert storage_of(instance).known().deleted == {"clicks"}
    defs = defs_of("clicks", "views", deleted=["clicks"])
    tags = {
        topic: defs.resolve_asset_graph().get(key(topic)).tags.get("penstock/state") for topic in ("clicks", "views")
    }
    assert tags == {"clicks": "gone", "views": None}
    tick(instance, FixedTopics(clusters={"main": ["views", "clicks"]}))
    assert storage_of(instance).known().deleted == set()


def test_a_topic_that_the_cluster_cannot_describe_now_is_not_marked(instance: dg.DagsterInstance) -> None:
    storage_of(instance).add(["clicks", "views"])  # fault A13
    tick(instance, FixedTopics(clusters={"main": ["clicks", "views"]}, refused=["clicks"]))
    assert storage_of(instance).known().deleted == set()


def test_a_topic_that_is_no_longer_allowed_keeps_its_asset_and_is_marked(instance: dg.DagsterInstance) -> None:
    storage_of(instance).add(["clicks"])
    penstock = FixedTopics(clusters={"main": ["clicks"]}, denied="clicks")
    tick(instance, penstock)
    defs = defs_of("clicks", settings=penstock.settings())
    assert defs.resolve_asset_graph().get(key("clicks")).tags["penstock/state"] == "not_allowed"


def test_topics_that_a_large_run_left_are_requested_with_its_config(instance: dg.DagsterInstance) -> None:
    names = ["a", "b", "c"]
    storage_of(instance).add(names)
    config = {"ops": {"penstock_load__main__topics": {"config": {"on_expired": "skip"}}}}
    job = defs_of(*names).resolve_job_def(LOAD)
    large = instance.create_run_for_job(job, run_config=config, tags={SINCE_TAG: "-2h"})
    storage_of(instance).wait([str(Waiting(since="run", run_id=large.run_id, topic=name)) for name in names])
    tick_result = tick(instance, FixedTopics(clusters={"main": names}, per_run=2))
    assert selected(tick_result) == [["a", "b"], ["c"]]
    assert [request.run_config for request in tick_result.run_requests] == [config, config]
    assert [request.tags[SINCE_TAG] for request in tick_result.run_requests] == ["-2h", "-2h"]


def test_similar_names_are_different_topics(instance: dg.DagsterInstance) -> None:  # fault O06
    names = ["a.b", "a-b", "A", "a", "a...b", "x" * 249, "X" * 249]
    *_, second, third = ticks(instance, FixedTopics(clusters={"main": names}), 3)
    assert {name for run in selected(second) for name in run} == set(names)
    assert third.skip_message == "no new topic; topics in the cluster: 7"


@pytest.mark.zookeeper
def test_topics_of_a_live_cluster_are_found_once(instance: dg.DagsterInstance, live: LiveCluster) -> None:
    live.configure("topics = { deny = ['.*_test'] }")
    penstock = PenstockResource(settings_file=str(live.settings))
    for name in ("clicks", "Clicks", "clicks_test"):
        live.publish(name, numbered(4))
    _, second = ticks(instance, penstock)
    assert selected(second) == [["Clicks", "clicks"]]


@pytest.mark.zookeeper
def test_a_live_cluster_ends_the_wait_of_a_tick(live: LiveCluster) -> None:  # fault Z02
    penstock = PenstockResource(settings_file=str(live.settings))
    live.publish("views", numbered(1))  # the first topic creates the watched node
    with penstock.topic_changes("main") as changed:
        assert not changed(0.1)
        live.publish("clicks", numbered(1))
        assert changed(30)


@pytest.mark.slow
def test_the_pools_exist_before_the_first_run_and_keep_a_limit_of_the_user(tmp_path: Path) -> None:
    def pools() -> dict[str, int]:
        return {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}

    overrides = {"telemetry": {"enabled": False}, "concurrency": {"pools": {"default_limit": 2}}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        ticks(instance, FixedTopics(clusters={"main": ["clicks"]}))
        assert pools() == dict.fromkeys(POOLS, 2)
        instance.event_log_storage.set_concurrency_slots(POOLS[0], 7)
        ticks(instance, FixedTopics(clusters={"main": ["clicks", "views"]}))
        assert pools() == {POOLS[0]: 7, POOLS[1]: 2}
