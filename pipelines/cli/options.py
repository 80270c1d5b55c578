"""Parts that the commands share: options, the choice of topics and clusters, and confirmation."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pipelines.cli.completion import complete_clusters, complete_topics
from pipelines.cli.output import log_lines
from resources.machines.own_process import keep_pandas_out
from resources.settings.choices import Choices
from resources.settings.settings import Settings
from resources.suggestion import did_you_mean, known_names, no_topic
from resources.table_names import route_of, topic_of

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster
    from pipelines.table.lake_table import LakeTable

cluster_option = click.option(
    "--cluster", metavar="NAME", help="A cluster of the settings.", shell_complete=complete_clusters
)
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


class FiniteRange(click.FloatRange):
    """A range of numbers. `nan` is in no range, but click's comparisons let it pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Any other value is an error of usage."""
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The options before the name of the command."""

    settings_file: str | None
    debug: bool

    def settings(self) -> Settings:
        """Read the settings file. Commands that need it also use pyarrow, and none of them needs pandas.

        Raises:
            SettingsError: the file is missing or wrong.
        """
        keep_pandas_out()
        settings = Settings.load(self.settings_file)
        for sentence in settings.warnings:
            log_lines.warning(sentence)
        return settings


def clusters_of(settings: Settings, chosen: str | None) -> list[str]:
    """The names of the clusters: the chosen one, or all of the settings."""
    return _named("cluster", "clusters", settings.clusters, chosen)


def only_cluster(settings: Settings, chosen: str | None) -> str:
    """The name of the chosen cluster, or of the only one in the settings."""
    return _only("cluster", clusters_of(settings, chosen))


def only_registry(settings: Settings, chosen: str | None) -> str:
    """The name of the chosen schema registry, or of the only one in the settings."""
    return _only("registry", _named("registry", "registries", settings.registries, chosen))


def _named(kind: str, section: str, names: Collection[str], chosen: str | None) -> list[str]:
    """The chosen name, or all names of a section."""
    if chosen is None:
        return sorted(names)
    if chosen not in names:
        raise click.UsageError(f"there is no {kind} {chosen!r} in the settings{known_names(section, chosen, names)}")
    return [chosen]


def _only(kind: str, names: Sequence[str]) -> str:
    if len(names) != 1:
        raise click.UsageError(f"choose a {kind} with --{kind}: {', '.join(names) or 'the settings have none'}")
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
        """The tables of the named topics, or of all topics of the cluster that the settings allow.

        Raises:
            UsageError: a named topic has no table.
            TableMissing: no topic of the cluster has a table (fault E07).
        """
        from kafka_io.errors import Where
        from pipelines.formats.tables import lake_table
        from resources.errors import TableMissing
        from resources.stores.lake import Lake

        if self.topics:
            return [table_of(settings, cluster, topic) for topic in self.topics]
        lake, rules = Lake.of(settings), settings.rules(cluster)
        topics = [topic for topic in lake.topics(cluster) if rules.allows(topic)]
        if not topics:
            raise TableMissing(
                f"the lake {lake.root} has no table of the cluster {cluster}: load a topic first; if tables were there "
                "before, check `lake` and the name of the cluster in the settings, and whether the disk is mounted",
                Where(cluster=cluster),
            )
        return [lake_table(lake, cluster, topic) for topic in topics]


def table_of(settings: Settings, cluster: str, topic: str) -> "LakeTable":
    """The table of a topic that the user names.

    Raises:
        UsageError: there is none.
    """
    from pipelines.formats.tables import lake_table
    from resources.stores.lake import Lake

    lake = Lake.of(settings)
    if not lake.has_table(cluster, topic):
        raise click.UsageError(f"the topic {topic!r} has no table{did_you_mean(topic, lake.topics(cluster))}")
    return lake_table(lake, cluster, topic)


def check_topics(settings: Settings, cluster: "Cluster", topics: Sequence[str]) -> Sequence[str]:
    """The topics that the user names, each of which exists and may be loaded.

    Other commands and Dagster know only allowed topics.

    Raises:
        UsageError: one of them does not exist, or the settings do not allow it.
    """
    for topic in topics:
        if not settings.rules(cluster.name).allows(topic):
            raise click.UsageError(
                f"the settings do not allow the topic {topic!r}; change `allow` or `deny` of [topics]"
            )
        if route_of(topic):  # brokers call such a name invalid
            raise click.UsageError(
                f"the cluster {cluster.name} has no topic {topic!r}{no_topic(topic, [topic_of(topic)])}"
            )
        if cluster.topic(topic) is None:
            known = (entry.name for entry in cluster.topics().entries)
            raise click.UsageError(f"the cluster {cluster.name} has no topic {topic!r}{no_topic(topic, known)}")
    return topics


def selects_topics(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add TOPIC..., `--all` and `--cluster` to a command, which gets them as `selection`."""

    @topics_argument
    @click.option("--all", "every", is_flag=True, help="Use all topics that the settings allow.")
    @cluster_option
    @wraps(command)
    def run(*arguments: Any, topics: Sequence[str], every: bool, cluster: str | None, **options: Any) -> Any:
        once = tuple(dict.fromkeys(topics))
        return command(*arguments, selection=Selection(topics=once, every=every, cluster=cluster), **options)

    return run


def choice_option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option of a setting of Choices. It overrides the settings file."""
    field = Choices.model_fields[name]
    return click.option(
        f"--{name.replace('_', '-')}", type=click.Choice(get_args(field.annotation)), help=field.description
    )


def parse_time(text: str) -> datetime:
    """Parse a time in ISO 8601 (UTC if it has no zone), or `-2h` before now. Another text is an error of usage."""
    from pipelines.plan.positions import TimePosition, parse_position

    with suppress(ValueError):
        position = parse_position(text, now=datetime.now(UTC))
        if isinstance(position, TimePosition):
            return datetime.fromtimestamp(position.ms / 1000, UTC)
    raise click.UsageError(f"{text!r} is not a time; give a time such as 2026-01-31T12:00Z or -2h")


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report a ValueError inside a `with` block as wrong use of the command."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def has_terminal() -> bool:
    """Whether a person can answer questions. A process can also start with a closed stdin."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Ask the user for confirmation, unless `--yes` was given. Without it the command ends with exit code 1."""
    if yes:
        return
    if not has_terminal():
        raise click.UsageError("confirmation is needed and there is no terminal: give --yes")
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was changed")
