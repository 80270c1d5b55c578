"""Builds the Dagster definitions of Penstock from its settings, for this project's own UI and for everybody else's."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from pipelines.defs.catalog.catalog import DEFAULT_NAME, Catalog, TopicSchedule, job_of, source_specs, topic_schedules
from pipelines.defs.catalog.known_topics import read_known
from pipelines.defs.catalog.translator import PenstockTranslator
from pipelines.defs.runs.assets import load_assets
from pipelines.defs.runs.check_definitions import topic_checks, verify_job, watch_job
from pipelines.defs.runs.clean_job import clean_job
from pipelines.defs.runs.replay_job import replay_job, replay_op
from pipelines.defs.runs.run import SINCE_TAG
from pipelines.defs.runs.run_liveness import lost_runs_sensor
from pipelines.defs.runs.state_assets import state_assets
from pipelines.defs.sensors.alerts import alert_sensors
from pipelines.defs.sensors.complete_hours import complete_hours_sensors, complete_specs
from pipelines.defs.sensors.new_topics import new_topics_sensor
from pipelines.defs.sensors.schedules import schedule_definitions
from resources.penstock import PenstockResource
from resources.settings.settings import Settings

SettingsSource = str | Path | Mapping[str, Any] | Settings | PenstockResource


def build_defs(
    settings: SettingsSource,
    *,
    name: str = DEFAULT_NAME,
    topics: str | Sequence[str] | None = None,
    key_prefix: str | Sequence[str] | None = None,
    translator: PenstockTranslator | None = None,
    automation_condition: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> dg.Definitions:
    """All definitions of Penstock: one asset per known topic, with checks, jobs, schedules and sensors.

    Args:
        settings: the path of a settings file, which each run reads again; or the content of one.
        name: the name of these definitions. Choose different names for several in one code location.
        topics: regular expressions of whole topic names; only these topics belong to the definitions. All by default.
        key_prefix: the first parts of the keys of the assets, `lake` by default.
        translator: makes the spec of each asset.
        automation_condition: the condition of each asset for which neither the settings nor the translator has one.

    Raises:
        SettingsError: the settings are missing or wrong.
        dagster.DagsterInvalidDefinitionError: a cron expression of the settings is invalid.
    """
    source = resource_of(settings)
    bound = source.fresh().settings()
    for sentence in bound.warnings:
        dg.get_dagster_logger().warning(sentence)
    catalog = Catalog(
        name=name,
        source=source,
        settings=bound,
        known=read_known(name, bound.clusters),
        patterns=None if topics is None else _texts(topics),
        key_prefix=("lake",) if key_prefix is None else _texts(key_prefix),
        translator=translator or PenstockTranslator(),
        automation_condition=automation_condition,
    )
    return definitions_of(catalog)


def resource_of(settings: SettingsSource) -> PenstockResource:
    """The resource that gives runs their settings, from a settings file or from the settings themselves."""
    if isinstance(settings, PenstockResource):
        return settings
    if isinstance(settings, Settings):
        return PenstockResource(inline=settings)
    if isinstance(settings, Mapping):
        return PenstockResource(inline=Settings.of(settings, folder=Path.cwd()))
    return PenstockResource(settings_file=str(Settings.path(settings)))


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def definitions_of(catalog: Catalog) -> dg.Definitions:
    """The definitions of a catalog."""
    # Dagster calls some of what is used here beta.
    with warnings.catch_warnings(action="ignore", category=dg.BetaWarning):
        schedules = list(topic_schedules(catalog))
        jobs_of = {(schedule.cluster, schedule.name): _jobs(schedule) for schedule in schedules}
        by_cluster: dict[str, list[TopicSchedule]] = {cluster: [] for cluster in catalog.settings.clusters}
        for schedule in schedules:
            by_cluster[schedule.cluster].append(schedule)
        sensors = [
            new_topics_sensor(catalog, cluster, own, [jobs_of[cluster, schedule.name]["load"] for schedule in own])
            for cluster, own in by_cluster.items()
        ]
        jobs = [job for actions in jobs_of.values() for job in actions.values()]
        jobs += [replay_job(catalog, cluster) for cluster in by_cluster]
        tables = [asset for schedule in schedules for asset in load_assets(schedule)]
        states = [asset for schedule in schedules for asset in state_assets(schedule)]
        checks = [checks for schedule in schedules for checks in topic_checks(schedule)]
        ops = [definition.op.name for definition in (*tables, *states, *checks)]
        alerts = alert_sensors(catalog, schedules, [*ops, *_own_ops(catalog, schedules)])
        return dg.Definitions(
            assets=[
                *tables,
                *states,
                *(spec for schedule in schedules for spec in (*source_specs(schedule), *complete_specs(schedule))),
            ],
            asset_checks=checks,
            jobs=jobs,
            sensors=[
                *sensors,
                *complete_hours_sensors(catalog, schedules),
                lost_runs_sensor(f"lost_runs{catalog.suffix}"),
                *alerts,
            ],
            schedules=[each for schedule in schedules for each in schedule_definitions(schedule, catalog.settings)],
        )


def _own_ops(catalog: Catalog, schedules: Sequence[TopicSchedule]) -> list[str]:
    """The names of the ops that are not behind an asset or a check."""
    replays = [replay_op(catalog, cluster) for cluster in catalog.settings.clusters]
    return [*replays, *(schedule.op(action) for schedule in schedules for action in ("watch", "verify", "clean"))]


def _jobs(schedule: TopicSchedule) -> dict[str, Any]:
    """The jobs of a schedule, by action. Dagster does not export the type of an unresolved asset job."""
    load = "Load what is new in the chosen topics, then verify their tables."
    backfill = (
        f"Load the chosen topics from the earliest offset of the brokers. Set the tag {SINCE_TAG} to start later."
    )
    return {
        "load": _load_job(schedule, "load", load, {}),
        # A tag, because a config would have to name the op of each multi-asset.
        "backfill": _load_job(schedule, "backfill", backfill, {SINCE_TAG: "earliest"}),
        "watch": watch_job(schedule),
        "verify": verify_job(schedule),
        "clean": clean_job(schedule),
    }


def _load_job(schedule: TopicSchedule, action: str, description: str, tags: Mapping[str, str]) -> Any:
    """A job over the tables of the schedule; runs execute in one process, so they have one JVM."""
    if schedule.specs:
        return dg.define_asset_job(
            schedule.named(action),
            selection=dg.AssetSelection.assets(*schedule.topics).without_checks(),
            tags=tags,
            description=description,
            executor_def=dg.in_process_executor,
        )

    # Dagster has no job over no asset. The sensor and the schedule name the job before the first topic is known.
    @dg.op(name=schedule.op(f"no_{action}"))
    def no_topics(context: dg.OpExecutionContext) -> None:
        context.log.warning("no topic of the schedule %s is known yet; the sensor new_topics adds them", schedule.name)

    return job_of(no_topics, schedule.named(action), description, tags)
