"""The `penstock` command. Exit code 0: done; 1: failed, or not proven; 2: wrong use.

Results go to stdout (`--json` for scripts), progress and errors to stderr. An error is one sentence; `--debug` adds the
traceback.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, get_args

import click

from pipelines import console
from pipelines.commands.clean import clean_command
from pipelines.commands.history import history_command
from pipelines.commands.parts import (
    FAILED,
    WRONG_USE,
    Options,
    all_option,
    cluster_option,
    clusters_for,
    clusters_of,
    json_option,
    lake_of,
    only_cluster,
    opened,
    print_json,
    topics_argument,
)
from pipelines.commands.replay import replay_command
from pipelines.commands.rewind import rewind_command
from resources.choices import Choices
from resources.settings import PATH_VARIABLE, Settings, SettingsError

if TYPE_CHECKING:
    from kafka_io.client.cluster import Cluster
    from pipelines.loading.table import LakeTable
    from pipelines.mending.deep import DeepProof

_Command = TypeVar("_Command", bound=Callable[..., object])
_LINES_PER_BATCH = 500


class _Group(click.Group):
    """Turns errors into one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - the last door: a sentence, and the traceback if asked for
            if ctx.params.get("debug"):
                traceback.print_exc()
            console.error(str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}")
            return ctx.exit(WRONG_USE if isinstance(error, SettingsError) else FAILED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--settings", "settings_file", metavar="FILE", help=f"The settings file. [env: {PATH_VARIABLE}]")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="penstock")
@click.pass_context
def main(ctx: click.Context, settings_file: str | None, debug: bool) -> None:
    """Load Kafka topics into lake tables, exactly once.

    \b
    Examples:
      penstock topics
      penstock load clicks
      penstock load --all --json
      penstock verify --all
    """
    ctx.obj = Options(settings_file=settings_file, debug=debug)


main.add_command(clean_command)
main.add_command(history_command)
main.add_command(replay_command)
main.add_command(rewind_command)


def _choices(command: _Command) -> _Command:
    """An option for each of Choices, over what the settings file says."""
    for name, field in reversed(Choices.model_fields.items()):
        option = click.Choice(get_args(field.annotation))
        command = click.option(f"--{name.replace('_', '-')}", name, type=option, help=field.description)(command)
    return command


@main.command("topics")
@cluster_option
@json_option
@click.pass_obj
def topics_command(options: Options, cluster: str | None, as_json: bool) -> None:
    """Show topics: what brokers hold, what tables hold, and the lag between."""
    from pipelines.loading.overview import TopicOverview, overview

    settings = options.settings()
    found: list[TopicOverview] = []
    for name in clusters_of(settings, cluster):
        with opened(settings, name) as (connected, lake):
            found += overview(connected, lake, settings.rules(name))
    if as_json:
        print_json([one.as_dict() for one in found])
    else:
        console.topics(found)


@main.command("load")
@topics_argument
@all_option
@cluster_option
@click.option("--from-earliest", is_flag=True, help="Also load what brokers hold from before a table's first offsets.")
@_choices
@json_option
@click.pass_context
def load_command(
    ctx: click.Context,
    /,
    topics: Sequence[str],
    every: bool,
    cluster: str | None,
    from_earliest: bool,
    as_json: bool,
    **chosen: str | None,
) -> None:
    """Load what is new of topics into their tables.

    \b
    Examples:
      penstock load clicks views
      penstock load --all --cluster old
      penstock load clicks --from-earliest
      penstock load clicks --on-expired skip
    """
    from pipelines.loading.load import Loader
    from resources.spark import open_session

    settings = ctx.obj.settings()
    loads = []
    for name in clusters_for(settings, topics, every, cluster):
        with opened(settings, name) as (connected, _), console.progress() as on_progress:
            loader = Loader.of(
                settings,
                connected,
                lambda: open_session(settings.spark),
                backfill=from_earliest,
                start="earliest" if from_earliest else None,
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


@main.command("verify")
@topics_argument
@all_option
@cluster_option
@click.option("--deep", is_flag=True, help="Also compare the rows with what brokers still hold, one by one.")
@json_option
@click.pass_context
def verify_command(
    ctx: click.Context, topics: Sequence[str], every: bool, cluster: str | None, deep: bool, as_json: bool
) -> None:
    """Prove from the tables alone that every committed offset is there exactly once.

    With --deep the brokers are read again, as far back as they hold what the tables have.
    """
    from pipelines.loading.table import LakeTable
    from pipelines.loading.verify import Proof, verify
    from pipelines.mending.deep import DeepProof

    settings = ctx.obj.settings()
    lake = lake_of(settings)
    proofs: list[tuple[str, Proof]] = []
    for name in clusters_for(settings, topics, every, cluster):
        known = topics or [topic for topic in lake.topics(name) if settings.rules(name).allows(topic)]
        tables = [LakeTable.of(lake, name, topic) for topic in known]
        proven = _deep_proofs(settings, name, tables) if deep else map(verify, tables)
        proofs += [(name, proof) for proof in proven]
    if as_json:
        print_json([{"cluster": name, **proof.as_dict()} for name, proof in proofs])
    else:
        console.comparisons([proof for _, proof in proofs if isinstance(proof, DeepProof)])
        console.proofs([proof for _, proof in proofs])
    ctx.exit(0 if all(proof.proven for _, proof in proofs) else FAILED)


def _deep_proofs(settings: Settings, cluster: str, tables: Sequence["LakeTable"]) -> "Iterator[DeepProof]":
    from pipelines.mending.deep import deep_verify

    with opened(settings, cluster) as (connected, _), console.progress() as on_progress:
        for table in tables:
            yield deep_verify(table, connected, on_progress=on_progress(str(table.where.topic)))


@main.command("tail")
@click.argument("topic")
@click.option("--from", "since", metavar="POINT", default="latest", show_default=True, help="Where to begin.")
@click.option("--until", metavar="POINT", help="Where to end; without it, go on with what comes.")
@click.option("--partition", "partitions", multiple=True, metavar="N", help="Only this one; of 0.7, BROKER-N.")
@click.option("--max", "most", type=click.IntRange(1), help="End after so many records.")
@cluster_option
@json_option
@click.pass_obj
def tail_command(
    options: Options,
    topic: str,
    since: str,
    until: str | None,
    partitions: Sequence[str],
    most: int | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show records of TOPIC straight from the brokers: partition, offset, time, key, value and headers.

    A POINT is earliest, latest, committed (where the lake's table goes on; not for an end), an offset of one
    partition, a time (ISO 8601, UTC if it has no zone) or a time ago: -15m, -2h, -1d. Times are those of the records;
    brokers before 0.10 know only when a segment of their log was written: older records may come, and it may end early.

    With --json each record is an object on a line. Bytes that are not UTF-8 are {"base64": ...}.

    \b
    Examples:
      penstock tail clicks
      penstock tail clicks --from -15m --until latest --json
      penstock tail clicks --partition 3 --from 1200 --max 1
    """
    from pipelines.tailing import lines
    from pipelines.tailing.opening import open_tail
    from pipelines.tailing.points import TailRefused
    from pipelines.tailing.query import Query

    try:
        query = Query.parse(topic, since, until, partitions, now=datetime.now(UTC))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    settings = options.settings()
    shown = lines.as_json if as_json else lines.as_line
    try:
        with open_tail(settings, only_cluster(settings, cluster), query, on_trouble=console.warning) as tail:
            for rows in lines.first_rows(lines.rows_of(tail.batches()), most):
                lines.write(map(shown, rows))
    except TailRefused as error:
        raise click.UsageError(error.reason) from None
    except KeyboardInterrupt:  # how a tail without end is ended
        return


@main.command("publish")
@click.argument("topic")
@click.argument("file", type=click.File("rb"))
@cluster_option
@click.option(
    "--codec", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none", show_default=True
)
@click.option("--batch", type=click.IntRange(1), default=_LINES_PER_BATCH, show_default=True, help="Lines a request.")
@click.pass_obj
def publish_command(options: Options, topic: str, file: IO[bytes], cluster: str | None, codec: str, batch: int) -> None:
    """Publish the lines of FILE (- for stdin) as messages of TOPIC. Old brokers do not know every codec."""
    settings = options.settings()
    with opened(settings, only_cluster(settings, cluster)) as (connected, _):
        count = connected.publish(topic, _lines(file), codecs=(codec,), batch=batch)
    click.echo(f"{count} messages published to {topic}")


@main.command("zookeeper")
@click.option("--port", type=click.IntRange(0, 65535), required=True)
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True)
def zookeeper_command(port: int, data_dir: Path) -> None:
    """Run an embedded ZooKeeper on loopback until SIGTERM."""
    from resources.zookeeper_server import run_foreground

    run_foreground(port, data_dir)


@main.command("broker")
@click.option("--broker-id", type=click.IntRange(0), required=True)
@click.option("--port", type=click.IntRange(0, 65535), required=True)
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--zookeeper", metavar="HOST:PORT[/CHROOT]", help="Where to register; without it, nowhere.")
@click.option("--partitions", type=click.IntRange(1), default=1, show_default=True, help="Partitions of a new topic.")
@click.option(
    "--generation",
    type=click.Choice(["0.7", "0.8-0.9", "modern"]),
    default="0.7",
    show_default=True,
    help="Its dialect.",
)
def broker_command(
    broker_id: int, port: int, data_dir: Path, zookeeper: str | None, partitions: int, generation: str
) -> None:
    """Run an embedded broker on loopback, until SIGTERM.

    One of 0.7 serves the log directories of a genuine 0.7 broker as they are. The others are clusters of one broker,
    with groups and transactions; clients of their time produce to them and read from them.

    \b
    penstock broker --broker-id 0 --port 9092 --data-dir b0 --zookeeper 127.0.0.1:2181
    penstock broker --broker-id 0 --port 9092 --data-dir b0 --generation modern
    """
    from kafka_io.broker.config import BrokerConfig
    from kafka_io.broker.foreground import run_foreground
    from kafka_io.broker.modern.config import ModernBrokerConfig
    from kafka_io.model import Generation

    chosen = Generation(generation)
    config: BrokerConfig | ModernBrokerConfig
    if chosen is Generation.V07:
        config = BrokerConfig(broker_id=broker_id, port=port, data_dir=data_dir, partitions=partitions)
    else:
        config = ModernBrokerConfig(
            broker_id=broker_id, port=port, data_dir=data_dir, partitions=partitions, generation=chosen
        )
    run_foreground(config, zookeeper)


def _allowed(settings: Settings, cluster: "Cluster") -> list[str]:
    found = cluster.topics()
    for skipped in found.skipped:
        console.warning(f"passed over {skipped.path}: {skipped.reason}")
    return sorted(topic.name for topic in found.found if settings.rules(cluster.name).allows(topic.name))


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    for line in file:
        yield line.removesuffix(b"\n").removesuffix(b"\r")
