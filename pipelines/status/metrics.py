"""The metrics of topics and tables: what `penstock status` and `penstock verify` know, in the form of Prometheus.

A table such as `events/orders` has its own sizes, loads and proofs. What brokers say is about the topic, and only the
topic has samples of it: a sum over all topics counts each offset once.

Labels have few values: clusters, topics, states, causes of gaps, and partitions only if somebody asks for them. A page
has a limited number of topics, the most urgent ones, and says how many it leaves out. A value that is unknown has no
sample; a topic or a cluster that cannot be read is a sample with the value 0.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily

from pipelines.status.status import LastLoad, PartitionStatus, TopicStatus
from pipelines.table.open_table import TableSize
from pipelines.verify.last_proof import LastProof
from resources.metrics_output import MetricName, Sample
from resources.table_names import route_of, topic_of

MAX_PARTITIONS = 20_000
"""The largest number of partitions of a cluster on a page."""

_MEANINGS = {
    "up": "1 if the cluster and the lake answer, otherwise 0.",
    "collected_timestamp_seconds": "Time at which the metrics of the cluster were collected.",
    "collection_duration_seconds": "Time that it took to collect the metrics of the cluster.",
    "topics": "Topics that the settings allow and that have a table or exist.",
    "topics_left_out": "Topics that this page leaves out, because it has a limit.",
    "partitions_left_out": "Partitions that this page leaves out, because it has a limit.",
    "topic_state": "1 for the state of the topic that `penstock status` shows, such as losing or error.",
    "last_load_gap_offsets": "Offsets without a row in the newest commit of a load, by cause.",
    "proof_gap_offsets": "Offsets without a row in the whole table when it was verified last, by cause.",
    "topic_up": "1 if the topic and its table can be read and nothing prevents a load, otherwise 0.",
    "lag_offsets": "Offsets up to the high watermark without a row: records, in Kafka 0.7 bytes.",
    "late_seconds": "Age of the oldest record without a row; 0 if all records are loaded.",
    "until_loss_seconds": "Time until retention may remove a record without a row, negative if it already may.",
    "lost_offsets": "Offsets that retention removed before they were loaded, until a load records them as a gap.",
    "valid_through_timestamp_seconds": "Event time through which the table is complete.",
    "last_load_failed": "1 if the last load of the topic failed, otherwise 0.",
    "failing_since_timestamp_seconds": "Time since which all loads of the topic fail.",
    "table_rows": "Rows of the table.",
    "table_bytes": "Bytes of the data files of the table.",
    "table_files": "Data files of the table.",
    "bad_records": "Rows of the table whose value does not decode.",
    "last_load_timestamp_seconds": (
        "Time of the newest commit of a load. A load that finds nothing new has no commit."
    ),
    "last_load_duration_seconds": "Time from the plan of that load, or of the last of its steps, to its commit.",
    "last_load_rows": "Rows that this commit added.",
    "last_load_bytes": "Bytes that the load read for these rows.",
    "last_load_files": "Data files that this commit added.",
    "proof_success": "1 if the last verification proved the table, otherwise 0.",
    "proof_timestamp_seconds": "Time at which this proof began.",
    "proof_duration_seconds": "Duration of this proof.",
    "proof_problems": "Problems that this proof found.",
    "proof_missing_rows": "Rows that the commits counted and this proof did not find.",
    "proof_duplicate_rows": "Rows that this proof found more than once.",
    "partition_lag_offsets": "Offsets up to the high watermark without a row.",
    "partition_lost_offsets": "Offsets that retention removed before they were loaded.",
    "partition_held_back_offsets": "Offsets that an open transaction holds back.",
    "partition_until_loss_seconds": "Time until retention may remove a record of the partition without a row.",
}
"""The metrics by name, without the `penstock_` at the beginning."""
ItemT = TypeVar("ItemT")
_Values = Mapping[str, Callable[[ItemT, int], float | None]]
"""Numbers about something at a time (ms since 1970), by the names of their metrics; None if a number is unknown."""


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


_STATUS_VALUES: _Values[TopicStatus] = {
    "topic_up": lambda table, _: float(table.failure is None),
    "valid_through_timestamp_seconds": lambda table, _: _seconds(table.valid_through_ms),
}
_TOPIC_VALUES: _Values[TopicStatus] = {
    "lag_offsets": lambda topic, _: topic.lag,
    "late_seconds": lambda topic, now: topic.late_s(now),
    "until_loss_seconds": lambda topic, now: topic.left_s(now),
    "lost_offsets": lambda topic, _: topic.lost,
    "last_load_failed": lambda topic, _: float(topic.last_error is not None),
    "failing_since_timestamp_seconds": lambda topic, _: _seconds(
        (topic.last_error.since_ms or None) if topic.last_error else None
    ),
}
_SIZE_VALUES: _Values[TableSize] = {
    "table_rows": lambda size, _: size.rows,
    "table_bytes": lambda size, _: size.bytes,
    "table_files": lambda size, _: size.files,
    "bad_records": lambda size, _: size.bad_records,
}
_LOAD_VALUES: _Values[LastLoad] = {
    "last_load_timestamp_seconds": lambda load, _: _seconds(load.committed_ms),
    "last_load_duration_seconds": lambda load, _: load.seconds,
    "last_load_rows": lambda load, _: load.rows,
    "last_load_bytes": lambda load, _: load.bytes,
    "last_load_files": lambda load, _: load.files,
}
_PROOF_VALUES: _Values[LastProof] = {
    "proof_success": lambda proof, _: float(proof.proven),
    "proof_timestamp_seconds": lambda proof, _: proof.time_ms / 1000,
    "proof_duration_seconds": lambda proof, _: proof.seconds,
    "proof_problems": lambda proof, _: proof.problems,
    "proof_missing_rows": lambda proof, _: proof.missing,
    "proof_duplicate_rows": lambda proof, _: proof.duplicates,
}
_PARTITION_VALUES: _Values[PartitionStatus] = {
    "partition_lag_offsets": lambda part, _: part.lag,
    "partition_lost_offsets": lambda part, _: part.lost,
    "partition_held_back_offsets": lambda part, _: part.held_back,
    "partition_until_loss_seconds": lambda part, now: (
        None if part.expires_ms is None else (part.expires_ms - now) / 1000
    ),
}
_MORE_LABELS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("up", "collected_timestamp_seconds", "collection_duration_seconds"), ()),
    **dict.fromkeys(("topics", "topics_left_out", "partitions_left_out"), ()),
    "topic_state": ("topic", "state"),
    **dict.fromkeys(("last_load_gap_offsets", "proof_gap_offsets"), ("topic", "cause")),
    **dict.fromkeys(_PARTITION_VALUES, ("topic", "partition")),
}
"""The labels after that of the cluster, where they are not only the topic."""
METRICS = {
    name: MetricName(name=f"penstock_{name}", meaning=meaning, labels=("cluster", *_MORE_LABELS.get(name, ("topic",))))
    for name, meaning in _MEANINGS.items()
}
STATUS_METRICS = tuple(METRICS.values())
"""All metrics that a page can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What is known of the topics of a cluster.

    Args:
        cluster: the name of the cluster.
        up: whether the cluster and the lake answered.
        now_ms: the time of the facts, in ms since 1970.
        seconds: how long it took to collect them.
        statuses: the status of each topic and of each of its tables.
        proofs: the last proofs by table.
    """

    cluster: str
    up: bool
    now_ms: int
    seconds: float = 0.0
    statuses: Sequence[TopicStatus] = ()
    proofs: Mapping[str, LastProof] = field(default_factory=dict)

    def topics(self, statuses: Iterable[TopicStatus]) -> Sequence[str]:
        """The topics of some statuses, each once."""
        return list(dict.fromkeys(topic_of(status.topic) for status in statuses))

    def most_urgent(self, count: int) -> Sequence[TopicStatus]:
        """At most so many topics, the most urgent ones, each with all its tables, sorted by name."""
        by_urgency = sorted(self.statuses, key=lambda status: status.urgency(self.now_ms))
        urgent = set(self.topics(by_urgency)[:count])
        return sorted(
            (status for status in self.statuses if topic_of(status.topic) in urgent), key=lambda status: status.topic
        )


def metric_families(
    clusters: Sequence[ClusterFacts], *, max_topics: int, partitions: bool
) -> Iterator[GaugeMetricFamily]:
    """The metrics of some clusters, each with at most `max_topics` topics; with those of partitions if asked for."""
    shown = {facts.cluster: facts.most_urgent(max_topics) for facts in clusters}
    yield METRICS["up"].family(((facts.cluster,), float(facts.up)) for facts in clusters)
    yield METRICS["collected_timestamp_seconds"].family(((facts.cluster,), facts.now_ms / 1000) for facts in clusters)
    yield METRICS["collection_duration_seconds"].family(((facts.cluster,), facts.seconds) for facts in clusters)
    known = [facts for facts in clusters if facts.up]
    yield METRICS["topics"].family(((facts.cluster,), len(facts.topics(facts.statuses))) for facts in known)
    yield METRICS["topics_left_out"].family(
        ((facts.cluster,), len(facts.topics(facts.statuses)) - len(facts.topics(shown[facts.cluster])))
        for facts in known
    )
    tables = [(facts, status) for facts in clusters for status in shown[facts.cluster]]
    of_tables = [((facts.cluster, status.topic), status, facts.now_ms) for facts, status in tables]
    of_topics = [of_table for of_table in of_tables if not route_of(of_table[1].topic)]
    yield from _families(_STATUS_VALUES, of_tables)
    yield from _families(_TOPIC_VALUES, of_topics)
    yield METRICS["topic_state"].family(((*labels, status.state(now).value), 1) for labels, status, now in of_topics)
    sizes = [(labels, status.size, now) for labels, status, now in of_tables if status.size]
    yield from _families(_SIZE_VALUES, sizes)
    loads = [(labels, status.last_load, now) for labels, status, now in of_tables if status.last_load]
    yield from _families(_LOAD_VALUES, loads)
    yield METRICS["last_load_gap_offsets"].family(_gaps((labels, load.gaps) for labels, load, _ in loads))
    # The proof of a table that was removed says nothing about a new one.
    proofs = [
        ((facts.cluster, status.topic), proof, facts.now_ms)
        for facts, status in tables
        if (proof := facts.proofs.get(status.topic)) and (status.size or status.failure)
    ]
    yield from _families(_PROOF_VALUES, proofs)
    yield METRICS["proof_gap_offsets"].family(_gaps((labels, proof.gaps) for labels, proof, _ in proofs))
    if partitions:
        yield from _of_partitions(known, shown)


def _of_partitions(
    clusters: Sequence[ClusterFacts], shown: Mapping[str, Sequence[TopicStatus]]
) -> Iterator[GaugeMetricFamily]:
    """The metrics of partitions, of which each cluster has a limited number."""
    kept: list[tuple[Sequence[str], PartitionStatus, int]] = []
    left_out = []
    for facts in clusters:
        of_cluster = [
            ((facts.cluster, status.topic, str(part.id)), part, facts.now_ms)
            for status in shown[facts.cluster]
            if not route_of(status.topic)
            for part in status.partitions
        ]
        kept += of_cluster[:MAX_PARTITIONS]
        left_out.append(((facts.cluster,), max(0, len(of_cluster) - MAX_PARTITIONS)))
    yield METRICS["partitions_left_out"].family(left_out)
    yield from _families(_PARTITION_VALUES, kept)


def _families(values: _Values[ItemT], items: Sequence[tuple[Sequence[str], ItemT, int]]) -> Iterator[GaugeMetricFamily]:
    """The metrics of items, each with its labels and its time. An unknown value is no sample."""
    for name, value in values.items():
        samples = ((labels, value(item, now)) for labels, item, now in items)
        yield METRICS[name].family((labels, number) for labels, number in samples if number is not None)


def _gaps(counts: Iterable[tuple[tuple[str, str], Mapping[str, int]]]) -> Iterator[Sample]:
    """The samples of gaps by cause."""
    return (((*labels, cause), offsets) for labels, gaps in counts for cause, offsets in sorted(gaps.items()))
