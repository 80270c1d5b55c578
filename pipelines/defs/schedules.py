"""The schedules of a group: load what is new, observe all topics, verify all tables."""

from collections.abc import Collection, Iterator, Sequence

import dagster as dg

from pipelines.defs.group_status import ask_group_status
from pipelines.defs.partitions import RANGE_END, RANGE_START, key_of, known_keys, run_tags
from pipelines.defs.topic_group import TopicGroup
from pipelines.status.status import TopicStatus, now_ms
from resources.penstock import PenstockResource
from resources.settings import Settings

_PRIORITY = "dagster/priority"
_PRIORITIES = ((0.1, "20"), (0.3, "10"))
"""Run priorities: a run gets one if a topic of it has less than this share of its retention time left."""
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def _load_schedule(group: TopicGroup) -> dg.ScheduleDefinition:
    """The schedule that requests runs for the topics with something new; the most urgent ones get priority."""

    @dg.schedule(
        name=group.named("load"),
        job_name=group.named("load"),
        cron_schedule=group.cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Loads what is new in the group's topics. Topics whose records will soon be removed by retention "
        "come first.",
    )
    def load(context: dg.ScheduleEvaluationContext, penstock: PenstockResource) -> list[dg.RunRequest] | dg.SkipReason:
        keys = known_keys(context.instance, group)
        if not keys:
            return dg.SkipReason("no topic is known yet; the sensor new_topics adds them")
        waiting = {key_of(status.topic): status for status in ask_group_status(penstock, group) if _has_work(status)}
        busy = _busy(context.instance, group, keys)
        due = (waiting.keys() & set(keys)) - busy
        if not due:
            return dg.SkipReason(f"nothing new in {len(keys)} topics; {len(busy & waiting.keys())} are being loaded")
        max_topics = penstock.settings().topics_per_run
        tick_time = context.scheduled_execution_time.isoformat()
        return [_request(run_keys, waiting, tick_time) for run_keys in _key_ranges(keys, due, max_topics)]

    return load


def _has_work(status: TopicStatus) -> bool:
    """Whether a load has records to fetch or an error to report. A topic that was deleted has neither."""
    return status.incarnation is not None and (status.error is not None or status.loadable != 0)


def _busy(instance: dg.DagsterInstance, group: TopicGroup, keys: Sequence[str]) -> set[str]:
    """The keys of unfinished runs: a second run of the same topic would only wait for the first."""
    busy: set[str] = set()
    positions = {key: position for position, key in enumerate(keys)}
    jobs = {group.named("load"), group.named("backfill")}
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        # A run that was launched on the asset's page belongs to a job that Dagster itself defines.
        if run.job_name in jobs or group.tables in (run.asset_selection or ()):
            first = positions.get(run.tags.get(RANGE_START, run.tags.get("dagster/partition", "")))
            last = positions.get(run.tags.get(RANGE_END, ""), first)
            if first is not None and last is not None:
                busy.update(keys[first : last + 1])
    return busy


def _key_ranges(keys: Sequence[str], due: Collection[str], max_keys: int) -> Iterator[list[str]]:
    """Ranges of at most `max_keys` keys that start and end with a wanted key. A run takes all keys of its range."""
    positions = [position for position, key in enumerate(keys) if key in due]
    while positions:
        in_range = [position for position in positions if position < positions[0] + max_keys]
        yield list(keys[in_range[0] : in_range[-1] + 1])
        positions = positions[len(in_range) :]


def _request(run_keys: list[str], waiting: dict[str, TopicStatus], tick_time: str) -> dg.RunRequest:
    now = now_ms()
    shares = [waiting[key].left_share(now) for key in run_keys if key in waiting]
    min_share = min((share for share in shares if share is not None), default=1.0)
    priority = next((priority for limit, priority in _PRIORITIES if min_share < limit), None)
    tags = {**run_tags(run_keys), **({_PRIORITY: priority} if priority else {})}
    return dg.RunRequest(run_key=f"{tick_time}: {run_keys[0]} to {run_keys[-1]}", tags=tags)


def group_schedules(group: TopicGroup, settings: Settings) -> list[dg.ScheduleDefinition]:
    """The schedules of a group. Those that observe and verify request the same run at each tick."""
    watch = "Observes every topic: lag, freshness, and the time until records are lost."
    actions = (("watch", settings.watch_cron, watch), ("verify", settings.verify_cron, "Verifies every table."))
    regular = [
        dg.ScheduleDefinition(
            name=group.named(action),
            job_name=group.named(action),
            cron_schedule=cron,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=description,
        )
        for action, cron, description in actions
    ]
    return [_load_schedule(group), *regular]
