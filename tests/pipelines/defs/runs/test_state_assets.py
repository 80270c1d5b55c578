"""The assets of state tables: only for topics that ask for one, and updated in real runs of Dagster."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value

from pipelines.defs import build
from pipelines.defs.build import definitions_of
from pipelines.defs.runs.state_assets import state_key
from resources.penstock import PenstockResource
from resources.settings.schedules import ScheduleSettings
from resources.settings.settings import Alerts, ClusterSettings, Settings
from tests.pipelines.defs.declared import catalog, key
from tests.pipelines.increments.keyed_tables import KeyedHistory
from tests.pipelines.reports.test_lineage import events_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

CLUSTERS = {"main": ClusterSettings(zookeeper="z:2181"), "new": ClusterSettings(bootstrap="b:9092")}
BASE = {
    "lake": "/nowhere",
    "clusters": CLUSTERS,
    "schedules": {"billing": ScheduleSettings(topics=("bill.*",), cron="*/5 * * * *")},
    "alerts": Alerts(command=("true",)),
}
TOPICS = ("clicks", "views", "bill.a")
STATE = {"topics": {"clicks": {"state": {"key": "key"}}}}


def settings_with(sections: Mapping[str, Any]) -> Settings:
    return Settings.model_validate({**BASE, **sections})


def repository_of(settings: Settings, *topics: str) -> dg.RepositoryDefinition:
    return definitions_of(catalog(*topics, settings=settings)).get_repository_def()


def snapshot_of(repository: dg.RepositoryDefinition) -> str:
    """Everything that Dagster knows of definitions: assets, checks, jobs, schedules, sensors and pools."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # Dagster reads its own old fields
        return serialize_value(RepositorySnap.from_def(repository))


@pytest.mark.parametrize("topics", [(), TOPICS])
def test_without_a_state_table_nothing_is_defined_for_one(
    topics: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definitions are the same as without the code of state tables, to the last field."""
    present = snapshot_of(repository_of(settings_with({}), *topics))
    monkeypatch.setattr(build, "state_assets", lambda _: ())
    without = snapshot_of(repository_of(settings_with({}), *topics))
    assert present == without
    monkeypatch.undo()
    assert not topics or snapshot_of(repository_of(settings_with(STATE), *topics)) != without


def test_a_state_table_changes_nothing_of_the_other_definitions() -> None:
    plain, with_state = (repository_of(settings_with(sections), *TOPICS) for sections in ({}, STATE))
    for repositories in (plain, with_state):
        assert repositories.schedule_defs
    assert {schedule.name for schedule in plain.schedule_defs} == {
        schedule.name for schedule in with_state.schedule_defs
    }
    added = {sensor.name for sensor in with_state.sensor_defs} - {sensor.name for sensor in plain.sensor_defs}
    assert added <= {"default_automation_condition_sensor"}
    own = [job.name for job in plain.get_all_jobs() if not job.name.startswith("__")]
    for name in own:
        before, after = plain.get_job(name), with_state.get_job(name)
        assert set(before.asset_layer.executable_asset_keys) == set(after.asset_layer.executable_asset_keys), name
        assert [node.name for node in before.nodes] == [node.name for node in after.nodes], name
    graphs = [repository.asset_graph for repository in (plain, with_state)]
    new = graphs[1].get_all_asset_keys() - graphs[0].get_all_asset_keys()
    assert new == {state_key(key("clicks", cluster)) for cluster in CLUSTERS}
    assert graphs[1].get(state_key(key("clicks"))).parent_keys == {key("clicks")}


@pytest.fixture
def history(tmp_path: Path) -> KeyedHistory:
    history = KeyedHistory(tmp_path / "lake", Random(1))
    history.load(("a", "1"), ("a", "2"))
    return history


def run(
    history: KeyedHistory, instance: dg.DagsterInstance, topics: Mapping[str, Any], **sections: Any
) -> dg.ExecuteInProcessResult:
    """Run the asset of the state table of the topic."""
    settings = {"lake": history.lake.root, "clusters": {"main": {"bootstrap": "127.0.0.1:1"}}, "topics": topics}
    settings |= sections
    source = PenstockResource(inline=Settings.of(settings, folder=Path("/")))
    own = catalog("clicks", settings=source.settings(), source=source)
    assets = [asset for asset in definitions_of(own).assets or () if isinstance(asset, dg.AssetsDefinition)]
    [state] = [asset for asset in assets if state_key(key("clicks")) in asset.keys]
    return dg.materialize([state], instance=instance, raise_on_error=False)


@pytest.mark.slow
def test_a_run_updates_the_state_table(history: KeyedHistory, instance: dg.DagsterInstance) -> None:
    result = run(history, instance, STATE["topics"])
    assert result.success
    [event] = result.get_asset_materialization_events()
    facts = {name: value.value for name, value in event.materialization.metadata.items()}
    assert event.asset_key == state_key(key("clicks"))
    assert (facts["since"], facts["version"], facts["changed"], facts["rebuilt"]) == (-1, 1, 1, True)
    assert history.state() == history.expected()
    again = run(history, instance, STATE["topics"])
    assert again.success
    assert again.get_asset_materialization_events() == []


def test_a_run_sends_its_lineage(history: KeyedHistory, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    result = run(history, instance, STATE["topics"], lineage={"file": str(file)})
    start, end = events_of(file)
    assert (start["eventType"], end["eventType"], end["job"]["name"]) == ("START", "COMPLETE", "state.main.clicks")
    assert end["run"]["facets"]["parent"]["run"]["runId"] == result.run_id


def test_a_run_that_cannot_update_fails_with_a_sentence(history: KeyedHistory, instance: dg.DagsterInstance) -> None:
    result = run(history, instance, {"clicks": {"format": "json", "state": {"key": "id"}}})
    assert not result.success
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert "1 of 1 state tables are not up to date" in str(failure.event_specific_data)
    assert "has no column id" in str(failure.event_specific_data)


def test_each_load_requests_an_update_of_the_state_table_and_of_no_other(instance: dg.DagsterInstance) -> None:
    definitions = definitions_of(catalog(*TOPICS, settings=settings_with(STATE)))
    table, cursor = key("clicks"), None
    state = state_key(table)

    def requested() -> set[dg.AssetKey]:
        nonlocal cursor
        result = dg.evaluate_automation_conditions(definitions, instance, cursor=cursor)
        cursor = result.cursor
        return {one for one in (state, table, key("views")) if result.get_num_requested(one)}

    def materialized(*keys: dg.AssetKey) -> None:
        for one in keys:
            instance.report_runless_asset_event(dg.AssetMaterialization(one))

    assert requested() == set()  # the table is missing
    for _ in range(2):
        materialized(key("views"), table)
        assert requested() == {state}
        assert requested() == set()  # the run is on its way
        materialized(state)
        assert requested() == set()
