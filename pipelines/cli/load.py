"""`penstock load`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar, get_args

import click

from pipelines.cli import console
from pipelines.cli.options import (
    FAILED,
    all_option,
    cluster_option,
    clusters_for,
    json_option,
    opened,
    print_json,
    topics_argument,
)
from resources.choices import Choices
from resources.settings import Settings

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster

_Command = TypeVar("_Command", bound=Callable[..., object])


def _choices(command: _Command) -> _Command:
    """Add an option for each of Choices. It overrides the settings file."""
    for name, field in reversed(Choices.model_fields.items()):
        option = click.Choice(get_args(field.annotation))
        command = click.option(f"--{name.replace('_', '-')}", name, type=option, help=field.description)(command)
    return command


@click.command("load")
@topics_argument
@all_option
@cluster_option
@click.option("--from", "since", metavar="POINT", help="Also load older records, back to this point.")
@click.option("--to", "until", metavar="POINT", help="Load nothing from this point on. The next load continues there.")
@_choices
@json_option
@click.pass_context
def load_command(
    ctx: click.Context,
    /,
    topics: Sequence[str],
    every: bool,
    cluster: str | None,
    since: str | None,
    until: str | None,
    as_json: bool,
    **overrides: str | None,
) -> None:
    """Load the new records of topics into their tables.

    A load continues at the table's cursor and ends at the newest record. With --from it also loads older records that
    the brokers still hold from before the table's first offsets; a new table begins there. A POINT is earliest,
    latest, a time (ISO 8601, UTC if it has no zone) or a duration before now: -15m, -2h, -1d. Times are compared with
    record timestamps; brokers before 0.10 only know when a segment of the log was written.

    If a load is interrupted, everything that was committed stays and the next load continues there.

    \b
    Examples:
      penstock load clicks views
      penstock load --all --json
      penstock load clicks --from earliest
      penstock load clicks --from -7d --to -1h
      penstock load clicks --on-expired skip
    """
    from pipelines.loading.load import Loader
    from pipelines.loading.window import LoadWindow
    from resources.spark import open_session

    try:
        window = LoadWindow.parse(since, until, now=datetime.now(UTC))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    settings = ctx.obj.settings()
    loads = []
    for name in clusters_for(settings, topics, every, cluster):
        with opened(settings, name) as (connected, _), console.progress() as on_progress:
            loader = Loader.of(
                settings,
                connected,
                lambda: open_session(settings.spark),
                window=window,
                choices=settings.choices_of(name).with_overrides(overrides),
                on_progress=on_progress,
            )
            loads += [(name, loader.load(topic)) for topic in topics or _allowed(settings, connected)]
    if as_json:
        print_json([{"cluster": name, **load.as_dict()} for name, load in loads])
    else:
        console.loads([load for _, load in loads])
    for _, load in loads:
        if load.error and ctx.obj.debug and load.trace:
            click.echo(load.trace, err=True)
    ctx.exit(FAILED if any(load.error for _, load in loads) else 0)


def _allowed(settings: Settings, cluster: "Cluster") -> list[str]:
    listing = cluster.topics()
    console.skipped_topics(listing.skipped)
    return sorted(topic.name for topic in listing.found if settings.rules(cluster.name).allows(topic.name))
