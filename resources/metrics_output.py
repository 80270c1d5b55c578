"""Metrics in the text format of Prometheus: as text, as a file for node_exporter, and sent to a Pushgateway.

All metrics are gauges: a load is a batch, and the counter of a process that ends would begin at 0 again and again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError

from prometheus_client import CollectorRegistry, generate_latest, push_to_gateway, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kafka_io.errors import Where, system_reason
from resources.errors import MetricsNotWritten

Sample = tuple[Sequence[str], float]
"""The values of the labels, and the value of the metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName:
    """The name of a metric, with its labels and its meaning."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ("cluster", "topic")

    def family(self, samples: Iterable[Sample]) -> GaugeMetricFamily:
        """The metric with its values."""
        family = GaugeMetricFamily(self.name, self.meaning, labels=self.labels)
        for labels, value in samples:
            family.add_metric(labels, value)
        return family


class MetricsPage(Collector):
    """A page of metrics, in the order in which they are printed. A metric without a value is left out."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self.families = [family for family in families if family.samples]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics of the page, for the Prometheus client."""
        yield from self.families

    def text(self) -> str:
        """The page in the text format of Prometheus."""
        return generate_latest(registry_of(self)).decode()

    def write(self, path: Path) -> None:
        """Replace a file by the page, in one step: nobody reads half a page.

        Raises:
            MetricsNotWritten: the file cannot be written.
        """
        try:
            write_to_textfile(str(path), registry_of(self))
        except OSError as error:
            raise MetricsNotWritten(f"the file {path} cannot be written: {system_reason(error)}", Where()) from error

    def push(self, url: str, *, job: str, grouping: Mapping[str, str], timeout_s: float) -> None:
        """Send the page to a Pushgateway, in the place of all earlier metrics of the job with the same grouping key.

        Raises:
            MetricsNotWritten: the Pushgateway does not answer, or does not accept the page.
        """
        try:
            push_to_gateway(url, job, registry_of(self), dict(grouping), timeout_s)
        except (OSError, HTTPException) as error:
            raise MetricsNotWritten(
                f"the Pushgateway {url} did not take the metrics: {_reason(error)}", Where()
            ) from error


def registry_of(collector: Collector) -> CollectorRegistry:
    """A registry with only this collector."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


def _reason(error: OSError | HTTPException) -> str:
    if isinstance(error, HTTPError):
        return f"it answers with status {error.code}"
    if isinstance(error, HTTPException):
        return "its answer is not HTTP"
    cause = error.reason if isinstance(error, URLError) else error
    return system_reason(cause) if isinstance(cause, OSError) else "its address is not valid"
