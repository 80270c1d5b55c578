"""Builds all Dagster definitions from the settings."""

import warnings
from typing import Any

import dagster as dg

from pipelines.defs.alerts import alert_sensors
from pipelines.defs.assets import table_asset, topics_asset
from pipelines.defs.checks import COVERAGE_CHECK, coverage_check, keeping_up_checks
from pipelines.defs.replay_job import replay_job
from pipelines.defs.run import SINCE_TAG
from pipelines.defs.run_liveness import lost_runs_sensor
from pipelines.defs.schedules import group_schedules
from pipelines.defs.sensors import new_topics_sensor
from pipelines.defs.topic_group import TopicGroup, groups
from resources.penstock import PenstockResource
from resources.settings import Settings


def build_definitions(settings: Settings, penstock: PenstockResource | None = None) -> dg.Definitions:
    """All definitions: assets, checks, jobs and schedules per group; a sensor and a replay job per cluster.

    Raises:
        dagster.DagsterInvalidDefinitionError: a cron expression of the settings is invalid.
    """
    # Dagster calls single runs over many partitions and observable sources beta.
    with warnings.catch_warnings(action="ignore", category=dg.BetaWarning):
        jobs_of = {group: _group_jobs(group) for group in groups(settings)}
        clusters = {cluster: [group for group in jobs_of if group.cluster == cluster] for cluster in settings.clusters}
        jobs = [job for group in jobs_of for job in jobs_of[group].values()]
        jobs += [replay_job(cluster, members) for cluster, members in clusters.items()]
        loads = {cluster: {group: jobs_of[group]["load"] for group in members} for cluster, members in clusters.items()}
        sensors = [new_topics_sensor(cluster, jobs_by_group) for cluster, jobs_by_group in loads.items()]
        return dg.Definitions(
            assets=[*map(topics_asset, jobs_of), *(table_asset(group, settings.retries) for group in jobs_of)],
            asset_checks=[check for group in jobs_of for check in (coverage_check(group), keeping_up_checks(group))],
            jobs=jobs,
            sensors=[*sensors, lost_runs_sensor(), *alert_sensors(settings.alerts.command, jobs)],
            schedules=[schedule for group in jobs_of for schedule in group_schedules(group, settings)],
            resources={"penstock": penstock or PenstockResource()},
            # Runs execute in their own process: one JVM per run, and terminating the run cancels its Spark jobs.
            executor=dg.in_process_executor,
        )


def _group_jobs(group: TopicGroup) -> dict[str, Any]:
    """The group's jobs by action. Dagster does not export the type of an unresolved asset job."""
    coverage = dg.AssetSelection.checks(dg.AssetCheckKey(group.tables, COVERAGE_CHECK))
    tables = dg.AssetSelection.assets(group.tables).without_checks()
    keeping_up = dg.AssetSelection.checks_for_assets(group.tables) - coverage
    jobs = {
        "load": (tables | coverage, {}, "Load what is new in the chosen topics, then verify their tables."),
        "backfill": (
            tables | coverage,
            # A tag, because Dagster passes the config of a partitioned job only to runs of one single partition.
            {SINCE_TAG: "earliest"},
            f"Load the chosen topics from the earliest offset of the brokers. Set the tag {SINCE_TAG} to start later.",
        ),
        "watch": (
            dg.AssetSelection.assets(group.topics) | keeping_up,
            {},
            "Observe every topic of the group: lag, freshness, and the time until retention removes records.",
        ),
        "verify": (coverage, {}, "Verify every table of the group."),
    }
    return {
        action: dg.define_asset_job(group.named(action), selection=selection, tags=tags, description=description)
        for action, (selection, tags, description) in jobs.items()
    }
