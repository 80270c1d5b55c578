"""The jobs, as Dagster resolves and runs them."""

import dagster as dg
import pytest

from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import DEFS, GROUP, know, loaded, run


@pytest.mark.parametrize("action", ["load", "backfill"])
def test_a_job_is_the_asset_then_its_check_in_one_process(action: str) -> None:
    job = DEFS.resolve_job_def(f"{action}__main__topics")
    assert job.partitions_def == dg.DynamicPartitionsDefinition(name=GROUP.partitions_name)
    assert [node.name for node in job.nodes_in_topological_order] == [
        "lake__main__topics",
        "lake__main__topics_offsets_covered",
    ]
    assert job.executor_def is dg.in_process_executor


def test_every_op_that_reads_from_a_cluster_is_in_its_pool() -> None:
    jobs = [DEFS.resolve_job_def(name) for name in ("load__main__topics", "replay__main")]
    assert [job.nodes_in_topological_order[0].definition.pools for job in jobs] == [{"kafka_main"}, {"kafka_main"}]


@pytest.mark.zookeeper
def test_a_backfill_loads_the_records_before_the_start_of_a_table(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.configure('start = "latest"')
    configured.publish("clicks", numbered(200))
    assert loaded(run(instance, ["clicks"]))["clicks"]["rows"] == 0
    configured.publish("clicks", numbered(50, start=200))
    assert loaded(run(instance, ["clicks"]))["clicks"]["rows"] == 50
    result = run(instance, ["clicks"], job="backfill__main__topics")
    assert result.success
    assert loaded(result)["clicks"]["rows"] == 200
    (check,) = result.get_asset_check_evaluations()
    assert check.passed
    assert check.metadata["rows"].value == 250


@pytest.mark.zookeeper
def test_one_key_is_loaded_by_its_partition_tag_as_the_ui_asks(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(20))
    know(instance, "clicks")
    result = DEFS.resolve_job_def("backfill__main__topics").execute_in_process(
        instance=instance, partition_key="clicks"
    )
    assert loaded(result)["clicks"]["rows"] == 20
    assert [check.passed for check in result.get_asset_check_evaluations()] == [True]
