"""`penstock status` and `penstock topics`."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import click

from kafka_io.closing import Closing
from pipelines.cli.completion import complete_topics
from pipelines.cli.options import FiniteRange, GlobalOptions, cluster_option, clusters_of, only_cluster
from pipelines.cli.output import console, shown_status
from pipelines.cli.output.result import CommandResult, Errors, json_option, prints_result, quiet_option
from pipelines.cli.output.terminal import quieted
from resources.explanations.explanation import ExitCode
from resources.printed import printed
from resources.settings.settings import Settings
from resources.suggestion import did_you_mean
from resources.table_names import route_of, topic_of

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster
    from pipelines.status.status import TopicStatus

_WATCH_S = 2.0
_MAX_WATCH_S = 86_400.0
_WATCH_ATTEMPTS = 2
_WATCH_TIMEOUT_S = 10.0


class _StatusCommand(click.Command):
    """The command. `--watch` takes a number only: in `--watch clicks`, the next word is a topic."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, after `--watch` has got its number."""
        numbered = list(args)
        for number, word in enumerate(args):
            if word == "--watch" and not any(map(_is_number, args[number + 1 : number + 2])):
                numbered[number] = f"--watch={_WATCH_S:g}"
        return super().parse_args(ctx, numbered)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


@click.command("status", cls=_StatusCommand)
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@cluster_option
@click.option(
    "--watch",
    "watch_s",
    type=FiniteRange(0, _MAX_WATCH_S, min_open=True),
    metavar="[SECONDS]",
    help=f"Show the status again and again, after pauses of {_WATCH_S:g} seconds by default, until Ctrl-C.",
)
@json_option
@quiet_option
@click.pass_obj
def status_command(
    options: GlobalOptions,
    topics: Sequence[str],
    cluster: str | None,
    watch_s: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show lag, lateness and time until data is lost.

    If a topic has several tables, each of them has a line. The topic lags as far as the last of them, and the totals
    count it once.

    The most urgent topic comes first. LATE is the age of the oldest record that is not loaded. LEFT is the time until
    retention may delete it: "~" marks an estimate, "?" an unknown time, "never" a topic without expiry. LOST counts the
    offsets that expired before they were loaded.

    The state of a topic is losing (retention deleted records before they were loaded, or may do so at any moment) or
    error (its last load failed, or it cannot be loaded). It is at risk if less than a quarter of the retention time is
    left, and held back if a transaction has been open for more than 15 minutes. A topic is behind if some records are
    not loaded yet, new if its table has no rows yet, and gone if the cluster has no such topic; its table stays. Others
    are loaded. Exit code 1: a topic is in state error or losing.

    With --watch a terminal always shows the newest status, and a pipe gets a block for each round, or with --json an
    object on one line. A cluster that does not answer is shown with its error, and asked again. A pause is at least as
    long as the CPU time of the round before it. Ctrl-C ends the command with exit code 0.

    \b
    Examples:
      penstock status
      penstock status clicks views --cluster old
      penstock status --json
      penstock status --watch 10
    """
    settings = options.settings()
    names = [only_cluster(settings, cluster)] if topics else clusters_of(settings, cluster)
    if watch_s is None:
        with quieted(quiet=quiet), OpenClusters(settings) as clusters:
            _ask(clusters, names, topics).finish(as_json=as_json)
        return
    if quiet:
        raise click.UsageError("give --watch or --quiet, not both")
    from pipelines.cli.output.watch import watch

    impatient = settings.with_short_timeout(attempts=_WATCH_ATTEMPTS, timeout_s=_WATCH_TIMEOUT_S)
    with OpenClusters(impatient) as clusters:
        watch(partial(_ask, clusters, names, topics), title="penstock status", pause_s=watch_s, as_json=as_json)


@click.command("topics")
@cluster_option
@prints_result
def topics_command(options: GlobalOptions, cluster: str | None) -> CommandResult:
    """Show what brokers hold, what tables hold, and the lag.

    \b
    Examples:
      penstock topics
      penstock topics --cluster old --json
    """
    from pipelines.status.status import now_ms

    settings, now = options.settings(), now_ms()
    with OpenClusters(settings) as clusters:
        statuses, errors = clusters.statuses(clusters_of(settings, cluster), now_ms=now)
    topics = [status for status in statuses if status.incarnation is not None and not route_of(status.topic)]
    records = [printed(status.result(now)) for status in topics]
    return CommandResult(records=records, show=shown_status.topics, errors=errors.failures)


@dataclass(slots=True)
class OpenClusters(Closing):
    """The clusters of the settings. Each is opened when it is first asked, and again after an error."""

    settings: Settings
    _open: "dict[str, Cluster]" = field(default_factory=dict)

    def close(self) -> None:
        """Close the clusters."""
        with ExitStack() as closing:
            for cluster in self._open.values():
                closing.callback(cluster.close)
        self._open.clear()

    @contextmanager
    def _opened(self, name: str) -> "Iterator[Cluster]":
        """An open cluster. It is closed after an error: the next round begins with new connections."""
        from resources.kafka import open_cluster

        cluster = self._open.get(name) or open_cluster(self.settings, name)
        self._open[name] = cluster
        try:
            yield cluster
        except Exception:
            self._open.pop(name).close()
            raise

    def statuses(
        self, names: Sequence[str], topics: Sequence[str] = (), *, now_ms: int
    ) -> "tuple[list[TopicStatus], Errors]":
        """The status of the given topics, and the errors of clusters. Without topics: of all topics of each cluster."""
        statuses: list[TopicStatus] = []
        errors = Errors()
        for name in names:
            with errors.caught(cluster=name), self._opened(name) as cluster:
                statuses += _cluster_statuses(self.settings, cluster, topics, now_ms=now_ms)
        return statuses, errors


def _ask(clusters: OpenClusters, names: Sequence[str], topics: Sequence[str]) -> CommandResult:
    """Ask the clusters for the status now, and return it as the result of the command."""
    from pipelines.status.status import TopicState, now_ms

    now = now_ms()
    statuses, errors = clusters.statuses(names, topics, now_ms=now)
    statuses.sort(key=lambda status: status.urgency(now))
    has_failed = any(status.state(now) in {TopicState.ERROR, TopicState.LOSING} for status in statuses)
    return CommandResult(
        records=[printed(status.result(now)) for status in statuses],
        show=partial(shown_status.statuses, now_ms=now),
        ends=[ExitCode.FAILED] if has_failed else [],
        errors=errors.failures,
        traces=[status.failure.trace for status in statuses if status.failure],
    )


def _cluster_statuses(
    settings: Settings, cluster: "Cluster", topics: Sequence[str], *, now_ms: int
) -> "list[TopicStatus]":
    """The status of the given topics of a cluster. Without topics: of all topics that the settings allow, by name."""
    from pipelines.status.collect import cluster_statuses, statuses_of
    from resources.stores.lake import Lake

    if not topics:
        return cluster_statuses(cluster, settings, now_ms=now_ms, on_skipped=console.skipped_topics)
    name, lake = cluster.name, Lake.of(settings)
    entries = {topic: cluster.topic(topic_of(topic)) for topic in topics}
    for topic in (topic for topic, entry in entries.items() if entry is None or route_of(topic)):
        if not lake.has_table(name, topic):
            known = {*lake.topics(name), *(entry.name for entry in cluster.topics().entries)}
            raise click.UsageError(
                f"neither the cluster {name} nor the lake has a topic {topic!r}{did_you_mean(topic, known)}"
            )
    return statuses_of(cluster, settings, entries, now_ms=now_ms)
