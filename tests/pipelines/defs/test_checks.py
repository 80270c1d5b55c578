"""The checks: in the run of a load, and in runs of their own."""

import dagster as dg
import pytest
from deltalake import DeltaTable

from pipelines.defs.build import build_definitions
from pipelines.defs.partitions import key_of
from resources.groups import GroupLimits
from resources.settings import Settings
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import CLUSTERS, DEFS, GROUP, run

pytestmark = pytest.mark.zookeeper


def lose_a_file(live: LiveCluster, topic: str) -> None:
    """Delete a data file of the table without a commit."""
    table = DeltaTable(live.lake / "main" / topic)
    (live.lake / "main" / topic / table.file_uris()[0]).unlink()


def evaluation(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (check,) = result.get_asset_check_evaluations()
    return check


def by_itself(instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """Run the check alone, without a partition, as the button in the UI and the daily schedule do."""
    return DEFS.resolve_job_def("verify__main__topics").execute_in_process(instance=instance)


@pytest.mark.parametrize("names", [["clicks"], ["clicks", "views"]])
def test_a_run_verifies_the_tables_it_loaded(
    instance: dg.DagsterInstance, configured: LiveCluster, names: list[str]
) -> None:
    for name in names:
        configured.publish(name, numbered(100))
    check = evaluation(run(instance, [key_of(name) for name in names]))
    assert check.passed
    assert check.description == f"tables proven: {len(names)}"
    assert check.metadata["rows"].value == 100 * len(names)


def test_a_missing_file_fails_the_check_and_is_named(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(100))
    assert run(instance, ["clicks", "views"]).success
    lose_a_file(configured, "views")
    second = run(instance, ["clicks", "views"])
    assert second.success
    check = evaluation(second)
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert check.description == "not proven: views"
    assert "is missing or truncated" in str(check.metadata["problems"].value)
    rows, missing = (check.metadata[name].value for name in ("rows", "missing"))
    assert isinstance(rows, int)
    assert isinstance(missing, int)
    assert rows + missing == 200


def test_a_run_of_the_check_alone_verifies_every_table(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    assert evaluation(by_itself(instance)).description == "tables proven: 0"
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    run(instance, ["clicks", "views"])
    assert evaluation(by_itself(instance)).description == "tables proven: 2"
    lose_a_file(configured, "views")
    assert evaluation(by_itself(instance)).description == "not proven: views"
    log = configured.lake / "main" / "clicks" / "_delta_log"
    max(log.glob("*.json")).write_text("{")  # this table cannot be read at all, and views is still judged (fault U03)
    assert evaluation(by_itself(instance)).description == "not proven: clicks, views"


def watched(instance: dg.DagsterInstance) -> dict[str, dg.AssetCheckEvaluation]:
    """Run the status checks of all topics, as their schedule does."""
    result = DEFS.resolve_job_def("watch__main__topics").execute_in_process(instance=instance)
    return {check.check_name: check for check in result.get_asset_check_evaluations()}


def test_topics_that_are_loaded_keep_up(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    configured.publish("clicks", numbered(10))
    assert run(instance, ["clicks"]).success
    checks = watched(instance)
    assert checks.keys() == {"lag", "freshness", "retention_race", "held_back", "bad_records"}
    assert all(check.passed for check in checks.values())
    assert {check.description for check in checks.values()} == {"topics that keep up: 1"}
    assert checks["lag"].metadata["lag"].value == 0


def test_a_topic_further_behind_than_the_limit_is_a_warning_with_its_numbers(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(10))
    configured.publish("views", numbered(10))
    assert run(instance, ["clicks"]).success
    defs = build_definitions(Settings(lake="/nowhere", clusters=CLUSTERS, limits=GroupLimits(lag=5)))
    result = defs.resolve_job_def("watch__main__topics").execute_in_process(instance=instance)
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    lag = checks["lag"]
    assert (lag.passed, lag.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert str(lag.description).startswith("views: ")
    assert "offsets behind, more than the limit of 5" in str(lag.description)
    table = lag.metadata["topics"]
    assert isinstance(table, dg.TableMetadataValue)
    assert {record.data["topic"] for record in table.records} == {"clicks", "views"}


def test_the_source_asset_observes_the_status_of_its_topics(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(10))
    result = DEFS.resolve_job_def("watch__main__topics").execute_in_process(instance=instance)
    (event,) = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    observation = event.asset_observation_data.asset_observation
    assert observation.asset_key == GROUP.topics
    assert observation.metadata["count"].value == 1
    assert isinstance(observation.metadata["lag"].value, int)
    assert observation.metadata["lag"].value > 0
