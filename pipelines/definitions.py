"""Everything Dagster sees; `workspace.yaml` names this module."""

import dagster as dg

from pipelines.assets import topic_table
from pipelines.checks import offsets_covered
from pipelines.jobs import backfill_from_earliest, load_topics, replay_topic
from pipelines.schedules import every_topic
from pipelines.sensors import new_topics
from resources.penstock import PenstockResource

defs = dg.Definitions(
    assets=[topic_table],
    asset_checks=[offsets_covered],
    jobs=[load_topics, backfill_from_earliest, replay_topic],
    sensors=[new_topics],
    schedules=[every_topic],
    resources={"penstock": PenstockResource()},
    # In the run's own process: a run is one JVM, and terminating it cancels its Spark work.
    executor=dg.in_process_executor,
)
