"""What commands are made of: the options that they share, the cluster they work on, the JSON they print."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.commands import completing
from resources.settings import Settings

if TYPE_CHECKING:
    from kafka_io.client.cluster import Cluster
    from resources.lake import Lake

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it

cluster_option = click.option(
    "--cluster", metavar="NAME", help="One of the clusters in the settings.", shell_complete=completing.clusters
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
all_option = click.option("--all", "every", is_flag=True, help="All topics that the settings allow.")
partition_option = click.option(
    "--partition", "partitions", multiple=True, metavar="N", help="Only this one; of 0.7, BROKER-N."
)
port_option = click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", required=True, help="Where to listen; 0 is a free port."
)
data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Where its data is, or is made.",
)
topic_argument = click.argument("topic", shell_complete=completing.topics)
topics_argument = click.argument("topics", nargs=-1, metavar="TOPIC...", shell_complete=completing.topics)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the options before the command say."""

    settings_file: str | None
    debug: bool

    def settings(self) -> Settings:
        """What the settings file says."""
        return Settings.load(self.settings_file)

    @property
    def settings_path(self) -> Path:
        """Where the settings file is, or should be."""
        return Settings.path(self.settings_file)


def clusters_of(settings: Settings, chosen: str | None) -> list[str]:
    """The chosen cluster, or all."""
    if chosen is None:
        return sorted(settings.clusters)
    if chosen not in settings.clusters:
        known = ", ".join(sorted(settings.clusters))
        raise click.UsageError(f"there is no cluster {chosen!r} in the settings; there is: {known}")
    return [chosen]


def only_cluster(settings: Settings, chosen: str | None) -> str:
    """The chosen cluster, or the only one there is."""
    names = clusters_of(settings, chosen)
    if len(names) > 1:
        raise click.UsageError(f"choose one with --cluster: {', '.join(names)}")
    return names[0]


def clusters_for(settings: Settings, topics: Sequence[str], every: bool, cluster: str | None) -> list[str]:
    """The clusters that a command works on: one for named topics, all for `--all`."""
    if bool(topics) == every:
        raise click.UsageError("name topics, or give --all" if not topics else "name topics or give --all, not both")
    return clusters_of(settings, cluster) if every else [only_cluster(settings, cluster)]


def lake_of(settings: Settings) -> "Lake":
    """The lake that the settings name."""
    from resources.lake import Lake

    return Lake.of(settings)


@contextmanager
def opened(settings: Settings, name: str) -> Iterator[tuple["Cluster", "Lake"]]:
    """A cluster of the settings, and the lake."""
    from resources.kafka import open_cluster

    with open_cluster(settings, name) as cluster:
        yield cluster, lake_of(settings)


def confirm(question: str, *, yes: bool) -> None:
    """Go on if the person at the terminal says so, or said so before with `--yes`; else end, as failed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: give --yes")
    if not click.confirm(question, err=True):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(FAILED)


def print_json(values: Sequence[Mapping[str, Any]]) -> None:
    """Print a list for scripts."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")
    sys.stdout.flush()  # a reader that left is noticed here, where it can be met
