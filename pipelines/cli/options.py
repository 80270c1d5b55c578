"""What the commands share: options, the choice of clusters, confirmation, JSON output."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.completion import complete_clusters, complete_topics
from resources.settings import Settings

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster
    from resources.lake import Lake

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130  # as in shells: 128 plus the number of SIGINT

cluster_option = click.option(
    "--cluster", metavar="NAME", help="A cluster of the settings.", shell_complete=complete_clusters
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
all_option = click.option("--all", "every", is_flag=True, help="Use all topics that the settings allow.")
partition_option = click.option(
    "--partition", "partitions", multiple=True, metavar="N", help="Only this partition (in Kafka 0.7: BROKER-N)."
)
port_option = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    required=True,
    help="The port to listen on; 0 means any free port.",
)
data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder for its data. It is created if needed.",
)
topic_argument = click.argument("topic", shell_complete=complete_topics)
topics_argument = click.argument("topics", nargs=-1, metavar="TOPIC...", shell_complete=complete_topics)
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The options before the name of the command."""

    settings_file: str | None
    debug: bool

    def settings(self) -> Settings:
        """Read the settings file.

        Raises:
            SettingsError: the file is missing or wrong.
        """
        return Settings.load(self.settings_file)

    @property
    def settings_path(self) -> Path:
        """The path of the settings file, whether it exists or not."""
        return Settings.path(self.settings_file)


def clusters_of(settings: Settings, chosen: str | None) -> list[str]:
    """The names of the clusters: the chosen one, or all of the settings."""
    if chosen is None:
        return sorted(settings.clusters)
    if chosen not in settings.clusters:
        known = ", ".join(sorted(settings.clusters))
        raise click.UsageError(f"there is no cluster {chosen!r} in the settings; the clusters are: {known}")
    return [chosen]


def only_cluster(settings: Settings, chosen: str | None) -> str:
    """The name of the chosen cluster, or of the only one in the settings."""
    names = clusters_of(settings, chosen)
    if len(names) > 1:
        raise click.UsageError(f"choose a cluster with --cluster: {', '.join(names)}")
    return names[0]


def clusters_for(settings: Settings, topics: Sequence[str], every: bool, cluster: str | None) -> list[str]:
    """The clusters of a command that takes TOPIC... or `--all`: one cluster for named topics, all for `--all`."""
    if bool(topics) == every:
        raise click.UsageError("give topics, or --all" if not topics else "give topics or --all, not both")
    return clusters_of(settings, cluster) if every else [only_cluster(settings, cluster)]


def lake_of(settings: Settings) -> "Lake":
    """The lake of the settings."""
    from resources.lake import Lake

    return Lake.of(settings)


@contextmanager
def opened(settings: Settings, name: str) -> Iterator[tuple["Cluster", "Lake"]]:
    """A cluster of the settings, open for the length of a `with` block, and the lake."""
    from resources.kafka import open_cluster

    with open_cluster(settings, name) as cluster:
        yield cluster, lake_of(settings)


def confirm(question: str, *, yes: bool) -> None:
    """Ask the user for confirmation, unless `--yes` was given. Without it the command ends with exit code 1."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("confirmation is needed and there is no terminal: give --yes")
    if not click.confirm(question, err=True):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(FAILED)


def print_json(values: Sequence[Mapping[str, Any]]) -> None:
    """Print a JSON list on stdout."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")
    sys.stdout.flush()  # raises BrokenPipeError here, where main handles it, if the reader of the pipe has ended
