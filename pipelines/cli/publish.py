"""The command `penstock publish`: sends the lines of a file as messages."""

from typing import IO

import click

from kafka_io.errors import Where, error_context
from pipelines.cli.options import GlobalOptions, cluster_option, only_cluster, topic_argument
from pipelines.cli.result import CommandResult, prints_result

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LINES_PER_BATCH = 500


@click.command("publish")
@topic_argument
@click.argument("file", type=click.File("rb"))
@cluster_option
@click.option("--codec", type=click.Choice(_CODECS), default="none", help="How to compress.")
@click.option("--batch", type=click.IntRange(1), default=_LINES_PER_BATCH, help="Lines per request.")
@prints_result
@click.pass_obj
def publish_command(
    options: GlobalOptions, topic: str, file: IO[bytes], cluster: str | None, codec: str, batch: int
) -> CommandResult:
    """Publish the lines of FILE (- for stdin) as messages of TOPIC. Old brokers do not know every codec.

    \b
    Examples:
      penstock publish clicks lines.txt
      penstock publish clicks - --codec gzip --batch 100
    """
    from kafka_io.producer.publishing import publish_values
    from resources.kafka import open_producer

    settings = options.settings()
    name = only_cluster(settings, cluster)
    lines = (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)
    with error_context(Where(cluster=name)), open_producer(settings, name, compression=codec) as producer:
        count = publish_values((producer,), topic, lines, batch_size=batch)
    return CommandResult(
        records=[{"cluster": name, "topic": topic, "messages": count}],
        show=lambda _: click.echo(f"{count} messages published to {topic}"),
    )
