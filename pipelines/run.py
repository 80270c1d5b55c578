"""One run of a group: which topics, in which order, what came of them, and how the run ends."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg
from pyspark.sql import SparkSession

from kafka_io.client.cluster import Cluster
from kafka_io.errors import PlacedError
from pipelines.group import TopicGroup
from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.window import Window
from pipelines.looking import look
from pipelines.partitions import key_of, topic_of
from pipelines.report import progress
from pipelines.watching.status import TopicStatus, now_ms
from resources.penstock import PenstockResource
from resources.settings import Retries, Settings
from resources.spark import ui_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run is to do other than going on: the part of the logs to load, and choices in place of the settings'."""

    since: str | None
    until: str | None
    choices: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run did to a topic. Before it, the oldest record that was not loaded had waited for `late_s`, if known."""

    load: TopicLoad
    late_s: float | None = None


def loads(
    context: dg.AssetExecutionContext, asked: Asked, penstock: PenstockResource, group: TopicGroup
) -> Iterator[tuple[str, Done]]:
    """The loads of the run's topics by partition key, in the order in which they would lose records.

    What keeps the whole group from being loaded, such as a cluster without an answer, is told of each of its topics.
    """
    topics: dict[str, str] = {}
    for key in context.partition_keys:
        try:
            topics[topic_of(key)] = key
        except ValueError as error:
            yield key, _failed(key, error)
    with ExitStack() as closing:
        try:
            settings = penstock.settings()
            found = {status.topic: status for status in look(penstock, group, topics)}
            began_ms = now_ms()
            cluster = closing.enter_context(penstock.cluster(group.cluster))
            loader = _loader(context, asked, penstock, settings, cluster)
        except (PlacedError, ValueError) as error:
            yield from ((key, _failed(key, error)) for key in topics.values())
            return
        for topic in dict.fromkeys((*found, *topics)):
            status = found.get(topic)
            reason = _not_now(settings, group, topic, status)
            load = _left(loader, topic, reason) if reason else loader.load(topic)
            yield topics[topic], Done(load=load, late_s=status.late_s(began_ms) if status else None)


def _loader(
    context: dg.AssetExecutionContext,
    asked: Asked,
    penstock: PenstockResource,
    settings: Settings,
    cluster: Cluster,
) -> Loader:
    return Loader.of(
        settings,
        cluster,
        lambda: _session(context, penstock),
        choices=settings.choices_of(cluster.name).but(asked.choices),
        window=Window.parse(asked.since, asked.until, now=datetime.now(UTC)),
        run_id=context.run.run_id,
        on_progress=lambda topic: progress(context.log, key_of(topic)),
    )


def _session(context: dg.AssetExecutionContext, penstock: PenstockResource) -> SparkSession:
    """Spark, once a topic needs it. Where its pages are is told now: they end with the run (FINDINGS, 4)."""
    session = penstock.session()
    page = ui_of(session)
    if page:
        context.log.info("Spark's UI, while this run lasts: %s", page)
        context.add_output_metadata({"spark_ui": dg.MetadataValue.url(page)})
    return session


def _not_now(settings: Settings, group: TopicGroup, topic: str, status: TopicStatus | None) -> str | None:
    """Why a topic that is a partition of this group is not to be loaded by it; its table stays as it is."""
    if status is not None:
        return "it is gone from the cluster" if status.incarnation is None else None
    if not settings.rules(group.cluster).allows(topic):
        return "the settings no longer allow it"
    now = settings.group_of(group.cluster, topic)
    return None if now == group.name else f"it is in the group {now} now, and loaded there"


def _left(loader: Loader, topic: str, reason: str) -> TopicLoad:
    return TopicLoad(topic=topic, table=loader.tables(topic).uri, warnings=(f"not loaded: {reason}",))


def standing(
    context: dg.AssetExecutionContext, penstock: PenstockResource, group: TopicGroup, done: Mapping[str, Done]
) -> dict[str, TopicStatus]:
    """How the run's topics stand now, by partition key; what cannot be known is missing, and the log says why."""
    try:
        found = look(penstock, group, {one.load.topic for one in done.values()})
    except (PlacedError, ValueError) as error:
        context.log.warning("how the topics stand now is not known: %s", error)
        return {}
    return {key_of(one.topic): one for one in found}


def failure(context: dg.AssetExecutionContext, done: Mapping[str, Done], retries: Retries) -> Exception:
    """How a run ends that did not load everything: again after a while, if time may help; else for good."""
    failures = [f"{key}: {one.load.error}" for key, one in done.items() if one.load.error]
    told = f"{len(failures)} of {len(done)} topics were not loaded in full: {failures[0]}"
    if any(one.load.passing for one in done.values()) and context.retry_number < retries.most:
        wait_s = retries.wait_s * 2**context.retry_number
        context.log.warning("%s; again in %.0f s", told, wait_s)
        return dg.RetryRequested(max_retries=retries.most, seconds_to_wait=wait_s)
    return dg.Failure(told, metadata={"errors": dg.MetadataValue.json(failures)}, allow_retries=False)


def tell(context: dg.AssetExecutionContext, key: str, load: TopicLoad) -> None:
    """What came of a topic, in the run's log."""
    context.log.info("%s: %d rows, version %s, %.1f s", key, load.rows, load.version, load.seconds)
    for sentence in load.warnings:
        context.log.warning("%s: %s", key, sentence)
    if load.error:
        context.log.error("%s: %s", key, load.error)


def _failed(key: str, error: Exception) -> Done:
    passing = isinstance(error, PlacedError) and error.retriable
    return Done(load=TopicLoad(topic=key, table="", error=f"{type(error).__name__}: {error}", passing=passing))
