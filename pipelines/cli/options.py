"""What the commands share: options, the choice of topics and clusters, confirmation, and the output of results."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pipelines.cli.completion import complete_clusters, complete_topics
from resources.choices import Choices
from resources.settings import Settings

if TYPE_CHECKING:
    from pipelines.loading.table import LakeTable

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130  # as in shells: 128 plus the number of SIGINT

cluster_option = click.option(
    "--cluster", metavar="NAME", help="A cluster of the settings.", shell_complete=complete_clusters
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
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


def clusters_of(settings: Settings, chosen: str | None) -> list[str]:
    """The names of the clusters: the chosen one, or all of the settings."""
    if chosen is None:
        return sorted(settings.clusters)
    if chosen not in settings.clusters:
        names = ", ".join(sorted(settings.clusters))
        raise click.UsageError(f"there is no cluster {chosen!r} in the settings; the clusters are: {names}")
    return [chosen]


def only_cluster(settings: Settings, chosen: str | None) -> str:
    """The name of the chosen cluster, or of the only one in the settings."""
    names = clusters_of(settings, chosen)
    if len(names) > 1:
        raise click.UsageError(f"choose a cluster with --cluster: {', '.join(names)}")
    return names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a command works on: the named topics of one cluster, or with `--all` the topics of all clusters."""

    topics: Sequence[str]
    every: bool
    cluster: str | None

    def clusters(self, settings: Settings) -> list[str]:
        """The names of the clusters."""
        if bool(self.topics) == self.every:
            raise click.UsageError("give topics, or --all" if not self.topics else "give topics or --all, not both")
        return clusters_of(settings, self.cluster) if self.every else [only_cluster(settings, self.cluster)]

    def tables(self, settings: Settings, cluster: str) -> "list[LakeTable]":
        """The tables of the named topics, or of all topics of the cluster that the settings allow."""
        from pipelines.loading.table import LakeTable
        from resources.lake import Lake

        lake, rules = Lake.of(settings), settings.rules(cluster)
        topics = self.topics or [topic for topic in lake.topics(cluster) if rules.allows(topic)]
        return [LakeTable.of(lake, cluster, topic) for topic in topics]


def selects_topics(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add TOPIC..., `--all` and `--cluster` to a command, which gets them as `selection`."""

    @topics_argument
    @click.option("--all", "every", is_flag=True, help="Use all topics that the settings allow.")
    @cluster_option
    @wraps(command)
    def run(*arguments: Any, topics: Sequence[str], every: bool, cluster: str | None, **options: Any) -> Any:
        return command(*arguments, selection=Selection(topics=topics, every=every, cluster=cluster), **options)

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command did.

    Args:
        records: what `--json` prints.
        show: prints the records for people.
        failed: whether the exit code is 1.
        traces: stack traces of errors, which `--debug` prints.
    """

    records: Sequence[Mapping[str, Any]]
    show: Callable[[Sequence[Mapping[str, Any]]], None]
    failed: bool = False
    traces: Sequence[str | None] = ()

    def print(self, *, as_json: bool) -> None:
        """Print the result, and end the command if it failed."""
        if as_json:
            print_json(self.records)
        else:
            self.show(self.records)
        if click.get_current_context().obj.debug:
            click.echo("".join(f"{trace}\n" for trace in self.traces if trace), err=True, nl=False)
        if self.failed:
            raise click.exceptions.Exit(FAILED)


def prints_result(command: Callable[..., CommandResult]) -> Callable[..., None]:
    """Add `--json` to a command, and print its result."""

    @json_option
    @wraps(command)
    def run(*arguments: Any, as_json: bool, **options: Any) -> None:
        command(*arguments, **options).print(as_json=as_json)

    return run


def choice_option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option of a setting of Choices. It overrides the settings file."""
    field = Choices.model_fields[name]
    return click.option(
        f"--{name.replace('_', '-')}", type=click.Choice(get_args(field.annotation)), help=field.description
    )


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report a ValueError inside a `with` block as wrong use of the command."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


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
