"""The metrics of topics and tables: what `penstock status` and `penstock verify` know, in the form of Prometheus.

Labels have few values: clusters, topics, states, causes of gaps, and partitions only if somebody asks for them. A page
has a limited number of topics, the most urgent ones, and says how many it leaves out. A value that is unknown has no
sample; a topic or a cluster that cannot be read is a sample with the value 0.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily

from pipelines.status.status import LastLoad, PartitionStatus, TopicStatus
from pipelines.table.open_table import TableSize
from pipelines.verify.last_proof import LastProof
from resources.metrics_output import MetricName, Sample

MAX_PARTITIONS = 20_000
"""The largest number of partitions of a cluster on a page."""

CLUSTER_UP = MetricName(
    name="penstock_up", meaning="1 if the cluster and the lake answer, otherwise 0.", labels=("cluster",)
)
COLLECTED = MetricName(
    name="penstock_collected_timestamp_seconds",
    meaning="Time at which the metrics of the cluster were collected.",
    labels=("cluster",),
)
COLLECTION = MetricName(
    name="penstock_collection_duration_seconds",
    meaning="Time that it took to collect the metrics of the cluster.",
    labels=("cluster",),
)
TOPICS = MetricName(
    name="penstock_topics",
    meaning="Topics that the settings allow and that have a table or exist.",
    labels=("cluster",),
)
TOPICS_LEFT_OUT = MetricName(
    name="penstock_topics_left_out",
    meaning="Topics that this page leaves out, because it has a limit.",
    labels=("cluster",),
)
PARTITIONS_LEFT_OUT = MetricName(
    name="penstock_partitions_left_out",
    meaning="Partitions that this page leaves out, because it has a limit.",
    labels=("cluster",),
)
STATE = MetricName(
    name="penstock_topic_state",
    meaning="1 for the state of the topic that `penstock status` shows, such as losing or error.",
    labels=("cluster", "topic", "state"),
)
LAST_LOAD_GAPS = MetricName(
    name="penstock_last_load_gap_offsets",
    meaning="Offsets without a row in the newest commit of a load, by cause.",
    labels=("cluster", "topic", "cause"),
)
PROOF_GAPS = MetricName(
    name="penstock_proof_gap_offsets",
    meaning="Offsets without a row in the whole table when it was verified last, by cause.",
    labels=("cluster", "topic", "cause"),
)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


_TopicValue = Callable[[TopicStatus, int], float | None]
"""A number about a topic at a time, in ms since 1970; None if it is unknown."""
_TOPIC_VALUES: Sequence[tuple[str, str, _TopicValue]] = (
    (
        "topic_up",
        "1 if the topic and its table can be read and nothing prevents a load, otherwise 0.",
        lambda topic, _: float(topic.failure is None),
    ),
    (
        "lag_offsets",
        "Offsets up to the high watermark without a row: records, in Kafka 0.7 bytes.",
        lambda topic, _: topic.lag,
    ),
    (
        "late_seconds",
        "Age of the oldest record without a row; 0 if all records are loaded.",
        lambda topic, now: topic.late_s(now),
    ),
    (
        "until_loss_seconds",
        "Time until retention may remove a record without a row, negative if it already may.",
        lambda topic, now: topic.left_s(now),
    ),
    (
        "lost_offsets",
        "Offsets that retention removed before they were loaded, until a load records them as a gap.",
        lambda topic, _: topic.lost,
    ),
    (
        "valid_through_timestamp_seconds",
        "Event time through which the table is complete.",
        lambda topic, _: _seconds(topic.valid_through_ms),
    ),
    (
        "last_load_failed",
        "1 if the last load of the topic failed, otherwise 0.",
        lambda topic, _: float(topic.last_error is not None),
    ),
    (
        "failing_since_timestamp_seconds",
        "Time since which all loads of the topic fail.",
        lambda topic, _: _seconds((topic.last_error.since_ms or None) if topic.last_error else None),
    ),
)
_SizeValue = Callable[[TableSize], float]
_SIZE_VALUES: Sequence[tuple[str, str, _SizeValue]] = (
    ("table_rows", "Rows of the table.", lambda size: size.rows),
    ("table_bytes", "Bytes of the data files of the table.", lambda size: size.bytes),
    ("table_files", "Data files of the table.", lambda size: size.files),
    ("bad_records", "Rows of the table whose value does not decode.", lambda size: size.bad_records),
)
_LoadValue = Callable[[LastLoad], float | None]
_LOAD_VALUES: Sequence[tuple[str, str, _LoadValue]] = (
    (
        "last_load_timestamp_seconds",
        "Time of the newest commit of a load. A load that finds nothing new has no commit.",
        lambda load: _seconds(load.committed_ms),
    ),
    (
        "last_load_duration_seconds",
        "Time from the plan of that load, or of the last of its steps, to its commit.",
        lambda load: load.seconds,
    ),
    ("last_load_rows", "Rows that this commit added.", lambda load: load.rows),
    ("last_load_bytes", "Bytes that the load read for these rows.", lambda load: load.bytes),
    ("last_load_files", "Data files that this commit added.", lambda load: load.files),
)
_ProofValue = Callable[[LastProof], float]
_PROOF_VALUES: Sequence[tuple[str, str, _ProofValue]] = (
    (
        "proof_success",
        "1 if the last verification proved the table, otherwise 0.",
        lambda proof: float(proof.proven),
    ),
    ("proof_timestamp_seconds", "Time at which this proof began.", lambda proof: proof.time_ms / 1000),
    ("proof_duration_seconds", "Duration of this proof.", lambda proof: proof.seconds),
    ("proof_problems", "Problems that this proof found.", lambda proof: proof.problems),
    ("proof_missing_rows", "Rows that the commits counted and this proof did not find.", lambda proof: proof.missing),
    ("proof_duplicate_rows", "Rows that this proof found more than once.", lambda proof: proof.duplicates),
)
_PartitionValue = Callable[[PartitionStatus, int], float | None]
_PARTITION_VALUES: Sequence[tuple[str, str, _PartitionValue]] = (
    ("partition_lag_offsets", "Offsets up to the high watermark without a row.", lambda part, _: part.lag),
    (
        "partition_lost_offsets",
        "Offsets that retention removed before they were loaded.",
        lambda part, _: part.lost,
    ),
    (
        "partition_held_back_offsets",
        "Offsets that an open transaction holds back.",
        lambda part, _: part.held_back,
    ),
    (
        "partition_until_loss_seconds",
        "Time until retention may remove a record of the partition without a row.",
        lambda part, now: None if part.expires_ms is None else (part.expires_ms - now) / 1000,
    ),
)


def _name(name: str, meaning: str, *more_labels: str) -> MetricName:
    return MetricName(name=f"penstock_{name}", meaning=meaning, labels=("cluster", "topic", *more_labels))


TOPIC_GAUGES = tuple((_name(name, meaning), value) for name, meaning, value in _TOPIC_VALUES)
SIZE_GAUGES = tuple((_name(name, meaning), value) for name, meaning, value in _SIZE_VALUES)
LOAD_GAUGES = tuple((_name(name, meaning), value) for name, meaning, value in _LOAD_VALUES)
PROOF_GAUGES = tuple((_name(name, meaning), value) for name, meaning, value in _PROOF_VALUES)
PARTITION_GAUGES = tuple((_name(name, meaning, "partition"), value) for name, meaning, value in _PARTITION_VALUES)
STATUS_METRICS: Sequence[MetricName] = (
    *(CLUSTER_UP, COLLECTED, COLLECTION, TOPICS, TOPICS_LEFT_OUT, PARTITIONS_LEFT_OUT),
    *(STATE, LAST_LOAD_GAPS, PROOF_GAPS),
    *(name for name, _ in (*TOPIC_GAUGES, *SIZE_GAUGES, *LOAD_GAUGES, *PROOF_GAUGES, *PARTITION_GAUGES)),
)
"""All metrics that a page can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What is known of the topics of a cluster.

    Args:
        cluster: the name of the cluster.
        up: whether the cluster and the lake answered.
        now_ms: the time of the facts, in ms since 1970.
        seconds: how long it took to collect them.
        statuses: the status of each topic.
        proofs: the last proofs by topic.
    """

    cluster: str
    up: bool
    now_ms: int
    seconds: float = 0.0
    statuses: Sequence[TopicStatus] = ()
    proofs: Mapping[str, LastProof] = field(default_factory=dict)

    def most_urgent(self, count: int) -> Sequence[TopicStatus]:
        """At most so many topics, the most urgent ones, sorted by name."""
        by_urgency = sorted(self.statuses, key=lambda status: status.urgency(self.now_ms))
        return sorted(by_urgency[:count], key=lambda status: status.topic)


def metric_families(
    clusters: Sequence[ClusterFacts], *, max_topics: int, partitions: bool
) -> Iterator[GaugeMetricFamily]:
    """The metrics of some clusters, each with at most `max_topics` topics; with those of partitions if asked for."""
    shown = {facts.cluster: facts.most_urgent(max_topics) for facts in clusters}
    yield CLUSTER_UP.family(((facts.cluster,), float(facts.up)) for facts in clusters)
    yield COLLECTED.family(((facts.cluster,), facts.now_ms / 1000) for facts in clusters)
    yield COLLECTION.family(((facts.cluster,), facts.seconds) for facts in clusters)
    known = [facts for facts in clusters if facts.up]
    yield TOPICS.family(((facts.cluster,), len(facts.statuses)) for facts in known)
    left_out = [(facts.cluster, len(facts.statuses) - len(shown[facts.cluster])) for facts in known]
    yield TOPICS_LEFT_OUT.family(((cluster,), count) for cluster, count in left_out)
    topics = [(facts, status) for facts in clusters for status in shown[facts.cluster]]
    for name, value in TOPIC_GAUGES:
        yield name.family(
            _known(((facts.cluster, status.topic), value(status, facts.now_ms)) for facts, status in topics)
        )
    yield STATE.family(((facts.cluster, status.topic, status.state(facts.now_ms).value), 1) for facts, status in topics)
    yield from _of_tables([status for _, status in topics])
    yield from _of_proofs(topics)
    if partitions:
        yield from _of_partitions(known, shown)


def _of_tables(topics: Sequence[TopicStatus]) -> Iterator[GaugeMetricFamily]:
    """The metrics of the sizes of tables, and of their newest loads."""
    sizes = [((status.cluster, status.topic), status.size) for status in topics if status.size]
    for size_name, size_value in SIZE_GAUGES:
        yield size_name.family((labels, size_value(size)) for labels, size in sizes)
    loads = [((status.cluster, status.topic), status.last_load) for status in topics if status.last_load]
    for load_name, load_value in LOAD_GAUGES:
        yield load_name.family(_known((labels, load_value(load)) for labels, load in loads))
    yield LAST_LOAD_GAPS.family(_gaps((labels, load.gaps) for labels, load in loads))


def _of_proofs(topics: Sequence[tuple[ClusterFacts, TopicStatus]]) -> Iterator[GaugeMetricFamily]:
    """The metrics of the last proofs. The proof of a table that was removed says nothing about a new one."""
    proven = [
        ((status.cluster, status.topic), proof)
        for facts, status in topics
        if (proof := facts.proofs.get(status.topic)) and (status.size or status.failure)
    ]
    for name, value in PROOF_GAUGES:
        yield name.family((labels, value(proof)) for labels, proof in proven)
    yield PROOF_GAPS.family(_gaps((labels, proof.gaps) for labels, proof in proven))


def _of_partitions(
    clusters: Sequence[ClusterFacts], shown: Mapping[str, Sequence[TopicStatus]]
) -> Iterator[GaugeMetricFamily]:
    """The metrics of partitions, of which each cluster has a limited number."""
    kept: list[tuple[ClusterFacts, TopicStatus, PartitionStatus]] = []
    left_out = []
    for facts in clusters:
        of_cluster = [(facts, status, part) for status in shown[facts.cluster] for part in status.partitions]
        kept += of_cluster[:MAX_PARTITIONS]
        left_out.append((facts.cluster, max(0, len(of_cluster) - MAX_PARTITIONS)))
    yield PARTITIONS_LEFT_OUT.family(((cluster,), count) for cluster, count in left_out)
    for name, value in PARTITION_GAUGES:
        yield name.family(
            _known(
                ((facts.cluster, status.topic, str(part.id)), value(part, facts.now_ms)) for facts, status, part in kept
            )
        )


def _known(samples: Iterable[tuple[Sequence[str], float | None]]) -> Iterator[Sample]:
    """The samples whose value is known."""
    return ((labels, value) for labels, value in samples if value is not None)


def _gaps(counts: Iterable[tuple[tuple[str, str], Mapping[str, int]]]) -> Iterator[Sample]:
    """The samples of gaps by cause."""
    return (((*labels, cause), offsets) for labels, gaps in counts for cause, offsets in sorted(gaps.items()))
