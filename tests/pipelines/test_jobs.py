"""The jobs, as Dagster resolves and runs them."""

import dagster as dg
import pytest

from pipelines.definitions import defs
from pipelines.partitions import NAME
from tests.live import LiveCluster, numbered
from tests.pipelines.declared import loaded, run


@pytest.mark.parametrize("name", ["load_topics", "backfill_from_earliest"])
def test_a_job_is_the_asset_then_its_check_in_one_process(name: str) -> None:
    job = defs.resolve_job_def(name)
    assert job.partitions_def == dg.DynamicPartitionsDefinition(name=NAME)
    assert [node.name for node in job.nodes_in_topological_order] == ["topic_table", "topic_table_offsets_covered"]
    assert job.executor_def is dg.in_process_executor


@pytest.mark.spark
@pytest.mark.zookeeper
def test_backfill_from_earliest_fills_in_what_lies_before_a_table(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.configure('start = "latest"')
    configured.publish("clicks", numbered(200))
    assert loaded(run(instance, ["main/clicks"]))["main/clicks"]["rows"] == 0
    configured.publish("clicks", numbered(50, start=200))
    assert loaded(run(instance, ["main/clicks"]))["main/clicks"]["rows"] == 50
    result = run(instance, ["main/clicks"], job="backfill_from_earliest")
    assert result.success
    assert loaded(result)["main/clicks"]["rows"] == 200
    (check,) = result.get_asset_check_evaluations()
    assert check.passed
    assert check.metadata["rows"].value == 250


@pytest.mark.spark
@pytest.mark.zookeeper
def test_one_key_is_loaded_by_its_partition_tag_as_the_ui_asks(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(20))
    instance.add_dynamic_partitions(NAME, ["main/clicks"])
    result = defs.resolve_job_def("backfill_from_earliest").execute_in_process(
        instance=instance, partition_key="main/clicks"
    )
    assert loaded(result)["main/clicks"]["rows"] == 20
    assert [check.passed for check in result.get_asset_check_evaluations()] == [True]
