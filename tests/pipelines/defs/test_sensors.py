"""The sensor requests partitions and runs, for fixed topics of the test and for a live registry."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.partitions import RANGE_END, RANGE_START
from pipelines.defs.topic_group import pool_of
from resources.penstock import PenstockResource
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import GROUP, FixedTopics, accept, added, know, tick

POOL = pool_of(GROUP.cluster)


def ticks(instance: dg.DagsterInstance, penstock: PenstockResource, count: int = 2) -> list[Any]:
    """Evaluate ticks one after the other, and add the requested partitions as the daemon does."""
    results: list[Any] = []
    for _ in range(count):
        results.append(tick(instance, penstock, results[-1].cursor if results else None))
        accept(instance, results[-1])
    return results


def test_a_new_topic_is_noted_then_added_and_loaded(instance: dg.DagsterInstance) -> None:
    first, second = ticks(instance, FixedTopics(clusters={"main": ["clicks", "views"]}))
    assert first.skip_message == "new topics seen: 2; the next tick adds and loads them"
    assert not added(first)
    assert added(second) == ["clicks", "views"]
    (request,) = second.run_requests
    assert request.job_name == "load__main__topics"
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("clicks", "views")


def test_a_topic_is_requested_only_once(instance: dg.DagsterInstance) -> None:
    *_, third, fourth = ticks(instance, FixedTopics(clusters={"main": ["clicks"]}), 4)
    for later in (third, fourth):
        assert not later.run_requests
        assert not added(later)
        assert later.skip_message == "no new topic; topics in the cluster: 1"


def test_every_topic_is_requested_again_if_the_storage_of_dagster_is_lost(instance: dg.DagsterInstance) -> None:
    """Its load continues from the table, which no storage of Dagster knows."""  # fault O08
    penstock = FixedTopics(clusters={"main": ["clicks"]})
    ticks(instance, penstock)
    with dg.DagsterInstance.ephemeral() as empty:
        _, second = ticks(empty, penstock)
    assert added(second) == ["clicks"]
    assert [request.job_name for request in second.run_requests] == ["load__main__topics"]


def test_a_change_in_the_registry_ends_the_wait_of_a_tick(instance: dg.DagsterInstance) -> None:  # fault Z02
    know(instance, "clicks")
    tick_result = tick(instance, FixedTopics(clusters={"main": ["clicks"]}, later=["views"]))
    assert tick_result.skip_message == "new topics seen: 1; the next tick adds and loads them"


def test_each_topic_goes_to_the_first_group_that_takes_it(instance: dg.DagsterInstance) -> None:
    penstock = FixedTopics(
        clusters={"main": ["bill", "bill.log", "clicks"]}, grouped={"billing": "bill.*", "logs": ".*log"}
    )
    _, second = ticks(instance, penstock)
    requested = {request.job_name: request.tags[RANGE_END] for request in second.run_requests}
    assert requested == {"load__main__billing": "bill.log", "load__main__topics": "clicks"}
    assert list(instance.get_dynamic_partitions("main/billing")) == ["bill", "bill.log"]
    assert list(instance.get_dynamic_partitions("main/logs")) == []


def test_a_registry_that_does_not_answer_fails_only_its_own_sensor(instance: dg.DagsterInstance) -> None:
    penstock = FixedTopics(clusters={"main": ["clicks"], "old": ["views"]}, silent=["main"])
    with pytest.raises(Exception, match="no ZooKeeper answers"):
        tick(instance, penstock)
    assert "new topics seen: 1" in tick(instance, penstock, cluster="old").skip_message


def test_a_topic_without_a_living_broker_is_added_later(instance: dg.DagsterInstance) -> None:  # fault Z07
    clusters = {"main": ["clicks", "views"]}
    _, second = ticks(instance, FixedTopics(clusters=clusters, pending=["views"]))
    assert added(second) == ["clicks"]
    _, fourth = ticks(instance, FixedTopics(clusters=clusters))
    assert added(fourth) == ["views"]


def test_a_topic_that_is_deleted_before_the_next_tick_is_not_added(instance: dg.DagsterInstance) -> None:  # fault O07
    first = tick(instance, FixedTopics(clusters={"main": ["flapping"]}))
    second = tick(instance, FixedTopics(clusters={"main": []}), first.cursor)
    assert not added(second)
    assert not second.run_requests


def test_many_topics_are_added_over_several_ticks_and_none_twice(instance: dg.DagsterInstance) -> None:  # fault O07
    names = [f"topic-{number:05}" for number in range(21)]
    results = ticks(instance, FixedTopics(clusters={"main": names}, per_tick=10, per_run=4), 5)
    assert [len(added(result)) for result in results] == [0, 10, 10, 1, 0]
    assert results[0].skip_message == "new topics seen: 10, and 11 more after them; the next tick adds and loads them"
    requested = [
        (request.tags[RANGE_START], request.tags[RANGE_END])
        for result in results
        for request in result.run_requests or []
    ]
    pages = [names[:10], names[10:20], names[20:]]
    parts = [page[start : start + 4] for page in pages for start in range(0, len(page), 4)]
    assert requested == [(part[0], part[-1]) for part in parts]
    assert list(instance.get_dynamic_partitions(GROUP.partitions_name)) == names


def test_a_repeated_tick_uses_the_same_run_key(instance: dg.DagsterInstance) -> None:  # fault O01
    penstock = FixedTopics(clusters={"main": ["clicks", "views"]})
    noted = tick(instance, penstock).cursor
    first = tick(instance, penstock, noted)
    accept(instance, first)  # then the daemon dies before it starts the run or stores the cursor
    (before,), (after,) = first.run_requests, tick(instance, penstock, noted).run_requests
    assert before.run_key == after.run_key


@pytest.mark.parametrize("names", [["clicks"], ["a", "clicks", "z"]])
def test_a_recreated_topic_is_requested_with_another_run_key(instance: dg.DagsterInstance, names: list[str]) -> None:
    # fault O02
    penstock = FixedTopics(clusters={"main": names})
    noted = tick(instance, penstock).cursor
    keys = set()
    for incarnation in ("1", "2"):
        (request,) = tick(instance, FixedTopics(clusters={"main": names}, incarnation=incarnation), noted).run_requests
        keys.add(request.run_key)
    assert len(keys) == 2


def test_a_removed_partition_is_added_again_with_another_run(
    instance: dg.DagsterInstance,
) -> None:  # fault O02
    penstock = FixedTopics(clusters={"main": ["clicks"]})
    _, first = ticks(instance, penstock)
    instance.delete_dynamic_partition(GROUP.partitions_name, "clicks")
    _, second = ticks(instance, penstock)
    (before,), (after,) = first.run_requests, second.run_requests
    assert before.run_key != after.run_key


def test_a_cursor_that_an_older_version_stored_is_continued(instance: dg.DagsterInstance) -> None:
    cursor = '{"at": "2026-01-31T12:00:00+00:00", "topics": {"clicks": "1"}}'  # as json.dumps writes it
    tick_result = tick(instance, FixedTopics(clusters={"main": ["clicks"]}), cursor)
    assert added(tick_result) == ["clicks"]
    (request,) = tick_result.run_requests
    assert "2026-01-31T12:00:00+00:00" in request.run_key


@pytest.mark.parametrize("cursor", ["", "17", "{", '{"at": "now", "topics": ["clicks"]}', '"clicks"'])
def test_an_unreadable_cursor_is_an_empty_one(instance: dg.DagsterInstance, cursor: str) -> None:
    tick_result = tick(instance, FixedTopics(clusters={"main": ["clicks"]}), cursor)
    assert not added(tick_result)
    assert "new topics seen: 1" in tick_result.skip_message


def test_a_deleted_topic_keeps_its_partition(instance: dg.DagsterInstance) -> None:
    know(instance, "clicks")
    tick_result = tick(instance, FixedTopics(clusters={"main": []}))
    assert not tick_result.dynamic_partitions_requests
    assert list(instance.get_dynamic_partitions(GROUP.partitions_name)) == ["clicks"]


def test_similar_names_are_different_topics(instance: dg.DagsterInstance) -> None:  # fault O06
    names = ["a.b", "a-b", "A", "a", "a...b", "x" * 249, "X" * 249]
    *_, second, third = ticks(instance, FixedTopics(clusters={"main": names}), 3)
    assert len({key.lower() for key in added(second)}) == len(names)
    assert third.skip_message == "no new topic; topics in the cluster: 7"


@pytest.mark.zookeeper
def test_topics_of_a_live_cluster_are_found_once(instance: dg.DagsterInstance, live: LiveCluster) -> None:
    live.configure("topics = { deny = ['.*_test'] }")
    penstock = PenstockResource(settings_file=str(live.settings))
    for name in ("clicks", "Clicks", "clicks_test"):
        live.publish(name, numbered(4))
    _, second = ticks(instance, penstock)
    assert added(second) == ["~43licks", "clicks"]


@pytest.mark.zookeeper
def test_a_live_cluster_ends_the_wait_of_a_tick(live: LiveCluster) -> None:  # fault Z02
    penstock = PenstockResource(settings_file=str(live.settings))
    live.publish("views", numbered(1))  # the first topic creates the watched node
    with penstock.topic_changes("main") as changed:
        assert not changed(0.1)
        live.publish("clicks", numbered(1))
        assert changed(30)


def test_the_pool_exists_before_the_first_run_and_keeps_a_limit_of_the_user(tmp_path: Path) -> None:
    def pools() -> dict[str, int]:
        return {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}

    overrides = {"telemetry": {"enabled": False}, "concurrency": {"pools": {"default_limit": 2}}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        ticks(instance, FixedTopics(clusters={"main": ["clicks"]}))
        assert pools() == {POOL: 2}
        instance.event_log_storage.set_concurrency_slots(POOL, 7)
        ticks(instance, FixedTopics(clusters={"main": ["clicks", "views"]}))
        assert pools() == {POOL: 7}
