"""The places that may have copies of erased rows and that Penstock does not own. The certificate names each of them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kafka_io.cluster.retention import FOREVER, Retention
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition
from pipelines.certificates.certificate import CopyElsewhere
from resources.quantities import counted, duration
from resources.stores.versioned_bucket import versions_of_bucket

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster

_ALWAYS = (
    CopyElsewhere(
        place="outputs",
        says="outputs of increments keep removed rows in old files until their owner cleans them; consumers that have "
        "not run since this version of Penstock are not known here",
    ),
    CopyElsewhere(
        place="Dagster",
        says="its storage has sample rows if `sample_rows` was ever set: delete the runs with `dagster run delete` and "
        "the events with `dagster asset wipe`, and vacuum its database",
    ),
    CopyElsewhere(
        place="readers",
        says="copies, extracts and caches of programs that have read the table are with their owners",
    ),
    CopyElsewhere(place="backups", says="backups and snapshots of the store, and trash folders, have their own rules"),
)


def copies_elsewhere(
    topic: str, last: Mapping[BrokerPartition, int], uri: str, options: Mapping[str, str], cluster: "Cluster | None"
) -> Iterator[CopyElsewhere]:
    """The places.

    Args:
        topic: the topic.
        last: the largest erased offset of each partition.
        uri: the table.
        options: the options of its store.
        cluster: the cluster of the topic; None if it does not answer.
    """
    yield CopyElsewhere(place="Kafka", says=_in_kafka(topic, last, cluster))
    yield CopyElsewhere(place="store", says=versions_of_bucket(uri, options))
    yield from _ALWAYS


def _in_kafka(topic: str, last: Mapping[BrokerPartition, int], cluster: "Cluster | None") -> str:
    unknown = "the brokers were not asked: the records are there until the retention of the topic deletes them"
    if cluster is None:
        return unknown
    try:
        bounds = cluster.bounds(topic, sorted(last))
        holding = [id_ for id_, offset in last.items() if not _is_past(bounds.get(id_), offset)]
        if not holding:
            return "the logs of the partitions begin after the erased offsets: the brokers have none of the records"
        retention = cluster.retention([topic]).get(topic)
    except KafkaIOError:
        return unknown
    return f"{counted(len(holding), 'partition')} may have the records: {_limits(retention)}"


def _is_past(bounds: Bounds | KafkaIOError | None, offset: int) -> bool:
    """Whether the log of a partition begins after an offset."""
    return isinstance(bounds, Bounds) and bounds.earliest > offset


def _limits(retention: Retention | KafkaIOError | None) -> str:
    if not isinstance(retention, Retention) or retention.ms is None:
        return "their retention is not known"
    if retention.ms == FOREVER:
        return (
            "the topic has no retention time, so a compacted one keeps the last record of each key until a record "
            "without a value follows and the log is compacted"
        )
    return f"a segment is deleted when its newest record is {duration(retention.ms / 1000)} old (retention.ms)"
