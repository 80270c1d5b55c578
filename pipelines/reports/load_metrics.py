"""The metrics of a single load, which the load writes itself: into a file for node_exporter, or to a Pushgateway.

They are what only the run knows, such as its duration; `penstock metrics` has everything that the table knows. The two
have no name in common, so a server can have both.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from time import time

from pipelines.reports.outcome import TopicLoad
from pipelines.reports.report_places import ReportPlaces
from resources import topic_names
from resources.errors import MetricsNotWritten
from resources.metrics_output import MetricName, MetricsPage
from resources.settings.metrics import MetricsSettings
from resources.table_names import route_of

JOB = "penstock_load"
GAPS = MetricName(
    name="penstock_load_gap_offsets",
    meaning="Offsets without a row that the last load committed, by cause.",
    labels=("cluster", "topic", "cause"),
)
_Value = Callable[[TopicLoad], float | None]
_OF_TOPIC: Sequence[tuple[str, str, _Value]] = (
    ("success", "1 if the last load of the topic succeeded, 0 if it failed.", lambda load: float(load.error is None)),
    ("duration_seconds", "Duration of the last load.", lambda load: load.seconds),
    ("bytes", "Bytes that the last load read for its rows.", lambda load: load.bytes),
    ("errors", "Errors of the last load.", lambda load: len(load.failures)),
    (
        "lag_offsets",
        "Offsets that the brokers held when the last load began, and that are not loaded.",
        lambda load: load.lag,
    ),
)
_OF_TABLE: Sequence[tuple[str, str, _Value]] = (
    ("rows", "Rows that the last load committed.", lambda load: load.rows),
    ("files", "Data files that the last load committed.", lambda load: load.files),
    ("bad_records", "Rows of the last load whose value does not decode.", lambda load: load.bad_records),
)
TOPIC_GAUGES, TABLE_GAUGES = (
    tuple((MetricName(name=f"penstock_load_{name}", meaning=meaning), value) for name, meaning, value in gauges)
    for gauges in (_OF_TOPIC, _OF_TABLE)
)
"""The numbers of a topic, and those of each of its tables."""
TIME = MetricName(name="penstock_load_timestamp_seconds", meaning="Time at which the last load ended.")
LOAD_METRICS = (*(name for name, _ in (*TOPIC_GAUGES, *TABLE_GAUGES)), GAPS, TIME)
"""All metrics that a load writes."""


def load_page(cluster: str, load: TopicLoad, *, now_s: float) -> MetricsPage:
    """The metrics of a topic, or of one of its other tables, after a load that ended now, in seconds since 1970."""
    labels = (cluster, load.topic)
    of_topic = [] if route_of(load.topic) else [*((name, value(load)) for name, value in TOPIC_GAUGES), (TIME, now_s)]
    values = [*of_topic, *((name, value(load)) for name, value in TABLE_GAUGES)]
    gaps = sum((Counter(partition.gaps) for partition in load.partitions), Counter[str]())
    families = [name.family([(labels, value)] if value is not None else []) for name, value in values]
    return MetricsPage([*families, GAPS.family(((*labels, cause), offsets) for cause, offsets in sorted(gaps.items()))])


class LoadMetrics:
    """Writes the metrics of the loads of one run, as the settings say. A failure is a warning of the load."""

    def __init__(self, settings: MetricsSettings, cluster: str) -> None:
        self._settings = settings
        self._cluster = cluster
        self._places = ReportPlaces("the metrics of this run are lost", MetricsNotWritten)

    def __call__(self, load: TopicLoad) -> Sequence[str]:
        """Write the metrics of a load, those of each table apart; returns warnings."""
        places = (self._settings.textfile_folder, self._write), (self._settings.push_url, self._push)
        return [warning for own in load.of_tables for warning in self._places.write(own, *places)]

    def _write(self, folder: str, load: TopicLoad) -> None:
        load_page(self._cluster, load, now_s=time()).write(Path(folder) / file_name(self._cluster, load.topic))

    def _push(self, url: str, load: TopicLoad) -> None:
        # The group of a topic is replaced as a whole, so the gateway does not keep the causes of earlier gaps.
        page = load_page(self._cluster, load, now_s=time())
        grouping = {"cluster": self._cluster, "topic": load.topic}
        page.push(url, job=JOB, grouping=grouping, timeout_s=self._settings.push_timeout_s)


def file_name(cluster: str, topic: str) -> str:
    """The name of the file with the metrics of a topic. Names are cut, and their digest keeps them apart."""
    encoded = "-".join((cluster, *topic_names.folders(topic)))
    digest = sha256(f"{cluster}/{topic}".encode()).hexdigest()[:8]
    return f"{JOB}_{encoded[:150]}_{digest}.prom"
