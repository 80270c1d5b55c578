"""The sensor: what it asks for, from registries that say what the test says, and from a real one."""

from pathlib import Path

import dagster as dg
import pytest

from pipelines.partitions import NAME, RANGE_END, RANGE_START
from pipelines.sensors import MOST_PER_RUN, MOST_PER_TICK
from resources.penstock import PenstockResource
from resources.settings import SettingsError
from tests.live import LiveCluster, numbered
from tests.pipelines.declared import FixedTopics, added, tick


def accept(instance: dg.DagsterInstance, keys: list[str]) -> None:
    instance.add_dynamic_partitions(NAME, keys)


def test_new_topics_become_partitions_and_one_run(instance: dg.DagsterInstance) -> None:
    found = tick(instance, FixedTopics(clusters={"main": ["clicks", "views"]}))
    assert added(found) == ["main/clicks", "main/views"]
    (request,) = found.run_requests
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("main/clicks", "main/views")


def test_known_topics_are_skipped_with_a_message(instance: dg.DagsterInstance) -> None:
    accept(instance, ["main/clicks"])
    found = tick(instance, FixedTopics(clusters={"main": ["clicks"]}))
    assert not found.run_requests
    assert not added(found)
    assert found.skip_message == "no new topic; topics in the registries: 1"


def test_topics_of_the_same_name_in_two_clusters_are_two(instance: dg.DagsterInstance) -> None:
    found = tick(instance, FixedTopics(clusters={"main": ["clicks"], "old": ["clicks"]}))
    assert added(found) == ["main/clicks", "old/clicks"]


def test_a_registry_without_an_answer_is_an_error(instance: dg.DagsterInstance) -> None:
    with pytest.raises(dg.Failure) as caught:
        tick(instance, FixedTopics(clusters={"main": ["clicks"]}, silent=["main"]))
    assert caught.value.description == "no answer from main: no ZooKeeper answers [cluster=main]"


def test_other_clusters_go_on_when_one_is_silent(instance: dg.DagsterInstance) -> None:
    penstock = FixedTopics(clusters={"main": ["clicks"], "old": ["views"]}, silent=["main"])
    found = tick(instance, penstock)
    assert added(found) == ["old/views"]
    accept(instance, added(found))
    with pytest.raises(dg.Failure):
        tick(instance, penstock)


def test_a_topic_without_a_living_broker_waits(instance: dg.DagsterInstance) -> None:  # Z07
    clusters = {"main": ["clicks", "views"]}
    assert added(tick(instance, FixedTopics(clusters=clusters, pending=["views"]))) == ["main/clicks"]
    accept(instance, ["main/clicks"])
    assert added(tick(instance, FixedTopics(clusters=clusters))) == ["main/views"]


def test_many_topics_are_taken_by_pages_and_none_twice(instance: dg.DagsterInstance) -> None:  # O07
    names = [f"topic-{number:05}" for number in range(2 * MOST_PER_TICK + 1)]
    penstock = FixedTopics(clusters={"main": names})
    pages, runs = [], []
    while added(found := tick(instance, penstock)):
        accept(instance, added(found))
        pages.append(len(added(found)))
        runs += [(request.tags[RANGE_START], request.tags[RANGE_END]) for request in found.run_requests]
    assert pages == [MOST_PER_TICK, MOST_PER_TICK, 1]
    keys = [f"main/{name}" for name in names]
    assert runs == [(keys[at], keys[min(at + MOST_PER_RUN, len(keys)) - 1]) for at in range(0, len(keys), MOST_PER_RUN)]


def test_a_repeated_tick_asks_under_the_same_run_key(instance: dg.DagsterInstance) -> None:  # O01
    penstock = FixedTopics(clusters={"main": ["clicks", "views"]})
    first, again = tick(instance, penstock), tick(instance, penstock)
    assert [one.run_key for one in first.run_requests] == [one.run_key for one in again.run_requests]


@pytest.mark.parametrize("names", [["clicks"], ["a", "clicks", "z"]])
def test_a_topic_made_anew_is_asked_for_under_another_run_key(instance: dg.DagsterInstance, names: list[str]) -> None:
    # O02
    keys = set()
    for incarnation in ("1", "2"):
        (request,) = tick(instance, FixedTopics(clusters={"main": names}, incarnation=incarnation)).run_requests
        keys.add(request.run_key)
    assert len(keys) == 2


def test_a_topic_that_vanished_leaves_its_partition_alone(instance: dg.DagsterInstance) -> None:
    accept(instance, ["main/clicks"])
    found = tick(instance, FixedTopics(clusters={"main": []}))
    assert not found.dynamic_partitions_requests
    assert list(instance.get_dynamic_partitions(NAME)) == ["main/clicks"]


def test_names_that_look_alike_are_topics_of_their_own(instance: dg.DagsterInstance) -> None:  # O06
    names = ["a.b", "a-b", "A", "a", "a...b", "x" * 249, "X" * 249]
    keys = added(tick(instance, FixedTopics(clusters={"main": names})))
    assert len({key.lower() for key in keys}) == len(names)
    accept(instance, keys)
    assert not added(tick(instance, FixedTopics(clusters={"main": names})))


def test_missing_settings_are_one_sentence_at_the_tick(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no settings file"):
        tick(instance, PenstockResource(settings_file=str(tmp_path / "none.toml")))


@pytest.mark.zookeeper
def test_topics_published_to_a_live_cluster_are_found_once(instance: dg.DagsterInstance, live: LiveCluster) -> None:
    live.configure("topics = { deny = ['.*_test'] }")
    penstock = PenstockResource(settings_file=str(live.settings))
    assert tick(instance, penstock).skip_message == "no new topic; topics in the registries: 0"
    for name in ("clicks", "Clicks", "clicks_test"):
        live.publish(name, numbered(4))
    found = tick(instance, penstock)
    assert added(found) == ["main/~43licks", "main/clicks"]
    accept(instance, added(found))
    assert tick(instance, penstock).skip_message == "no new topic; topics in the registries: 2"
