"""`penstock load`."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial, reduce
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from pipelines.cli.options import (
    GlobalOptions,
    Selection,
    check_topics,
    choice_option,
    selects_topics,
    usage_errors,
)
from pipelines.cli.output import console, log_lines
from pipelines.cli.output.result import CommandResult, Errors, ends_of, prints_result
from resources.printed import printed
from resources.settings.choices import Choices
from resources.settings.settings import Settings

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster
    from pipelines.reports.outcome import TopicLoad


def _choices(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each of Choices. It overrides the settings file."""
    return reduce(lambda decorated, name: choice_option(name)(decorated), reversed(Choices.model_fields), command)


@click.command("load")
@selects_topics
@click.option("--from", "since", metavar="POINT", help="Also load older records, back to this point.")
@click.option("--to", "until", metavar="POINT", help="Load nothing from this point on. The next load continues there.")
@_choices
@prints_result
def load_command(
    options: GlobalOptions, /, selection: Selection, since: str | None, until: str | None, **overrides: str | None
) -> CommandResult:
    """Load the new records of topics into their tables.

    A load continues at the table's cursor and ends at the newest record. With --from it also loads the records
    before the table's first offsets, as far as the brokers still have them, back to a POINT. A new table begins at this
    POINT. A POINT is earliest, latest, a time (ISO 8601, UTC if it has no zone) or a duration before now: -15m, -2h,
    -1d. Times are compared with record timestamps; brokers before 0.10 only know when a segment of the log was written.

    If a load is interrupted, everything that was committed stays and the next load continues there.

    \b
    Examples:
      penstock load clicks views
      penstock load --all --json
      penstock load clicks --from earliest
      penstock load clicks --from -7d --to -1h
      penstock load clicks --on-expired skip
    """
    from pipelines.cli.output.progress import progress
    from pipelines.load.load import Loader
    from pipelines.load.load_topics import TopicLoads
    from pipelines.plan.window import LoadWindow
    from pipelines.reports.outcome import TopicLoad
    from resources.kafka import open_cluster
    from resources.machines.spark import for_fetches, open_session

    with usage_errors():
        window = LoadWindow.parse(since, until, now=datetime.now(UTC))
    settings, run_id = options.settings(), uuid4().hex
    click.get_current_context().find_root().with_resource(log_lines.common_fields(run=run_id))
    loads: list[tuple[str, TopicLoad]] = []
    errors = Errors()
    for name in selection.clusters(settings):
        with errors.caught(cluster=name), open_cluster(settings, name) as connected, progress() as on_progress:
            topics = check_topics(settings, connected, selection.topics) or _allowed(settings, connected)
            topic_loads, by_topic = TopicLoads(connected), dict[str, TopicLoad]()
            loader = Loader.of(
                settings,
                topic_loads.cluster,
                topic_loads.called_here(partial(open_session, for_fetches(settings.spark))),
                window=window,
                choices=settings.choices_of(name).with_overrides(overrides),
                run_id=run_id,
                on_progress=on_progress,
            )
            if loader.new_lake:
                log_lines.warning(loader.new_lake)
            on_begin, on_end = partial(_log_begin, name), partial(_keep, name, by_topic, on_progress)
            try:
                topic_loads.load(loader, topics, on_begin=on_begin, on_end=on_end)
            finally:
                ended = (by_topic[topic] for topic in dict.fromkeys(topics) if topic in by_topic)
                loads += [(name, own) for load in ended for own in load.of_tables]
    records = [{"cluster": name, **printed(load)} for name, load in loads]
    return CommandResult(
        records=records,
        show=console.loads,
        ends=ends_of(records),
        errors=errors.failures,
        traces=[failure.trace for _, load in loads for failure in load.failures],
    )


def _log_begin(cluster: str, topic: str) -> None:
    """Print the event that the load of a topic begins."""
    log_lines.event("load begins", cluster=cluster, topic=topic)


def _keep(
    cluster: str,
    by_topic: "dict[str, TopicLoad]",
    on_progress: Callable[[str], Callable[[int, int], None]],
    load: "TopicLoad",
) -> None:
    """Keep the result of a topic, remove its progress bar, and print its events."""
    by_topic[load.topic] = load
    on_progress(load.topic)(1, 1)
    for own in load.of_tables:
        _log_load(cluster, own)


def _log_load(cluster: str, load: "TopicLoad") -> None:
    """Print an event for each partition with new records, and one for the topic."""
    for partition in load.partitions:
        if partition.offsets.size:
            fields = {**printed(partition), "partition": str(partition.offsets.partition), "broker": None}
            log_lines.event("partition loaded", cluster=cluster, topic=load.topic, **fields)
    sums = {
        name: getattr(load, name) for name in ("version", "rows", "bytes", "files", "bad_records", "lag", "seconds")
    }
    log_lines.event("load ends", cluster=cluster, topic=load.topic, failed=load.error is not None, **sums)


def _allowed(settings: Settings, cluster: "Cluster") -> list[str]:
    """All topics that the settings allow; a warning if there are none."""
    from resources.stores.lake import Lake

    listing = cluster.topics()
    console.skipped_topics(listing.skipped)
    # A topic with a table that cannot be described now was not deleted: its load says what is wrong (fault A13).
    refused = listing.refused.keys() & set(Lake.of(settings).topics(cluster.name)) if listing.refused else set()
    names = {*(topic.name for topic in listing.entries), *refused}
    allowed = sorted(name for name in names if settings.rules(cluster.name).allows(name))
    if not allowed:
        count = len(listing.entries)
        log_lines.warning(
            f"nothing to load: the settings allow none of the {count} topics of the cluster {cluster.name}"
        )
    return allowed
