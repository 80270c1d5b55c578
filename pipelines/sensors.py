"""The sensor of a cluster: a topic that appears becomes a partition of its group, and a run is asked for."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import dagster as dg

from kafka_io.model import TopicEntry
from pipelines.group import TopicGroup, cluster_named, pool_of
from pipelines.partitions import key_of, known_keys, run_tags
from resources.penstock import PenstockResource
from resources.settings import Settings

_WATCH_S = 10.0
"""How long a tick with nothing to do waits for a change in ZooKeeper, shared by all clusters: ticks go in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The sensor's cursor: new topics that a tick saw, and the next one adds and loads.

    Args:
        at: when they were noted. Part of their run keys: whoever removes a partition to have it loaded again gets a
            new run (O02).
        topics: their incarnations, by name.
    """

    at: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, cursor: str | None) -> Self:
        """The inverse of `text`; a cursor that is no such thing is an empty one, for the next tick notes afresh."""
        try:
            read = json.loads(cursor or "{}")
            return cls(at=str(read["at"]), topics={str(name): str(life) for name, life in read["topics"].items()})
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    @property
    def text(self) -> str:
        """As the cursor holds it."""
        return json.dumps({"at": self.at, "topics": dict(self.topics)})


def new_topics_sensor(cluster: str, jobs: Mapping[TopicGroup, Any]) -> dg.SensorDefinition:
    """Compares the registry with the partitions that Dagster knows, afresh each tick: what is missing is new.

    A tick only notes new topics in its cursor; the next one adds them as partitions and asks for their runs. So a
    daemon that dies between the two leaves the note, the tick is repeated under the same run keys (O01), and a topic
    that is gone again by then was never there (O07). A topic that vanishes later leaves its partition and table alone.

    Args:
        cluster: whose topics.
        jobs: its groups, and the job that loads each.
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
        noted = Noted.parse(context.cursor)
        found = _found(penstock, cluster, settings, known, wait=not noted.topics)
        new = [one for one in found if _is_new(one, settings, cluster, known) and one.name not in noted.topics]
        page = {one.name: one.incarnation for one in new[: settings.new_topics_per_tick]}
        there = [one for one in found if one.name in noted.topics]
        members = _by_group(there, jobs, settings, cluster)
        if there:
            _make_pool(context.instance, pool_of(cluster))
        result = dg.SensorResult(
            dynamic_partitions_requests=[
                group.partitions.build_add_request([key_of(one.name) for one in topics]) for group, topics in members
            ],
            run_requests=[
                request for group, topics in members for request in _requests(group, topics, noted, settings)
            ],
            cursor=Noted(at=datetime.now(UTC).isoformat(), topics=page).text,
        )
        return result if there else result._replace(skip_reason=dg.SkipReason(_told(found, new, page)))

    return new_topics


def _make_pool(instance: dg.DagsterInstance, pool: str) -> None:
    """Make a pool with the default limit, before there is a run for it.

    Dagster 1.13 makes it when it first sees a queued run of it, and holds to it only what it sees after that.
    """
    storage = instance.event_log_storage
    if pool not in storage.get_concurrency_keys():
        storage.initialize_concurrency_limit_to_default(pool)


def _found(
    penstock: PenstockResource, cluster: str, settings: Settings, known: Mapping[str, set[str]], *, wait: bool
) -> list[TopicEntry]:
    """The topics that can be loaded. If none of them is new, it waits a little for one that is."""

    def listed() -> list[TopicEntry]:
        # A topic none of whose brokers is up, or whose partitions have no state yet, has nothing to load yet (Z07).
        return [one for one in penstock.topics(cluster) if one.partitions]

    if not wait:
        return listed()
    with penstock.changes(cluster) as changed:
        found = listed()
        if not any(_is_new(one, settings, cluster, known) for one in found) and changed(
            _WATCH_S / len(settings.clusters)
        ):
            found = listed()
    return found


def _is_new(one: TopicEntry, settings: Settings, cluster: str, known: Mapping[str, set[str]]) -> bool:
    return key_of(one.name) not in known.get(settings.group_of(cluster, one.name), ())


def _by_group(
    topics: Sequence[TopicEntry], groups: Iterable[TopicGroup], settings: Settings, cluster: str
) -> list[tuple[TopicGroup, list[TopicEntry]]]:
    by_name = {group.name: group for group in groups}
    found = defaultdict(list)
    for one in topics:
        name = settings.group_of(cluster, one.name)
        if name in by_name:  # one that was declared: the settings may have changed since
            found[by_name[name]].append(one)
    return list(found.items())


def _requests(
    group: TopicGroup, topics: Sequence[TopicEntry], noted: Noted, settings: Settings
) -> Iterator[dg.RunRequest]:
    """Runs over the new topics of a group. A run key holds what is loaded: topics, their incarnations, from when on."""
    most = settings.topics_per_run
    for at in range(0, len(topics), most):
        part = topics[at : at + most]
        keys = [key_of(one.name) for one in part]
        exact = repr([(one.name, one.incarnation) for one in part]).encode()
        run_key = f"{keys[0]} to {keys[-1]}: {len(keys)} new, {noted.at}, {hashlib.sha256(exact).hexdigest()[:16]}"
        yield dg.RunRequest(run_key=run_key, job_name=group.named("load"), tags=run_tags(keys))


def _told(found: Sequence[TopicEntry], new: Sequence[TopicEntry], page: Mapping[str, str]) -> str:
    if not page:
        return f"no new topic; topics in the cluster: {len(found)}"
    more = f", and {len(new) - len(page)} more after them" if len(new) > len(page) else ""
    return f"new topics seen: {len(page)}{more}; the next tick adds and loads them"
