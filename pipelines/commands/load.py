"""`penstock load`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar, get_args

import click

from pipelines import console
from pipelines.commands.parts import (
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
    from kafka_io.client.cluster import Cluster

_Command = TypeVar("_Command", bound=Callable[..., object])


def _choices(command: _Command) -> _Command:
    """An option for each of Choices, over what the settings file says."""
    for name, field in reversed(Choices.model_fields.items()):
        option = click.Choice(get_args(field.annotation))
        command = click.option(f"--{name.replace('_', '-')}", name, type=option, help=field.description)(command)
    return command


@click.command("load")
@topics_argument
@all_option
@cluster_option
@click.option(
    "--from", "since", metavar="POINT", help="Also load what is from before a table's first offsets, back to it."
)
@click.option("--to", "until", metavar="POINT", help="Load nothing from there on; the next load goes on with it.")
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
    **chosen: str | None,
) -> None:
    """Load what is new of topics into their tables.

    A load goes on from the table's cursor to the newest record. With --from it also fills in what the brokers hold
    from before the table's first offsets; a new table begins there. A POINT is earliest, latest, a time (ISO 8601, UTC
    if it has no zone) or a time ago: -15m, -2h, -1d. Times are those of the records; brokers before 0.10 know only
    when a segment of their log was written.

    What is loaded stays when a load is interrupted, and the next one goes on from there.

    \b
    Examples:
      penstock load clicks views
      penstock load --all --json
      penstock load clicks --from earliest
      penstock load clicks --from -7d --to -1h
      penstock load clicks --on-expired skip
    """
    from pipelines.loading.load import Loader
    from pipelines.loading.window import Window
    from resources.spark import open_session

    try:
        window = Window.parse(since, until, now=datetime.now(UTC))
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
                choices=settings.choices_of(name).but(chosen),
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
    found = cluster.topics()
    for skipped in found.skipped:
        console.warning(f"passed over {skipped.path}: {skipped.reason}")
    return sorted(topic.name for topic in found.found if settings.rules(cluster.name).allows(topic.name))
