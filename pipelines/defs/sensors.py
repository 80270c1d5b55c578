"""The sensor of a cluster: it adds each new topic as a partition of its group, and requests a run that loads it."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import dagster as dg
import msgspec

from kafka_io.model import TopicEntry
from pipelines.defs.partitions import key_of, known_keys, run_tags
from pipelines.defs.topic_group import TopicGroup, cluster_named, pool_of
from resources.penstock import PenstockResource

_MAX_WAIT_S = 10.0
"""How long a tick without new topics waits for one. All clusters share this time, as their ticks run in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTopics:
    """The sensor's cursor: the new topics that one tick saw, and that the next tick adds and loads.

    Args:
        at: when they were seen. It is part of the run keys, so a topic whose partition was removed by a user gets a
            new run when it is added again (fault O02).
        topics: the incarnation of each topic, by name.
    """

    at: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, cursor: str | None) -> Self:
        """Read a cursor, which is JSON. An unreadable cursor is an empty one: this tick finds the new topics again."""
        try:
            return msgspec.json.decode(cursor or "{}", type=cls)
        except msgspec.DecodeError:
            return cls()


def new_topics_sensor(cluster: str, jobs: Mapping[TopicGroup, Any]) -> dg.SensorDefinition:
    """The sensor that compares the registry with Dagster's partitions at each tick; a missing partition is a new topic.

    A tick only stores new topics in its cursor. The next tick adds their partitions and requests their runs. If the
    daemon dies between the two, the cursor remains and the tick repeats with the same run keys (fault O01). If a topic
    is deleted between the two, nothing is added (fault O07). A topic that is deleted later keeps its partition and its
    table.

    Args:
        cluster: the name of the cluster.
        jobs: the load job of each group of the cluster.
    """

    @dg.sensor(
        name=cluster_named("new_topics", cluster),
        jobs=list(jobs.values()),
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adds topics that are new in the cluster {cluster}, and loads them.",
    )
    def new_topics(context: dg.SensorEvaluationContext, penstock: PenstockResource) -> dg.SensorResult:
        settings = penstock.settings()
        known = {group.name: set(known_keys(context.instance, group)) for group in jobs}

        def is_new(topic: TopicEntry) -> bool:
            return key_of(topic.name) not in known.get(settings.group_of(cluster, topic.name), ())

        pending = PendingTopics.parse(context.cursor)
        topics = _loadable_topics(penstock, cluster, is_new, wait=not pending.topics)
        new = [topic for topic in topics if is_new(topic) and topic.name not in pending.topics]
        next_pending = {topic.name: topic.incarnation for topic in new[: settings.new_topics_per_tick]}
        cursor = msgspec.json.encode(PendingTopics(at=datetime.now(UTC).isoformat(), topics=next_pending)).decode()
        confirmed = [topic for topic in topics if topic.name in pending.topics]
        if not confirmed:
            return dg.SensorResult(skip_reason=_skip_reason(topics, new, next_pending), cursor=cursor)
        _create_pool(context.instance, pool_of(cluster))
        additions: list[dg.AddDynamicPartitionsRequest] = []
        run_requests: list[dg.RunRequest] = []
        for group in jobs:
            members = [topic for topic in confirmed if settings.group_of(cluster, topic.name) == group.name]
            if members:
                additions.append(group.partitions.build_add_request([key_of(topic.name) for topic in members]))
                run_requests += _run_requests(group, members, pending, settings.topics_per_run)
        return dg.SensorResult(run_requests=run_requests, dynamic_partitions_requests=additions, cursor=cursor)

    return new_topics


def _create_pool(instance: dg.DagsterInstance, pool: str) -> None:
    """Create the pool with its default limit before a run needs it.

    Dagster 1.13 creates a pool only when it sees a queued run of it, and applies the limit only to later runs.
    """
    storage = instance.event_log_storage
    if pool not in storage.get_concurrency_keys():
        storage.initialize_concurrency_limit_to_default(pool)


def _loadable_topics(
    penstock: PenstockResource, cluster: str, is_new: Callable[[TopicEntry], bool], *, wait: bool
) -> list[TopicEntry]:
    """The topics that can be loaded. With `wait`, if no topic is new, it waits briefly for a change and lists again."""

    def list_topics() -> list[TopicEntry]:
        # A topic without partitions has no broker that is up, or no partition state yet: nothing to load (fault Z07).
        return [topic for topic in penstock.topics(cluster) if topic.partitions]

    if not wait:
        return list_topics()
    # The watch is set before the first listing, so a change between listing and waiting is not missed.
    with penstock.topic_changes(cluster) as wait_for_change:
        topics = list_topics()
        if not any(map(is_new, topics)) and wait_for_change(_MAX_WAIT_S / len(penstock.settings().clusters)):
            topics = list_topics()
    return topics


def _run_requests(
    group: TopicGroup, topics: Sequence[TopicEntry], pending: PendingTopics, max_topics: int
) -> Iterator[dg.RunRequest]:
    """Runs over the new topics of a group, `max_topics` each.

    The run key identifies what is loaded: the topics, their incarnations, and when they were first seen.
    """
    for start in range(0, len(topics), max_topics):
        run_topics = topics[start : start + max_topics]
        keys = [key_of(topic.name) for topic in run_topics]
        identity = repr([(topic.name, topic.incarnation) for topic in run_topics]).encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        run_key = f"{keys[0]} to {keys[-1]}: {len(keys)} new, {pending.at}, {digest}"
        yield dg.RunRequest(run_key=run_key, job_name=group.named("load"), tags=run_tags(keys))


def _skip_reason(topics: Sequence[TopicEntry], new: Sequence[TopicEntry], next_pending: Mapping[str, str]) -> str:
    if not next_pending:
        return f"no new topic; topics in the cluster: {len(topics)}"
    remaining = len(new) - len(next_pending)
    more = f", and {remaining} more after them" if remaining else ""
    return f"new topics seen: {len(next_pending)}{more}; the next tick adds and loads them"
