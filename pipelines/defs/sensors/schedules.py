"""What Dagster starts by time for a schedule of the settings: loads, observations of topics, proofs of tables."""

from collections.abc import Collection, Sequence

import dagster as dg

from kafka_io.errors import LocatedError
from pipelines.defs.catalog.catalog import TopicSchedule
from pipelines.defs.runs.check_runs import CheckRun
from pipelines.defs.runs.run_tags import topic_tags
from pipelines.defs.runs.schedule_status import ask_schedule_status
from pipelines.status.status import TopicStatus, now_ms
from resources.settings.schedules import NEVER
from resources.settings.settings import Settings

_PRIORITY = "dagster/priority"
_PRIORITIES = ((0.1, "20"), (0.3, "10"))
"""Run priorities: a run gets one if a topic of it has less than this share of its retention time left."""
_MAX_BACKOFF_MS = 6 * 3_600_000
_NO_TOPIC = "no topic is known yet; the sensor new_topics adds them"
_MAX_WATCHED = 1000
"""The topics that a tick looks at itself, because Dagster stops a tick after 60 s."""
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def load_schedule(schedule: TopicSchedule, cron: str) -> dg.ScheduleDefinition:
    """Dagster's schedule that requests runs for the topics with something new; the most urgent ones get priority."""

    @dg.schedule(
        name=schedule.named("load"),
        job_name=schedule.named("load"),
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Loads what is new in the topics of the schedule. Topics whose records retention will soon remove "
        "come first. A topic that fails again and again is tried less often.",
    )
    def load(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        if not schedule.specs:
            return dg.SkipReason(_NO_TOPIC)
        penstock, now = schedule.catalog.source.fresh(), now_ms()
        waiting = [status for status in ask_schedule_status(penstock, schedule, schedule.tables) if has_work(status)]
        busy = _busy(context.instance, schedule)
        resting = {status.topic for status in waiting if rests(status, now)}
        due = [status for status in waiting if status.topic not in busy | resting]
        if not due:
            being_loaded = len(busy & {status.topic for status in waiting})
            waiting_text = f"; {len(resting)} failed and wait for their next attempt" if resting else ""
            return dg.SkipReason(
                f"nothing new in {len(schedule.tables)} topics; {being_loaded} are being loaded{waiting_text}"
            )
        max_topics, tick_time = penstock.settings().topics_per_run, context.scheduled_execution_time.isoformat()
        parts = (due[start : start + max_topics] for start in range(0, len(due), max_topics))
        return [_request(schedule, part, tick_time) for part in parts]

    return load


def has_work(status: TopicStatus) -> bool:
    """Whether a load has records to fetch or an error to report. A topic that was deleted has neither."""
    return status.incarnation is not None and (status.error is not None or status.loadable != 0)


def rests(status: TopicStatus, now: int) -> bool:
    """Whether a failed topic is not tried again yet: it waits as long as it has been failing, at most six hours."""
    last = status.last_error
    if last is None or not last.since_ms:
        return False
    return now - last.time_ms < min(last.time_ms - last.since_ms, _MAX_BACKOFF_MS)


def _busy(instance: dg.DagsterInstance, schedule: TopicSchedule) -> set[str]:
    """The topics of unfinished runs: a second run of the same topic would only wait for the first."""
    busy: set[str] = set()
    jobs, topics = {schedule.named("load"), schedule.named("backfill")}, schedule.topics
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        # A run that was launched on the asset's page belongs to a job that Dagster itself defines.
        selected: Collection[dg.AssetKey] = run.asset_selection or (topics if run.job_name in jobs else ())
        busy.update(topics[key] for key in selected if key in topics)
    return busy


def _request(schedule: TopicSchedule, statuses: Sequence[TopicStatus], tick_time: str) -> dg.RunRequest:
    now, names = now_ms(), [status.topic for status in statuses]
    min_share = min((share for status in statuses if (share := status.left_share(now)) is not None), default=1.0)
    priority = next((priority for limit, priority in _PRIORITIES if min_share < limit), None)
    return dg.RunRequest(
        run_key=f"{tick_time} {names[0]}",  # no other run of the tick has this topic
        asset_selection=schedule.keys(names),
        asset_check_keys=[],  # otherwise Dagster adds all checks of the tables; loads report those that matter
        tags={**topic_tags(schedule.cluster, names), **({_PRIORITY: priority} if priority else {})},
    )


def watch_schedule(schedule: TopicSchedule, cron: str) -> dg.ScheduleDefinition:
    """Dagster's schedule that watches topics. Runs that report nothing would only fill the list of runs (fault F17)."""

    @dg.schedule(
        name=schedule.named("watch"),
        job_name=schedule.named("watch"),
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Observes every topic: lag, freshness, and the time until records are lost. It starts a run only "
        "if a result is new, if the lag of a topic was not reported for an hour, or if topics cannot be observed.",
    )
    def watch(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if not schedule.specs:
            return dg.SkipReason(_NO_TOPIC)
        try:
            has_news = len(schedule.specs) > _MAX_WATCHED or bool(CheckRun.of(context.instance, schedule).news())
        except (LocatedError, ValueError):
            has_news = True  # the run fails too: the list of runs and an alert show why
        return dg.RunRequest() if has_news else dg.SkipReason(f"nothing new to report; topics: {len(schedule.tables)}")

    return watch


def schedule_definitions(schedule: TopicSchedule, settings: Settings) -> list[dg.ScheduleDefinition]:
    """Dagster's schedules for one of the settings.

    Without a known topic they request no run: a run over nothing would only fill the list of runs (fault F17).
    """
    actions = [("verify", settings.verify_cron, "Verifies every table.")]
    if settings.housekeeping.cron != NEVER:
        clean = "Deletes files that no table needs, and merges small files."
        actions.append(("clean", settings.housekeeping.cron, clean))
    regular = [
        dg.ScheduleDefinition(
            name=schedule.named(action),
            job_name=schedule.named(action),
            cron_schedule=cron,
            should_execute=lambda _: bool(schedule.specs),
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=description,
        )
        for action, cron, description in actions
    ]
    load = load_schedule(schedule, settings.timing_of(schedule.name).cron)
    return [load, watch_schedule(schedule, settings.watch_cron), *regular]
