"""Deep verify: what brokers still hold of a table is read again, and compared with it row by row.

It is read in this process, as a load reads it: with the caps, the isolation and the rack of the settings.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka_io.client.cluster import Cluster
from kafka_io.client.reading import Span
from kafka_io.errors import KafkaIOError, PlacedError
from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.loading.ledger import Range, Topic
from pipelines.loading.pieces import Interval
from pipelines.loading.rows import table_rows
from pipelines.loading.standing import standing
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot
from pipelines.loading.verify import Proof, verify
from pipelines.mending.compare import Comparison, compare
from pipelines.mending.rows import LiveRows, TableRows
from resources.errors import LogTruncated, TopicUnknown
from resources.spark import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionComparison:
    """What was compared of one partition: the offsets `[start, end)`. So many others of its table were not."""

    id: BrokerPartition
    start: int
    end: int
    not_compared: int
    found: Comparison

    def as_dict(self) -> dict[str, Any]:
        """As `penstock verify --deep --json` prints it."""
        return {
            "broker": self.id.broker,
            "partition": self.id.partition,
            "start": self.start,
            "end": self.end,
            "not_compared": self.not_compared,
            **self.found.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepProof(Proof):
    """What is proven of a table beside its brokers; where they differ is among the problems."""

    compared: tuple[PartitionComparison, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As `penstock verify --deep --json` prints it."""
        return {**Proof.as_dict(self), "compared": [one.as_dict() for one in self.compared]}


def deep_verify(table: LakeTable, cluster: Cluster, *, on_progress: Progress = lambda _done, _total: None) -> DeepProof:
    """Prove the table as `verify` does, then compare the newest life's rows with what brokers hold of them.

    What retention took is told as not compared, and is no problem. Rows that only the table has are none from 0.8 on,
    where compaction removes records from the log.

    Raises:
        LakeUnavailable: the store gives no answer.
    """
    proof = verify(table)
    try:
        at = table.existing()
        if at is None or at.entry is None:
            return _with(proof, [])
        topic, rows = _newest_life(table, at, cluster)
    except PlacedError as error:
        return _with(proof, [f"nothing was compared with the brokers: {error}"])
    partitions: list[PartitionComparison] = []
    problems: list[str] = []
    done, total = 0, sum(_span(mine) for mine in rows.ranges.values())
    for id_, mine in sorted(rows.ranges.items()):
        try:
            one = _compared(cluster, topic, rows.of(id_), mine, partial(_tell, on_progress, done, total))
        except PlacedError as error:
            problems.append(f"partition {id_} was not compared with its broker: {error}")
        else:
            partitions.append(one)
            problems += _told(one)
        done += _span(mine)
        on_progress(done, total)
    return _with(proof, problems, partitions)


def _with(proof: Proof, problems: Sequence[str], compared: Sequence[PartitionComparison] = ()) -> DeepProof:
    return DeepProof(
        topic=proof.topic,
        table=proof.table,
        problems=(*proof.problems, *problems),
        partitions=proof.partitions,
        compared=tuple(compared),
    )


def _span(ranges: Sequence[Range]) -> int:
    return ranges[-1].stop - ranges[0].start


def _tell(on_progress: Progress, done: int, total: int, more: int) -> None:
    on_progress(done + more, total)


def _newest_life(table: LakeTable, at: Snapshot, cluster: Cluster) -> tuple[TopicEntry, TableRows]:
    """The topic, and the table's rows of its present life.

    Raises:
        PlacedError: they cannot be told, or are not of one life.
    """
    name = table.where.topic or ""
    found = cluster.topic(name)
    if found is None:
        raise TopicUnknown("the registry has no such topic")
    topic = Topic(cluster=cluster.name, cluster_id=cluster.cluster_id() or "", name=name, incarnation=found.incarnation)
    return found, TableRows(table, at, standing(at, topic, found.also).topic)


def _compared(
    cluster: Cluster,
    topic: TopicEntry,
    rows: LiveRows,
    ranges: Sequence[Range],
    on_progress: Callable[[int], None],
) -> PartitionComparison:
    """Compare what the broker holds now of what the table covers.

    Raises:
        KafkaIOError: it cannot be read.
        LogTruncated: it ends before the table does.
    """
    id_, first, cursor = ranges[0].id, ranges[0].start, ranges[-1].stop
    bounds = cluster.bounds(topic.name, [id_])[id_]
    if isinstance(bounds, KafkaIOError):
        raise bounds
    if bounds.latest < cursor:
        raise LogTruncated(f"the log ends at {bounds.latest}, the table at {cursor}")
    held = Interval(id=id_, start=min(max(first, bounds.earliest), cursor), stop=cursor)
    found = Comparison()
    span = Span(topic=topic.name, id=id_, start=held.start, stop=held.stop, incarnation=topic.incarnation)
    with closing(cluster.source(id_).open()) as reader:
        batches = (table_rows(decoded.batch, {}) for each in reader.read([span]) for decoded in each)
        for reached, piece in compare(batches, rows, held) if held.start < held.stop else ():
            found += piece
            on_progress(reached - first)
    return PartitionComparison(id=id_, start=held.start, end=cursor, not_compared=held.start - first, found=found)


def _told(one: PartitionComparison) -> Iterator[str]:
    found = one.found
    if found.differing.count:
        yield f"partition {one.id} is not what its broker has: {found.differing}"
    if found.only_on_broker.count:
        yield f"partition {one.id} lacks what its broker has: {found.only_on_broker}"
    if found.only_in_table.count and one.id.broker is not None:  # a log of 0.7 is never compacted
        yield f"partition {one.id} has what its broker has not: {found.only_in_table}"
