"""The jobs, as Dagster resolves and runs them."""

import dagster as dg
import pytest

from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import LOAD, defs_of, loaded, observed, run, verdicts


@pytest.mark.parametrize("action", ["load", "backfill"])
def test_a_job_has_all_topics_in_one_op_and_one_process(action: str) -> None:
    resolved = defs_of("clicks", "views").resolve_job_def(f"{action}__main__topics")
    assert [node.name for node in resolved.nodes_in_topological_order] == ["penstock_load__main__topics"]
    assert resolved.executor_def is dg.in_process_executor


@pytest.mark.parametrize("action", ["load", "backfill", "watch", "verify", "clean"])
def test_each_job_exists_before_the_first_topic_is_known(action: str) -> None:
    assert defs_of().resolve_job_def(f"{action}__main__topics").executor_def is dg.in_process_executor


def test_loads_and_watches_have_pools_of_their_own() -> None:
    defs = defs_of("clicks")
    jobs = [defs.resolve_job_def(name) for name in (LOAD, "replay__main", "watch__main__topics")]
    pools = [job.nodes_in_topological_order[0].definition.pools for job in jobs]
    assert pools == [{"kafka_main"}, {"kafka_main"}, {"kafka_main_watch"}]


@pytest.mark.zookeeper
def test_a_backfill_loads_the_records_before_the_start_of_a_table(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.configure('start = "latest"')
    configured.publish("clicks", numbered(200))
    assert observed(run(instance, ["clicks"]))["clicks"]["rows"] == 0
    configured.publish("clicks", numbered(50, start=200))
    assert loaded(run(instance, ["clicks"]))["clicks"]["rows"] == 50
    result = run(instance, ["clicks"], job="backfill__main__topics")
    assert result.success
    assert loaded(result)["clicks"]["rows"] == 200
    check = verdicts(result)["clicks"]["coverage"]
    assert check.passed
    assert check.metadata["rows"].value == 250
