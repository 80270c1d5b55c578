"""Collects the metrics of clusters: once for a command, or for each scrape of a server, which shares recent answers.

A cluster that does not answer is a value on the page, and its error goes to the caller. No cluster affects another.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kafka_io.errors import Where
from pipelines.ledger.failure import SliceFailure
from pipelines.status.collect import cluster_statuses
from pipelines.status.metrics import ClusterFacts, metric_families
from pipelines.status.status import now_ms
from pipelines.verify.last_proof import LastProofs
from resources.kafka import open_cluster
from resources.metrics_output import MetricsPage
from resources.settings.settings import Settings
from resources.stores.lake import Lake

Report = Callable[[SliceFailure], None]
_ATTEMPTS = 2
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSource:
    """Collects metrics.

    Args:
        settings: the settings.
        clusters: the names of the clusters.
        max_topics: the largest number of topics of a cluster on a page.
        partitions: whether pages have the metrics of partitions.
        report: is called with the error of each cluster that cannot be asked.
    """

    settings: Settings
    clusters: Sequence[str]
    max_topics: int
    partitions: bool = False
    report: Report = lambda _failure: None

    def collect(self) -> list[ClusterFacts]:
        """Ask all clusters and read all tables."""
        settings = self.settings.with_short_timeout(attempts=_ATTEMPTS, timeout_s=_TIMEOUT_S)
        return [self._facts(settings, cluster) for cluster in self.clusters]

    def page(self, facts: Sequence[ClusterFacts]) -> MetricsPage:
        """The page of some clusters."""
        return MetricsPage(metric_families(facts, max_topics=self.max_topics, partitions=self.partitions))

    def _facts(self, settings: Settings, name: str) -> ClusterFacts:
        began, now = time.monotonic(), now_ms()
        try:
            with open_cluster(settings, name) as cluster:
                statuses = cluster_statuses(cluster, settings, now_ms=now)
            proofs = LastProofs(Lake.of(settings), name).read()
        except Exception as error:  # noqa: BLE001 - whatever fails belongs to this cluster, and the page says so
            self.report(SliceFailure.of(error, Where(cluster=name)))
            return ClusterFacts(cluster=name, up=False, now_ms=now, seconds=time.monotonic() - began)
        seconds = time.monotonic() - began
        return ClusterFacts(cluster=name, up=True, now_ms=now, seconds=seconds, statuses=statuses, proofs=proofs)


class CachedMetrics(Collector):
    """The page of a server. It is collected when somebody asks, and kept for some seconds.

    Requests that arrive during a collection wait for it, so brokers and tables are never asked twice at the same time,
    however many servers scrape.
    """

    def __init__(self, source: MetricsSource, *, keep_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._keep_s = keep_s
        self._clock = clock
        self._lock = threading.Lock()
        self._page: MetricsPage | None = None
        self._collected_s = 0.0

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics of this scrape, for the Prometheus client."""
        with self._lock:
            if self._page is None or self._clock() - self._collected_s >= self._keep_s:
                self._page = self._source.page(self._source.collect())
                self._collected_s = self._clock()
            page = self._page
        return page.collect()
