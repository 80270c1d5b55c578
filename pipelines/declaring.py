"""Everything Dagster sees of a settings file."""

import warnings

import dagster as dg

from pipelines.alerts import alert_sensors
from pipelines.assets import table_asset, topics_asset
from pipelines.checks import covered_check, keeping_up_checks
from pipelines.group import groups
from pipelines.jobs import group_jobs
from pipelines.replays import replay_job
from pipelines.schedules import load_schedule, regular_schedules
from pipelines.sensors import new_topics_sensor
from pipelines.workers import lost_runs_sensor
from resources.penstock import PenstockResource
from resources.settings import Settings


def declared(settings: Settings, penstock: PenstockResource | None = None) -> dg.Definitions:
    """Per group of topics an asset with its checks, jobs and schedules; per cluster a sensor and a job for replays.

    Raises:
        dagster.DagsterInvalidDefinitionError: one of the settings' crons is none.
    """
    with warnings.catch_warnings():
        # Runs over many partitions and sources that are observed are what Dagster calls beta.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return _declared(settings, penstock or PenstockResource())


def _declared(settings: Settings, penstock: PenstockResource) -> dg.Definitions:
    found = {group: group_jobs(group) for group in groups(settings)}
    clusters = {cluster: [group for group in found if group.cluster == cluster] for cluster in settings.clusters}
    jobs = [
        *(job for mine in found.values() for job in mine.values()),
        *(replay_job(cluster, members) for cluster, members in clusters.items()),
    ]
    return dg.Definitions(
        assets=[asset for one in found for asset in (topics_asset(one), table_asset(one, settings.retries))],
        asset_checks=[check for one in found for check in (covered_check(one), keeping_up_checks(one))],
        jobs=jobs,
        sensors=[
            *(
                new_topics_sensor(cluster, {group: found[group]["load"] for group in members})
                for cluster, members in clusters.items()
            ),
            lost_runs_sensor(),
            *alert_sensors(settings.alerts.command, jobs),
        ],
        schedules=[schedule for one in found for schedule in (load_schedule(one), *regular_schedules(one, settings))],
        resources={"penstock": penstock},
        # In the run's own process: a run is one JVM, and terminating it cancels its Spark work.
        executor=dg.in_process_executor,
    )
