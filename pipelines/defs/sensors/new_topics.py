"""The sensor of a cluster: it adds each new topic, makes Dagster load the topic's asset, and requests its first run."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import msgspec

from kafka_io.model import TopicEntry
from pipelines.defs.catalog.catalog import Catalog, TopicSchedule, cluster_named, pool_of, watch_pool_of
from pipelines.defs.catalog.known_topics import ATTEMPT, TopicStorage, Waiting
from pipelines.defs.runs.run import SINCE_TAG, UNTIL_TAG
from pipelines.defs.runs.run_tags import ATTEMPT_TAG, topic_tags
from pipelines.defs.sensors.reload import reload_definitions
from pipelines.defs.sensors.sensor_cursors import cursor_from
from pipelines.defs.sensors.upgrade import upgrade
from resources.penstock import PenstockResource

_MAX_WAIT_S = 10.0
"""How long a tick without new topics waits for one. All clusters share this time, as their ticks run in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The sensor's cursor: the entries of the storage for which the last tick requested runs.

    The next tick removes them. If the daemon dies before it has stored the cursor, the tick repeats with the same run
    keys (fault O01).
    """

    entries: tuple[str, ...] = ()


def new_topics_sensor(
    catalog: Catalog, cluster: str, schedules: Sequence[TopicSchedule], jobs: Sequence[Any]
) -> dg.SensorDefinition:
    """The sensor that compares the cluster's topics with those that Dagster knows, at each tick.

    A tick that finds new topics adds their names, makes Dagster load their assets, and requests their runs, if Dagster
    can do so at once; otherwise a later tick requests the runs, when this process has the assets.

    Args:
        catalog: what definitions were built from.
        cluster: the name of the cluster.
        schedules: the schedules of the cluster.
        jobs: their load jobs.
    """

    @dg.sensor(
        name=cluster_named(catalog, "new_topics", cluster),
        jobs=jobs,
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adds topics that are new in the cluster {cluster}, and loads them.",
    )
    def new_topics(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        storage = TopicStorage(instance=context.instance, prefix=catalog.name, cluster=cluster)
        search = _Tick(
            context=context, catalog=catalog, storage=storage, schedules=schedules, penstock=catalog.source.fresh()
        )
        return search.result()

    return new_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """One tick of the sensor of a cluster."""

    context: dg.SensorEvaluationContext
    catalog: Catalog
    storage: TopicStorage
    schedules: Sequence[TopicSchedule]
    penstock: PenstockResource

    def result(self) -> dg.SensorResult:
        """Add what is new, and request the runs that can be requested now."""
        requested = cursor_from(self.context.cursor, Requested)
        waiting = [Waiting.parse(entry) for entry in self.storage.waiting() if entry not in requested.entries]
        self.storage.forget_waiting(requested.entries)
        sentences = upgrade(self.context.instance, self.storage, self.catalog)
        topics, refused = self._topics(wait=not waiting and not sentences)
        new, remaining = self._add_new(topics)
        is_marked = self._mark_deleted(topics.keys() | refused)
        done = False
        if new or is_marked or sentences:
            reload = reload_definitions(self.context, self.penstock.settings().webserver)
            done = reload.done
            sentences = [*sentences, *_new_sentences(new, remaining), reload.sentence]
        self.storage.forget_waiting([str(entry) for entry in waiting if entry.topic not in topics])
        ready = [entry for entry in (*waiting, *new) if self._is_ready(entry, topics, done=done)]
        runs = list(self._run_requests(ready, topics))
        if runs:
            self._create_pools()
            for sentence in sentences:
                self.context.log.info(sentence)
        cursor = msgspec.json.encode(Requested(entries=tuple(map(str, ready)))).decode()
        reason = None if runs else "; ".join(sentences) or f"no new topic; topics in the cluster: {len(topics)}"
        return dg.SensorResult(run_requests=runs, skip_reason=reason, cursor=cursor)

    def _topics(self, *, wait: bool) -> tuple[dict[str, TopicEntry], frozenset[str]]:
        """The topics of the cluster that can be loaded, and the names of those that it cannot describe now.

        With `wait` and without a new topic it waits briefly.
        """
        name, known = self.storage.cluster, set(self.storage.known().names)

        def list_topics() -> tuple[dict[str, TopicEntry], frozenset[str]]:
            listing = self.penstock.topics(name)
            entries = {topic.name: topic for topic in listing.entries if self.catalog.takes(topic.name)}
            return entries, frozenset(listing.refused)

        if not wait:
            return list_topics()
        # The watch is set before the first listing, so a change between listing and waiting is not missed.
        with self.penstock.topic_changes(name) as wait_for_change:
            topics, refused = list_topics()
            if not _loadable(topics) - known and wait_for_change(_MAX_WAIT_S / len(self.penstock.settings().clusters)):
                return list_topics()
        return topics, refused

    def _add_new(self, topics: Mapping[str, TopicEntry]) -> tuple[list[Waiting], int]:
        """Add topics that are not known, and count those that a later tick adds."""
        known = set(self.storage.known().names)
        names = sorted(_loadable(topics) - known)
        max_new_topics = self.penstock.settings().new_topics_per_tick
        now = now_text()
        new = [Waiting(since=now, topic=name) for name in names[:max_new_topics]]
        # A topic waits before it is known: if the daemon dies in between, the next tick finds it again.
        self.storage.wait([str(entry) for entry in new])
        self.storage.add([entry.topic for entry in new])
        return new, len(names) - len(new)

    def _mark_deleted(self, existing: Collection[str]) -> bool:
        """Store which known topics the cluster no longer has, and return whether that changed."""
        settings, cluster = self.penstock.settings(), self.storage.cluster
        known = self.storage.known()
        rules = settings.rules(cluster)
        own = {name for name in known.names if self.catalog.takes(name) and rules.allows(name)}
        deleted = own - set(existing)
        if deleted == known.deleted & own:
            return False
        self.storage.mark_deleted(deleted | (known.deleted - own))
        return True

    def _is_ready(self, entry: Waiting, topics: Mapping[str, TopicEntry], *, done: bool) -> bool:
        """Whether a run can be requested: the daemon would refuse a whole tick that names an unknown asset."""
        is_defined = any(entry.topic in schedule.specs for schedule in self.schedules)
        return entry.topic in topics and (is_defined or done)

    def _run_requests(self, entries: Sequence[Waiting], topics: Mapping[str, TopicEntry]) -> Iterator[dg.RunRequest]:
        """Runs over the waiting topics, `topics_per_run` each. Topics that a run left keep the config of that run."""
        max_topics = self.penstock.settings().topics_per_run
        entries_by_run: dict[tuple[str, str, str], list[Waiting]] = {}
        for entry in entries:
            schedule = self.penstock.settings().schedule_of(self.storage.cluster, entry.topic)
            entries_by_run.setdefault((schedule, entry.run_id, entry.since), []).append(entry)
        schedules = {schedule.name: schedule for schedule in self.schedules}
        for (name, run_id, _), members in entries_by_run.items():
            for start in range(0, len(members), max_topics):
                yield self._run_request(schedules[name], run_id, members[start : start + max_topics], topics)

    def _run_request(
        self, schedule: TopicSchedule, run_id: str, entries: Sequence[Waiting], topics: Mapping[str, TopicEntry]
    ) -> dg.RunRequest:
        """A run. Its key identifies what is loaded: the topics, their incarnations, and since when they wait.

        The key is short, because Dagster shows it as a tag and cuts off what is longer (fault F17).
        """
        identity = repr([(str(entry), topics[entry.topic].incarnation) for entry in entries]).encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        names = [entry.topic for entry in entries]
        left_by = self.context.instance.get_run_by_id(run_id) if run_id else None
        window = {key: text for key, text in (left_by.tags if left_by else {}).items() if key in (SINCE_TAG, UNTIL_TAG)}
        since = entries[0].since
        attempt = {ATTEMPT_TAG: since.removeprefix(ATTEMPT)} if since.startswith(ATTEMPT) else {}
        return dg.RunRequest(
            run_key=f"{since} {digest}",
            job_name=schedule.named("load"),
            asset_selection=schedule.keys(names),
            asset_check_keys=[],  # otherwise Dagster adds all checks of the tables; loads report those that matter
            run_config=left_by.run_config if left_by else None,
            tags={**topic_tags(schedule.cluster, names), **window, **attempt},
        )

    def _create_pools(self) -> None:
        """Create the pools with their default limit before a run needs them.

        Dagster 1.13 creates a pool only when it sees a queued run of it, and applies the limit only to later runs.
        """
        storage = self.context.instance.event_log_storage
        for pool in (pool_of(self.storage.cluster), watch_pool_of(self.storage.cluster)):
            if pool not in storage.get_concurrency_keys():
                storage.initialize_concurrency_limit_to_default(pool)


def now_text() -> str:
    """The time of a tick, as run keys contain it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _loadable(topics: Mapping[str, TopicEntry]) -> set[str]:
    """The topics with partitions. Without them, no broker is up, or they have no state yet (fault Z07)."""
    return {name for name, topic in topics.items() if topic.partitions}


def _new_sentences(new: Sequence[Waiting], remaining: int) -> list[str]:
    and_more = f", and {remaining} more after them" if remaining else ""
    return [f"new topics: {len(new)}{and_more}"] if new else []
