"""The command `penstock publish`: sends the lines of a file as messages."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import click

from kafka_io.errors import InvalidValue, Where, error_context
from pipelines.cli.completion import complete_registries
from pipelines.cli.options import GlobalOptions, cluster_option, only_cluster, only_registry, topic_argument
from pipelines.cli.output import console
from pipelines.cli.output.result import CommandResult, prints_result
from resources import quantities
from resources.printed import printed
from resources.settings.settings import Settings
from resources.suggestion import no_topic
from resources.table_names import route_of, topic_of

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LINES_PER_BATCH = 500
_MAX_LINES_PER_BATCH = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTopic:
    """The result of `penstock publish`."""

    cluster: str
    topic: str
    messages: int


class _Lines(click.File):
    """A file with lines; `-` is stdin."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Open it. A closed stdin is wrong use."""
        if value == "-" and sys.stdin is None:
            self.fail("stdin is closed: give a file, or pipe lines into the command", param, ctx)
        return super().convert(value, param, ctx)


@click.command("publish")
@topic_argument
@click.argument("file", type=_Lines("rb"))
@cluster_option
@click.option("--codec", type=click.Choice(_CODECS), default="none", help="How to compress.")
@click.option(
    "--batch", type=click.IntRange(1, _MAX_LINES_PER_BATCH), default=_LINES_PER_BATCH, help="Lines per request."
)
@click.option(
    "--registry",
    metavar="NAME",
    help="Encode each line, a JSON value, with a schema of this registry.",
    shell_complete=complete_registries,
)
@click.option(
    "--subject", help="The subject whose newest schema encodes the lines. [default with --registry: TOPIC-value]"
)
@prints_result
def publish_command(
    options: GlobalOptions,
    topic: str,
    file: IO[bytes],
    cluster: str | None,
    codec: str,
    batch: int,
    registry: str | None,
    subject: str | None,
) -> CommandResult:
    """Publish the lines of FILE (- for stdin) as messages of TOPIC. Old brokers do not know every codec.

    With --registry or --subject each line is a JSON value. The command encodes it as Confluent's serializers do: as
    Avro, or as JSON if the schema is a JSON schema. For Avro, write a date or time as a text in ISO 8601 or as a
    number, and a decimal as a number or a text. Where the schema has bytes, each character of a text is one byte. A
    missing field gets its default. The first line that does not fit the schema ends the command; lines before it may
    have been published.

    \b
    Examples:
      penstock publish clicks lines.txt
      penstock publish clicks - --codec gzip --batch 100
      penstock publish payments payments.jsonl --registry main
    """
    from kafka_io.producer.publishing import publish_values
    from resources.kafka import open_producer

    if route_of(topic):
        raise click.UsageError(f"brokers have no topic {topic!r}{no_topic(topic, [topic_of(topic)])}")
    settings = options.settings()
    name = only_cluster(settings, cluster)
    lines: Iterable[bytes] = (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)
    if registry is not None or subject is not None:
        lines = _encoded(settings, only_registry(settings, registry), subject or f"{topic}-value", lines)
    with error_context(Where(cluster=name)), open_producer(settings, name, compression=codec) as producer:
        count = publish_values((producer,), topic, lines, batch_size=batch)
    return CommandResult(
        records=[printed(PublishedTopic(cluster=name, topic=topic, messages=count))],
        show=lambda _: console.print_sentence(f"{quantities.counted(count, 'message')} published to {topic}"),
    )


def _encoded(settings: Settings, registry: str, subject: str, lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines as values of the newest schema of a subject. The schema is read before the first line."""
    from kafka_io.producer.publishing import registered_encoder
    from resources.kafka import open_schema_registry

    newest = open_schema_registry(settings, registry).newest(subject)
    with error_context(Where(registry=registry, subject=subject, schema_id=newest.schema.id)):
        encode = registered_encoder(newest.schema)
        for number, line in enumerate(lines, start=1):
            try:
                yield encode(line)
            except InvalidValue as error:
                raise InvalidValue(f"line {number}: {error.reason}") from error
