"""One run of a group: its topics, the order in which they load, their results, and how the run ends."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg
from pyspark.sql import SparkSession

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import LocatedError
from pipelines.defs.group_status import group_status
from pipelines.defs.metadata import log_progress
from pipelines.defs.partitions import key_of, topic_of
from pipelines.defs.topic_group import TopicGroup
from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.window import LoadWindow
from pipelines.status.status import TopicStatus, now_ms
from resources.penstock import PenstockResource
from resources.settings import Retries, Settings
from resources.spark import ui_of

Connect = Callable[[], Cluster]
"""Returns the run's cluster. The first call opens it; the run closes it at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What one run loads, if that is not simply everything new.

    Args:
        since: load also older records from this position on, as the user wrote it.
        until: load nothing from this position on, as the user wrote it.
        choices: replace the choices of the settings, by name.
    """

    since: str | None
    until: str | None
    choices: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTopic:
    """What a run did with one topic.

    `late_s` is how long the oldest record without a row had waited when the run began, in seconds; None if unknown.
    """

    load: TopicLoad
    late_s: float | None = None


def load_topics(
    context: dg.AssetExecutionContext,
    request: LoadRequest,
    penstock: PenstockResource,
    group: TopicGroup,
    connect: Connect,
) -> Iterator[tuple[str, LoadedTopic]]:
    """Load the run's topics, those first that lose records first. Yields each partition key with its result.

    An error that concerns the whole group, such as a cluster that does not answer, becomes the result of each topic.
    """
    topics: dict[str, str] = {}
    for key in context.partition_keys:
        try:
            topics[topic_of(key)] = key
        except ValueError as error:
            yield key, _failed(key, error)
    try:
        settings, cluster = penstock.settings(), connect()
        statuses = {status.topic: status for status in group_status(settings, cluster, group, topics)}
        began_ms = now_ms()
        loader = _loader(context, request, penstock, cluster)
    except (LocatedError, ValueError) as error:
        yield from ((key, _failed(key, error)) for key in topics.values())
        return
    for topic in dict.fromkeys((*statuses, *topics)):
        status = statuses.get(topic)
        reason = _reason_to_skip(settings, group, topic, status)
        load = _skipped(loader, topic, reason) if reason else loader.load(topic)
        yield topics[topic], LoadedTopic(load=load, late_s=status.late_s(began_ms) if status else None)


def _loader(
    context: dg.AssetExecutionContext, request: LoadRequest, penstock: PenstockResource, cluster: Cluster
) -> Loader:
    settings = penstock.settings()
    return Loader.of(
        settings,
        cluster,
        lambda: _session(context, penstock),
        choices=settings.choices_of(cluster.name).with_overrides(request.choices),
        window=LoadWindow.parse(request.since, request.until, now=datetime.now(UTC)),
        run_id=context.run.run_id,
        on_progress=lambda topic: log_progress(context.log, key_of(topic)),
    )


def _session(context: dg.AssetExecutionContext, penstock: PenstockResource) -> SparkSession:
    """Start Spark when the first topic needs it, and show the address of its UI.

    The UI ends with the run (decision D13).
    """
    session = penstock.session()
    page = ui_of(session)
    if page:
        context.log.info("Spark's UI, while this run lasts: %s", page)
        context.add_output_metadata({"spark_ui": dg.MetadataValue.url(page)})
    return session


def _reason_to_skip(settings: Settings, group: TopicGroup, topic: str, status: TopicStatus | None) -> str | None:
    """Why this run must not load a topic that is a partition of its group; None if it may. The table stays as it is."""
    if status is not None:
        return "the cluster no longer has the topic" if status.incarnation is None else None
    if not settings.rules(group.cluster).allows(topic):
        return "the settings no longer allow the topic"
    current_group = settings.group_of(group.cluster, topic)
    return None if current_group == group.name else f"the topic belongs to the group {current_group} now"


def _skipped(loader: Loader, topic: str, reason: str) -> TopicLoad:
    return TopicLoad(topic=topic, table=loader.tables(topic).uri, warnings=(f"not loaded: {reason}",))


def statuses_after(
    context: dg.AssetExecutionContext,
    penstock: PenstockResource,
    group: TopicGroup,
    loaded: Mapping[str, LoadedTopic],
    connect: Connect,
) -> dict[str, TopicStatus]:
    """The status of the run's topics after their loads, by partition key.

    A topic whose status cannot be determined is missing, and the run's log says why.
    """
    topics = {result.load.topic for result in loaded.values()}
    try:
        statuses = group_status(penstock.settings(), connect(), group, topics)
    except (LocatedError, ValueError) as error:
        context.log.warning("the status of the topics after this run is unknown: %s", error)
        return {}
    return {key_of(status.topic): status for status in statuses}


def failure(context: dg.AssetExecutionContext, loaded: Mapping[str, LoadedTopic], retries: Retries) -> Exception:
    """The exception that ends a run in which a topic failed.

    It asks Dagster for a retry if an error is temporary and attempts are left; otherwise it fails the run for good.
    """
    errors = [f"{key}: {result.load.error}" for key, result in loaded.items() if result.load.error]
    summary = f"{len(errors)} of {len(loaded)} topics were not loaded completely: {errors[0]}"
    if any(result.load.retriable for result in loaded.values()) and context.retry_number < retries.most:
        wait_s = retries.wait_s * 2**context.retry_number
        context.log.warning("%s; the next attempt starts in %.0f s", summary, wait_s)
        return dg.RetryRequested(max_retries=retries.most, seconds_to_wait=wait_s)
    return dg.Failure(summary, metadata={"errors": dg.MetadataValue.json(errors)}, allow_retries=False)


def log_result(context: dg.AssetExecutionContext, key: str, load: TopicLoad) -> None:
    """Write the result of one topic into the run's log."""
    context.log.info("%s: %d rows, version %s, %.1f s", key, load.rows, load.version, load.seconds)
    for warning in load.warnings:
        context.log.warning("%s: %s", key, warning)
    if load.error:
        context.log.error("%s: %s", key, load.error)


def _failed(key: str, error: Exception) -> LoadedTopic:
    passing = isinstance(error, LocatedError) and error.retriable
    return LoadedTopic(load=TopicLoad(topic=key, table="", error=f"{type(error).__name__}: {error}", retriable=passing))
