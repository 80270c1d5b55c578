"""The check: in a load's run, and by itself."""

import dagster as dg
import pytest
from deltalake import DeltaTable

from tests.live import LiveCluster, numbered
from tests.pipelines.declared import ALL, run

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]


def lose_a_file(live: LiveCluster, topic: str) -> None:
    """Delete one data file behind the table's back."""
    table = DeltaTable(live.lake / "main" / topic)
    (live.lake / "main" / topic / table.file_uris()[0]).unlink()


def evaluation(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (found,) = result.get_asset_check_evaluations()
    return found


def by_itself(instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """The check as the UI's button executes it: no partition, no load."""
    return ALL.resolve_job_def("check_alone").execute_in_process(instance=instance)


@pytest.mark.parametrize("names", [["clicks"], ["clicks", "views"]])
def test_a_run_verifies_the_tables_it_loaded(
    instance: dg.DagsterInstance, configured: LiveCluster, names: list[str]
) -> None:
    for name in names:
        configured.publish(name, numbered(100))
    found = evaluation(run(instance, [f"main/{name}" for name in names]))
    assert found.passed
    assert found.description == f"tables proven: {len(names)}"
    assert found.metadata["rows"].value == 100 * len(names)


def test_a_lost_file_fails_the_check_and_is_named(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(100))
    assert run(instance, ["main/clicks", "main/views"]).success
    lose_a_file(configured, "views")
    again = run(instance, ["main/clicks", "main/views"])
    assert again.success
    found = evaluation(again)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.description == "not proven: views"
    assert "is missing or cut" in str(found.metadata["problems"].value)
    rows, missing = (found.metadata[name].value for name in ("rows", "missing"))
    assert isinstance(rows, int)
    assert isinstance(missing, int)
    assert rows + missing == 200


def test_by_itself_it_verifies_every_table(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    assert evaluation(by_itself(instance)).description == "tables proven: 0"
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    run(instance, ["main/clicks", "main/views"])
    assert evaluation(by_itself(instance)).description == "tables proven: 2"
    lose_a_file(configured, "clicks")
    assert evaluation(by_itself(instance)).description == "not proven: clicks"
