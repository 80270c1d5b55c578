"""The schedule: go on with every topic."""

import dagster as dg

from pipelines.jobs import load_topics
from pipelines.partitions import known_keys, run_tags


@dg.schedule(
    job=load_topics,
    cron_schedule="*/15 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Loads what is new of every topic, in one run.",
)
def every_topic(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """One run over all partitions: each topic is planned from its own cursor, and one with nothing new costs a look."""
    keys = known_keys(context.instance)
    if not keys:
        return dg.SkipReason("no topic is known yet; the sensor new_topics adds them")
    return dg.RunRequest(tags=run_tags(keys))
