"""`penstock metrics`: the status of topics and tables for Prometheus."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from pipelines.cli.options import FiniteRange, GlobalOptions, cluster_option, clusters_of
from pipelines.cli.output import log_lines
from pipelines.cli.output.result import show_trace
from resources.explanations.codes import combined, exit_code_of
from resources.explanations.explanation import ExitCode
from resources.printed import printed
from resources.settings.metrics import check_push_url

if TYPE_CHECKING:
    from pipelines.ledger.failure import SliceFailure
    from pipelines.status.metrics_source import MetricsSource

JOB = "penstock"
_LOOPBACK = "127.0.0.1"


def _push_url(_context: click.Context, _parameter: click.Parameter, url: str | None) -> str | None:
    try:
        return url if url is None else check_push_url(url)
    except ValueError as error:
        raise click.BadParameter(f"{url!r} {error}") from None


class _Target(TypedDict):
    """Where the options say that the metrics go: to a file, to a Pushgateway, or to whoever asks on a port."""

    textfile: Path | None
    push: str | None
    serve: int | None
    address: str
    keep_s: float


@click.command("metrics")
@cluster_option
@click.option("--partitions", is_flag=True, help="Also print the lag of each partition.")
@click.option(
    "--max-topics",
    type=click.IntRange(1, 100_000),
    default=1000,
    help="Limit of the topics of each cluster; the most urgent are kept.",
)
@click.option(
    "--textfile",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Replace this file in one step; print nothing.",
)
@click.option("--push", metavar="URL", callback=_push_url, help="Send the metrics to this Pushgateway; print nothing.")
@click.option("--serve", type=click.IntRange(0, 65535), metavar="PORT", help="Serve the metrics until interrupted.")
@click.option("--address", default=_LOOPBACK, help="With --serve: the address to listen on.")
@click.option(
    "--keep-s",
    type=FiniteRange(0, 3600),
    default=15.0,
    help="With --serve: seconds for which the same answer is used for all requests.",
)
@click.pass_obj
def metrics_command(
    options: GlobalOptions, /, cluster: str | None, partitions: bool, max_topics: int, **target: Unpack[_Target]
) -> None:
    """Print lag, lateness, losses, sizes and proofs for Prometheus.

    The metrics are those facts that `penstock status` shows, and the result of the last `penstock verify` of each
    table. docs/monitoring.md explains all of them, with a dashboard and rules for alerts. A topic that cannot be read
    has penstock_topic_up 0, a cluster that does not answer has penstock_up 0.

    With --serve, Prometheus can scrape the command. It listens on loopback unless --address says otherwise, and has
    neither TLS nor passwords. Each load can also write its own metrics: see the section metrics of the settings.

    Exit code 1 to 6: a cluster cannot be asked, or the metrics cannot be written. The metrics of the other clusters are
    printed all the same.

    \b
    Examples:
      penstock metrics
      penstock metrics --partitions --max-topics 50
      penstock metrics --textfile penstock.prom
      penstock metrics --serve 9464
    """
    if target["serve"] is not None and (target["textfile"] or target["push"]):
        raise click.UsageError("give --serve, or --textfile and --push")
    from pipelines.status.metrics_source import MetricsSource

    settings, reporter = options.settings(), _Reporter()
    source = MetricsSource(
        settings=settings,
        clusters=clusters_of(settings, cluster),
        max_topics=max_topics,
        partitions=partitions,
        report=reporter,
    )
    if target["serve"] is not None:
        _serve(source, target["address"], target["serve"], keep_s=target["keep_s"])
        return
    _write(source, target["textfile"], target["push"])
    end = combined(reporter.ends)
    if end:
        raise click.exceptions.Exit(end)


@dataclass(slots=True)
class _Reporter:
    """Prints the error of a cluster, once until it changes."""

    ends: list[ExitCode] = field(default_factory=list)
    last: dict[Any, str] = field(default_factory=dict)

    def __call__(self, failure: "SliceFailure") -> None:
        self.ends.append(exit_code_of([failure.code]))
        cluster = failure.where.get("cluster")
        if self.last.get(cluster) != str(failure):
            self.last[cluster] = str(failure)
            log_lines.failure(printed(failure))
            show_trace(failure.trace)


def _write(source: "MetricsSource", textfile: Path | None, push: str | None) -> None:
    """Write the metrics where the options say: to stdout, to a file, to a Pushgateway."""
    facts = source.collect()
    page = source.page(facts)
    if textfile:
        page.write(textfile)
    for of_cluster in facts if push else ():
        # A group per cluster: the command for one cluster must not remove the metrics of the others.
        own_page = source.page([of_cluster])
        own_page.push(str(push), job=JOB, grouping={"cluster": of_cluster.cluster}, timeout_s=10)
    if not textfile and not push:
        sys.stdout.write(page.text())
        sys.stdout.flush()


def _serve(source: "MetricsSource", address: str, port: int, *, keep_s: float) -> None:
    """Serve the metrics until SIGTERM or SIGINT arrives."""
    from prometheus_client import start_http_server

    from kafka_io.errors import system_reason
    from kafka_io.stopping import stop_signals
    from pipelines.status.metrics_source import CachedMetrics
    from resources.metrics_output import registry_of

    with stop_signals() as stop_requested:
        try:
            server, thread = start_http_server(port, address, registry_of(CachedMetrics(source, keep_s=keep_s)))
        except OSError as error:
            raise click.ClickException(f"cannot listen on {address} port {port}: {system_reason(error)}") from error
        click.echo(f"metrics are served on http://{address}:{server.server_port}/metrics")
        try:
            while not stop_requested():
                pass
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
