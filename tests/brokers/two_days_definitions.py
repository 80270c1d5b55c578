"""What Dagster loads for `two_days`: Penstock, and an asset for each topic that counts its complete hours."""

import json
import os
from pathlib import Path

import dagster as dg

from penstock import on_complete_partitions
from pipelines.defs.build import build_defs
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.status.hour_counts import hour_counts
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.brokers.two_days import CLUSTER, COUNTED, FIRST, SENSOR, TOPICS
from tests.timed_table import HOUR_MS

PARTITIONS = dg.HourlyPartitionsDefinition(FIRST)


def counting(topic: str) -> dg.AssetsDefinition:
    """An asset that follows the hours of a topic, and appends their rows to a file."""

    @dg.asset(
        name=f"counts_{topic}",
        deps=[["lake", CLUSTER, topic, "hours"]],
        partitions_def=PARTITIONS,
        automation_condition=on_complete_partitions(),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def counts(context: dg.AssetExecutionContext) -> None:
        table = DeltaLakeTable.of(Lake.of(Settings.load(Settings.path())), CLUSTER, topic)
        lines = []
        for hour in context.partition_keys:
            start = int(PARTITIONS.time_window_for_partition_key(hour).start.timestamp()) * 1000
            rows = hour_counts(table, table.snapshot(), "timestamp", [start, start + HOUR_MS])[start]
            lines.append(json.dumps({"topic": topic, "hour": hour, "rows": rows}) + "\n")
        with Path(os.environ[COUNTED]).open("a") as file:
            file.write("".join(lines))

    return counts


defs = dg.Definitions.merge(
    build_defs(Settings.path()),
    dg.Definitions(
        assets=[counting(topic) for topic in TOPICS],
        sensors=[
            dg.AutomationConditionSensorDefinition(
                SENSOR,
                target=dg.AssetSelection.all(),
                default_status=dg.DefaultSensorStatus.RUNNING,
                minimum_interval_seconds=5,
            )
        ],
        executor=dg.in_process_executor,
    ),
)
