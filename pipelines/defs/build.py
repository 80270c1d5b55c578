"""Builds all Dagster definitions from the settings."""

import warnings

import dagster as dg

from pipelines.defs.alerts import alert_sensors
from pipelines.defs.assets import table_asset, topics_asset
from pipelines.defs.checks import coverage_check, keeping_up_checks
from pipelines.defs.jobs import group_jobs
from pipelines.defs.replay_job import replay_job
from pipelines.defs.run_liveness import lost_runs_sensor
from pipelines.defs.schedules import load_schedule, regular_schedules
from pipelines.defs.sensors import new_topics_sensor
from pipelines.defs.topic_group import groups
from resources.penstock import PenstockResource
from resources.settings import Settings


def build_definitions(settings: Settings, penstock: PenstockResource | None = None) -> dg.Definitions:
    """All definitions: assets, checks, jobs and schedules per group; a sensor and a replay job per cluster.

    Raises:
        dagster.DagsterInvalidDefinitionError: a cron expression of the settings is invalid.
    """
    with warnings.catch_warnings():
        # Dagster calls single runs over many partitions and observable sources beta.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return _definitions(settings, penstock or PenstockResource())


def _definitions(settings: Settings, penstock: PenstockResource) -> dg.Definitions:
    group_jobs_by_group = {group: group_jobs(group) for group in groups(settings)}
    all_groups = list(group_jobs_by_group)
    clusters = {cluster: [group for group in all_groups if group.cluster == cluster] for cluster in settings.clusters}
    jobs = [
        *(job for jobs_of_group in group_jobs_by_group.values() for job in jobs_of_group.values()),
        *(replay_job(cluster, members) for cluster, members in clusters.items()),
    ]
    return dg.Definitions(
        assets=[asset for group in all_groups for asset in (topics_asset(group), table_asset(group, settings.retries))],
        asset_checks=[check for group in all_groups for check in (coverage_check(group), keeping_up_checks(group))],
        jobs=jobs,
        sensors=[
            *(
                new_topics_sensor(cluster, {group: group_jobs_by_group[group]["load"] for group in members})
                for cluster, members in clusters.items()
            ),
            lost_runs_sensor(),
            *alert_sensors(settings.alerts.command, jobs),
        ],
        schedules=[
            schedule for group in all_groups for schedule in (load_schedule(group), *regular_schedules(group, settings))
        ],
        resources={"penstock": penstock},
        # Runs execute in their own process: one JVM per run, and terminating the run cancels its Spark jobs.
        executor=dg.in_process_executor,
    )
