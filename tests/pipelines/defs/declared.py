"""A resource with fixed topics, and ticks and runs without a daemon, for the tests of the Dagster definitions."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster._core.loader import LoadingContextForTest  # the resolver of the page needs one
from pydantic import Field

from kafka_io.errors import BrokerBusy, RegistryUnavailable, Where
from kafka_io.model import BrokerPartition, TopicEntry
from kafka_io.zookeeper.listing import Listing
from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog
from pipelines.defs.catalog.known_topics import KnownTopics, TopicStorage, Waiting
from pipelines.defs.catalog.topic_keys import key_name
from resources.penstock import PenstockResource
from resources.settings.schedules import ScheduleSettings
from resources.settings.settings import ClusterSettings, Retries, Settings
from resources.settings.topic_sections import TopicRules, TopicSections

CLUSTERS = {"main": ClusterSettings(zookeeper="unused")}
SETTINGS = Settings(lake="/nowhere", clusters=CLUSTERS, retries=Retries(most=2, wait_s=0.1))
"""One cluster, one schedule."""
LOAD = "load__main__topics"


def key(topic: str, cluster: str = "main") -> dg.AssetKey:
    """The key of the table of a topic."""
    return dg.AssetKey(["lake", cluster, key_name(topic)])


def catalog(*topics: str, settings: Settings = SETTINGS, deleted: Sequence[str] = (), **fields: Any) -> Catalog:
    """A catalog whose clusters all have these known topics. Runs read the settings file that the environment names."""
    known = KnownTopics(names=topics, deleted=frozenset(deleted))
    fields.setdefault("source", PenstockResource())
    return Catalog(settings=settings, known=dict.fromkeys(settings.clusters, known), **fields)


def defs_of(*topics: str, **fields: Any) -> dg.Definitions:
    """The definitions for known topics."""
    return definitions_of(catalog(*topics, **fields))


class FixedTopics(PenstockResource):
    """A resource whose clusters have the topics that the test gives."""

    clusters: dict[str, list[str]]
    incarnation: str = "1"
    silent: list[str] = Field(default_factory=list)
    pending: list[str] = Field(default_factory=list)
    scheduled: dict[str, str] = Field(default_factory=dict)
    later: list[str] = Field(default_factory=list)
    """Topics of the cluster `main` that appear while a tick waits."""
    denied: str = ""
    refused: list[str] = Field(default_factory=list)
    """Topics that the cluster has, and cannot describe."""
    per_tick: int = 500
    per_run: int = 50

    def settings(self) -> Settings:
        """Settings with the clusters and schedules of the test."""
        return Settings(
            lake="/nowhere",
            clusters=dict.fromkeys(self.clusters, ClusterSettings(zookeeper="unused")),
            schedules={name: ScheduleSettings(topics=(pattern,)) for name, pattern in self.scheduled.items()},
            topics=TopicSections(rules=TopicRules(deny=(self.denied,))),
            new_topics_per_tick=self.per_tick,
            topics_per_run=self.per_run,
            webserver="",
        )

    def topics(self, name: str) -> Listing[TopicEntry]:
        """The topics of a cluster. A silent cluster raises an error."""
        if name in self.silent:
            raise RegistryUnavailable("no ZooKeeper answers", Where(cluster=name))
        entries = tuple(
            TopicEntry(
                name=topic,
                incarnation=self.incarnation,
                partitions=() if topic in self.pending else (BrokerPartition(0, 0),),
            )
            for topic in self.clusters[name]
            if self.settings().rules(name).allows(topic) and topic not in self.refused
        )
        return Listing(entries=entries, refused=dict.fromkeys(self.refused, BrokerBusy("busy")))

    @contextmanager
    def topic_changes(self, name: str) -> Iterator[Callable[[float], bool]]:
        """A wait that ends at once. The topics of `later` appear during it."""

        def changed(_: float) -> bool:
            self.clusters[name].extend(self.later)
            return bool(self.later)

        yield changed


def storage_of(instance: dg.DagsterInstance, cluster: str = "main") -> TopicStorage:
    """The names that an instance knows of a cluster."""
    return TopicStorage(instance=instance, prefix="penstock", cluster=cluster)


def tick(
    instance: dg.DagsterInstance, penstock: PenstockResource, cursor: str | None = None, *, cluster: str = "main"
) -> Any:
    """Evaluate the sensor once, in a process that has loaded the names which the instance knows now.

    No code server is there to be reloaded, so a new topic is requested by the tick after it.
    """
    settings = penstock.settings()
    known = {name: storage_of(instance, name).known() for name in settings.clusters}
    defs = definitions_of(Catalog(source=penstock, settings=settings, known=known))
    with dg.build_sensor_context(instance=instance, definitions=defs, cursor=cursor) as context:
        return defs.resolve_sensor_def(f"new_topics__{cluster}").evaluate_tick(context)


def known(instance: dg.DagsterInstance, cluster: str = "main") -> list[str]:
    """The topics that an instance knows."""
    return list(storage_of(instance, cluster).known().names)


def waiting(instance: dg.DagsterInstance) -> list[str]:
    """The topics that wait for a run."""
    return [Waiting.parse(entry).topic for entry in storage_of(instance).waiting()]


def run(
    instance: dg.DagsterInstance,
    topics: Sequence[str],
    *,
    job: str = LOAD,
    config: Mapping[str, Any] | None = None,
    settings: Settings = SETTINGS,
    hidden: Mapping[str, str] | None = None,
    **tags: str,
) -> dg.ExecuteInProcessResult:
    """Run a job that loads these topics, which become known. The names of `tags` are those after `penstock/`."""
    storage_of(instance).add(topics)
    defs = defs_of(*storage_of(instance).known().names, settings=settings)
    keys = {key(topic) for topic in topics}
    # As the sensor and the schedule do: without a selection of checks, Dagster would execute all of them.
    subset = defs.resolve_job_def(job).get_subset(asset_selection=keys, asset_check_selection=set())
    return subset.execute_in_process(
        instance=instance,
        tags={**{f"penstock/{name}": value for name, value in tags.items()}, **(hidden or {})},
        run_config=config,
        raise_on_error=False,
    )


def job(instance: dg.DagsterInstance, action: str, settings: Settings = SETTINGS) -> dg.ExecuteInProcessResult:
    """Run the job of the schedule for an action over all known topics, as Dagster does."""
    defs = defs_of(*known(instance), settings=settings)
    return defs.resolve_job_def(f"{action}__main__topics").execute_in_process(instance=instance)


def loaded(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The metadata values of the materializations of a run, by the last part of the key."""
    outcomes = [event.materialization for event in result.get_asset_materialization_events()]
    return {
        outcome.asset_key.path[-1]: {name: value.value for name, value in outcome.metadata.items()}
        for outcome in outcomes
    }


def observed(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The metadata values of the observations of a run (topics without new rows), by the last part of the key."""
    events = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    outcomes = [event.asset_observation_data.asset_observation for event in events]
    return {
        outcome.asset_key.path[-1]: {name: value.value for name, value in outcome.metadata.items()}
        for outcome in outcomes
    }


def verdicts(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, dg.AssetCheckEvaluation]]:
    """The evaluations of checks in a run, by topic and by check."""
    evaluations: dict[str, dict[str, dg.AssetCheckEvaluation]] = {}
    for evaluation in result.get_asset_check_evaluations():
        evaluations.setdefault(evaluation.asset_key.path[-1], {})[evaluation.check_name] = evaluation
    return evaluations


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """The failure of the asset's step: description and metadata."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data


def shown_on_page(instance: dg.DagsterInstance, topic: str, check: str) -> bool | None:
    """What Dagster's page of the table of a topic shows of a check: whether it passes; None for "Not Evaluated".

    The page asks for the execution of the check for the newest materialization, which this resolves as it does.
    """
    check_key = dg.AssetCheckKey(key(topic), check)
    record = instance.event_log_storage.get_latest_asset_check_execution_by_key([check_key]).get(check_key)
    if record is None or not asyncio.run(record.targets_latest_materialization(LoadingContextForTest(instance))):
        return None
    return bool(record.evaluation and record.evaluation.passed)
