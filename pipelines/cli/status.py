"""`penstock status` and `penstock topics`."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from pipelines.cli import console
from pipelines.cli.completion import complete_topics
from pipelines.cli.options import GlobalOptions, cluster_option, clusters_of, only_cluster
from pipelines.cli.result import CommandResult, Errors, prints_result
from resources.explanations.explanation import ExitCode
from resources.settings import Settings
from resources.suggestion import did_you_mean

if TYPE_CHECKING:
    from pipelines.status.status import TopicStatus


@click.command("status")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@cluster_option
@prints_result
@click.pass_obj
def status_command(options: GlobalOptions, topics: Sequence[str], cluster: str | None) -> CommandResult:
    """Show lag, lateness and time until data is lost.

    The most urgent topic comes first. LATE is the age of the oldest record that is not loaded. LEFT is the time until
    retention may delete it: "~" marks an estimate, "?" an unknown time, "never" a topic without expiry. LOST counts the
    offsets that expired before they were loaded.

    The state of a topic is losing (retention deleted records before they were loaded, or may do so at any moment) or
    error (its last load failed, or it cannot be loaded). It is at risk if less than a quarter of the retention time is
    left, and held back if a transaction has been open for more than 15 minutes. A topic is behind if some records are
    not loaded yet, new if its table has no rows yet, and gone if the cluster has no such topic; its table stays. Others
    are loaded. Exit code 1: a topic is in state error or losing.

    \b
    Examples:
      penstock status
      penstock status clicks views --cluster old
      penstock status --json
    """
    from pipelines.status.status import TopicState, now_ms

    settings, now, failed = options.settings(), now_ms(), {TopicState.ERROR, TopicState.LOSING}
    names = [only_cluster(settings, cluster)] if topics else clusters_of(settings, cluster)
    statuses, errors = _statuses(settings, names, topics, now_ms=now)
    statuses.sort(key=lambda status: status.urgency(now))
    return CommandResult(
        records=[status.as_dict(now) for status in statuses],
        show=partial(console.statuses, now_ms=now),
        ends=[ExitCode.FAILED] if any(status.state(now) in failed for status in statuses) else [],
        errors=errors.failures,
        traces=[status.failure.trace for status in statuses if status.failure],
    )


@click.command("topics")
@cluster_option
@prints_result
@click.pass_obj
def topics_command(options: GlobalOptions, cluster: str | None) -> CommandResult:
    """Show what brokers hold, what tables hold, and the lag.

    \b
    Examples:
      penstock topics
      penstock topics --cluster old --json
    """
    from pipelines.status.status import now_ms

    settings, now = options.settings(), now_ms()
    statuses, errors = _statuses(settings, clusters_of(settings, cluster), now_ms=now)
    records = [status.as_dict(now) for status in statuses if status.incarnation is not None]
    return CommandResult(records=records, show=console.topics, errors=errors.failures)


def _statuses(
    settings: Settings, clusters: Iterable[str], topics: Sequence[str] = (), *, now_ms: int
) -> "tuple[list[TopicStatus], Errors]":
    """The status of the given topics, and the errors of clusters. Without topics: of all topics of each cluster."""
    statuses: list[TopicStatus] = []
    errors = Errors()
    for name in clusters:
        with errors.caught(cluster=name):
            statuses += _cluster_statuses(settings, name, topics, now_ms=now_ms)
    return statuses, errors


def _cluster_statuses(settings: Settings, name: str, topics: Sequence[str], *, now_ms: int) -> "list[TopicStatus]":
    """The status of the given topics of a cluster. Without topics: of all topics that the settings allow, by name."""
    from pipelines.status.collect import cluster_statuses, statuses_of
    from resources.kafka import open_cluster
    from resources.lake import Lake

    with open_cluster(settings, name) as cluster:
        if not topics:
            return cluster_statuses(cluster, settings, now_ms=now_ms, on_skipped=console.skipped_topics)
        lake = Lake.of(settings)
        entries = {topic: cluster.topic(topic) for topic in topics}
        for topic in (topic for topic, entry in entries.items() if entry is None):
            if not lake.has_table(name, topic):
                known = {*lake.topics(name), *(entry.name for entry in cluster.topics().entries)}
                raise click.UsageError(
                    f"neither the cluster {name} nor the lake has a topic {topic!r}{did_you_mean(topic, known)}"
                )
        return statuses_of(cluster, settings, entries, now_ms=now_ms)
