"""Deep verify: read again what the brokers still hold of a table, and compare it with the table row by row.

This process reads the records as a load reads them: with the caps, the isolation and the rack of the settings.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, LocatedError
from kafka_io.model import OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange
from pipelines.loading.identity import table_state
from pipelines.loading.ledger import TopicIdentity
from pipelines.loading.outcome import printed_range
from pipelines.loading.rows import table_rows
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import TableSnapshot
from pipelines.loading.verify import Proof, verify
from pipelines.loading.work import CommittedRange
from pipelines.maintenance.compare import Comparison, compare
from pipelines.maintenance.table_rows import LiveRows, TableRows
from resources.errors import LogTruncated, TopicUnknown
from resources.spark import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionComparison:
    """The compared offsets of one partition, and the number of the table's offsets that were not compared."""

    offsets: OffsetRange
    not_compared: int
    comparison: Comparison

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock verify --deep --json`."""
        return {**printed_range(self.offsets), "not_compared": self.not_compared, **self.comparison.as_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepProof(Proof):
    """The result of a deep verify. Differences between the table and the brokers are among the problems."""

    compared: tuple[PartitionComparison, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock verify --deep --json`."""
        return {**Proof.as_dict(self), "compared": [partition.as_dict() for partition in self.compared]}


def deep_verify(table: LakeTable, cluster: Cluster, *, on_progress: Progress = lambda _done, _total: None) -> DeepProof:
    """Check the table as `verify` does, then compare the rows of the newest incarnation with the brokers' records.

    Offsets that retention has removed from the log are reported as not compared; that is not a problem. From 0.8 on
    rows that only the table has are not a problem either: compaction removes records from the log.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    proof = verify(table)
    problems = list(proof.problems)
    compared: list[PartitionComparison] = []
    try:
        snapshot = table.existing()
        if snapshot is not None and snapshot.entry is not None:
            topic, rows = _newest_incarnation(table, snapshot, cluster)
            for result in _comparisons(cluster, topic, rows, on_progress):
                if isinstance(result, PartitionComparison):
                    compared.append(result)
                    problems += _problems(result)
                else:
                    problems.append(result)
    except LocatedError as error:
        problems.append(f"nothing was compared with the brokers: {error}")
    values = {item.name: getattr(proof, item.name) for item in fields(proof)}
    return DeepProof(**{**values, "problems": tuple(problems), "compared": tuple(compared)})


def _comparisons(
    cluster: Cluster, topic: TopicEntry, rows: TableRows, on_progress: Progress
) -> Iterator[PartitionComparison | str]:
    """The comparison of each partition, or why it was not compared."""
    done, total = 0, sum(_extent(ranges) for ranges in rows.ranges.values())
    for partition, ranges in sorted(rows.ranges.items()):
        try:
            yield _compare(cluster, topic, rows.of(partition), ranges, partial(_report, on_progress, done, total))
        except LocatedError as error:
            yield f"partition {partition} was not compared with its broker: {error}"
        done += _extent(ranges)
        on_progress(done, total)


def _report(on_progress: Progress, done: int, total: int, more: int) -> None:
    on_progress(done + more, total)


def _extent(ranges: Sequence[CommittedRange]) -> int:
    """The number of offsets from the first range's start to the last one's stop."""
    return ranges[-1].offsets.stop - ranges[0].offsets.start


def _newest_incarnation(table: LakeTable, snapshot: TableSnapshot, cluster: Cluster) -> tuple[TopicEntry, TableRows]:
    """The topic, and the table's rows of its present incarnation.

    Raises:
        LocatedError: the topic is unknown, or the table holds another incarnation.
    """
    entry = cluster.topic(table.where.topic or "")
    if entry is None:
        raise TopicUnknown("the cluster has no such topic")
    state = table_state(snapshot, TopicIdentity.of(cluster, entry), entry.also)
    return entry, TableRows(table, snapshot, state.topic)


def _compare(
    cluster: Cluster,
    topic: TopicEntry,
    rows: LiveRows,
    ranges: Sequence[CommittedRange],
    on_progress: Callable[[int], None],
) -> PartitionComparison:
    """Compare what the broker still holds of the partition's committed ranges.

    Raises:
        KafkaIOError: it cannot be read.
        LogTruncated: the log ends before the table does.
    """
    partition, first, cursor = ranges[0].partition, ranges[0].offsets.start, ranges[-1].offsets.stop
    bounds = cluster.bounds(topic.name, [partition])[partition]
    if isinstance(bounds, KafkaIOError):
        raise bounds
    if bounds.latest < cursor:
        raise LogTruncated(f"the log ends at {bounds.latest}, but the table at {cursor}")
    on_broker = OffsetRange(partition, min(max(first, bounds.earliest), cursor), cursor)
    comparison = Comparison()
    planned = PlannedRange(topic=topic.name, offsets=on_broker, incarnation=topic.incarnation)
    with closing(cluster.source(partition).open()) as reader:
        batches = (table_rows(decoded.batch, {}) for batches in reader.read([planned]) for decoded in batches)
        for reached, piece in compare(batches, rows, on_broker) if on_broker.size else ():
            comparison += piece
            on_progress(reached - first)
    return PartitionComparison(offsets=on_broker, not_compared=on_broker.start - first, comparison=comparison)


def _problems(compared: PartitionComparison) -> Iterator[str]:
    partition, comparison = compared.offsets.partition, compared.comparison
    if comparison.differing.count:
        yield f"partition {partition} differs from its broker: {comparison.differing}"
    if comparison.only_on_broker.count:
        yield f"partition {partition} lacks what its broker has: {comparison.only_on_broker}"
    if comparison.only_in_table.count and partition.broker is not None:  # a log of 0.7 is never compacted
        yield f"partition {partition} has what its broker does not have: {comparison.only_in_table}"
