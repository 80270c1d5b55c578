"""The schedules of a group: load what is new, look at all topics, verify all tables."""

from collections.abc import Collection, Iterator, Sequence

import dagster as dg

from pipelines.group import TopicGroup
from pipelines.looking import look
from pipelines.partitions import RANGE_END, RANGE_START, key_of, known_keys, run_tags
from pipelines.watching.status import TopicStatus, now_ms
from resources.penstock import PenstockResource
from resources.settings import Settings

_PRIORITY = "dagster/priority"
_PRIORITIES = ((0.1, "20"), (0.3, "10"))
"""Runs whose topics have less than this share of their retention left come before others."""
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def load_schedule(group: TopicGroup) -> dg.ScheduleDefinition:
    """Goes on with the topics that have something new, those first whose records retention will remove first."""

    @dg.schedule(
        name=group.named("load"),
        job_name=group.named("load"),
        cron_schedule=group.cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Loads what is new of the group's topics. {load_schedule.__doc__}",
    )
    def load(context: dg.ScheduleEvaluationContext, penstock: PenstockResource) -> list[dg.RunRequest] | dg.SkipReason:
        keys = known_keys(context.instance, group)
        if not keys:
            return dg.SkipReason("no topic is known yet; the sensor new_topics adds them")
        waiting = {key_of(one.topic): one for one in look(penstock, group) if _waits(one)}
        busy = _busy(context.instance, group, keys)
        wanted = (waiting.keys() & set(keys)) - busy
        if not wanted:
            return dg.SkipReason(f"nothing new in {len(keys)} topics; {len(busy & waiting.keys())} are being loaded")
        most = penstock.settings().topics_per_run
        at = context.scheduled_execution_time.isoformat()
        return [_request(part, waiting, at) for part in _parts(keys, wanted, most)]

    return load


def _waits(one: TopicStatus) -> bool:
    """Whether a load has something to do, or to say. A topic that is gone is frozen."""
    return one.incarnation is not None and (one.error is not None or one.lag != 0)


def _busy(instance: dg.DagsterInstance, group: TopicGroup, keys: Sequence[str]) -> set[str]:
    """The topics of runs that have not ended: another run would only wait behind them."""
    found: set[str] = set()
    places = {key: at for at, key in enumerate(keys)}
    jobs = {group.named("load"), group.named("backfill")}
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        # What is launched from the asset's page is of a job that Dagster makes.
        if run.job_name in jobs or group.tables in (run.asset_selection or ()):
            first = places.get(run.tags.get(RANGE_START, run.tags.get("dagster/partition", "")))
            last = places.get(run.tags.get(RANGE_END, ""), first)
            if first is not None and last is not None:
                found.update(keys[first : last + 1])
    return found


def _parts(keys: Sequence[str], wanted: Collection[str], most: int) -> Iterator[list[str]]:
    """Stretches of at most `most` of `keys` that begin and end with a wanted one: a run takes all between."""
    places = [at for at, key in enumerate(keys) if key in wanted]
    while places:
        inside = [at for at in places if at < places[0] + most]
        yield list(keys[inside[0] : inside[-1] + 1])
        places = places[len(inside) :]


def _request(part: list[str], waiting: dict[str, TopicStatus], at: str) -> dg.RunRequest:
    now = now_ms()
    shares = [share for key in part if key in waiting and (share := waiting[key].left_share(now)) is not None]
    least = min(shares, default=1.0)
    priority = next((value for below, value in _PRIORITIES if least < below), None)
    tags = {**run_tags(part), **({_PRIORITY: priority} if priority else {})}
    return dg.RunRequest(run_key=f"{at}: {part[0]} to {part[-1]}", tags=tags)


def regular_schedules(group: TopicGroup, settings: Settings) -> list[dg.ScheduleDefinition]:
    """Those that ask for the same run each time."""
    return [
        dg.ScheduleDefinition(
            name=group.named(what),
            job_name=group.named(what),
            cron_schedule=cron,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=description,
        )
        for what, cron, description in (
            ("watch", settings.watch_cron, "Looks at every topic: lag, freshness, and the race with retention."),
            ("verify", settings.verify_cron, "Verifies every table."),
        )
    ]
