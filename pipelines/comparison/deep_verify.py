"""Deep verify: read again what the brokers still hold of a table, and compare it with the table row by row.

This process reads the records as a load reads them: with the caps and the rack of the settings, and with the
isolation of the load.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import LocatedError
from kafka_io.model import OffsetRange, TopicEntry
from kafka_io.records.gaps import ABORTED
from pipelines.comparison.broker_rows import BrokerRows
from pipelines.comparison.compare import Comparison, compare
from pipelines.comparison.table_rows import LiveRows, TableRows
from pipelines.fetch.decode_plan import check_format
from pipelines.fetch.decoding import Decoding, OpenRegistry, no_registry
from pipelines.fetch.unreadable import GAPS
from pipelines.identity.identity import table_state
from pipelines.increments.offset_sets import OffsetSet
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import TopicIdentity
from pipelines.rules.changes import varying_columns
from pipelines.table.exact_sets import ExactSets
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.verify import Proof, verify
from resources.errors import TopicUnknown
from resources.printed import HIDDEN, INLINED
from resources.progress import Progress
from resources.settings.topic_formats import RAW_FORMAT, TopicFormat
from resources.table_names import topic_of

_ISOLATION_HINT = (
    " (the ledger does not say with which `isolation` they were loaded; if it was another one than in the settings, "
    "that explains the difference)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionComparison:
    """A partition that was compared with its broker.

    Args:
        offsets: the compared offsets.
        not_compared: the number of the table's offsets that were not compared.
        comparison: the result.
        is_known: whether the ledger says with which isolation all of them were loaded.
        aborted: the number of offsets of aborted transactions, where the ledger does not say it.
    """

    offsets: OffsetRange = field(metadata=INLINED)
    not_compared: int
    comparison: Comparison = field(metadata=INLINED)
    is_known: bool = field(metadata=HIDDEN)
    aborted: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepProof(Proof):
    """A result of `penstock verify`.

    Differences between the table and the brokers are among the problems.
    """

    compared: tuple[PartitionComparison, ...] = ()
    """Only with --deep."""


def deep_verify(
    table: LakeTable,
    cluster: Cluster,
    *,
    format_: TopicFormat = RAW_FORMAT,
    open_registry: OpenRegistry = no_registry,
    on_progress: Progress = lambda _done, _total: None,
    values: bool = False,
) -> DeepProof:
    """Check the table as `verify` does, then compare the rows of the newest incarnation with the brokers' records.

    Offsets that retention has removed from the log are reported as not compared; that is not a problem. From 0.8 on
    rows that only the table has are not a problem either: compaction removes records from the log. The values of a
    typed table are compared with the records as the topic's format decodes them now.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    proof = verify(table, values=values)
    problems, failure = list(proof.problems), proof.failure
    compared: list[PartitionComparison] = []
    try:
        snapshot = table.existing()
        if snapshot is not None and snapshot.entry is not None:
            check_format(format_, snapshot, table.uri)
            topic, rows = _newest_incarnation(table, snapshot, cluster)
            without_rows = _WithoutRows(_skipped(table, snapshot), table.sets)
            varying = varying_columns(snapshot.entry.state.rules, snapshot.layout)
            decoding = Decoding(format_, snapshot, open_registry)
            broker_rows = BrokerRows(cluster, topic, decoding, not_compared=varying)
            for result in _comparisons(broker_rows, rows, without_rows, on_progress):
                if isinstance(result, PartitionComparison):
                    compared.append(result)
                    problems += _problems(result)
                else:
                    problems.append(result)
    except LocatedError as error:
        failure = SliceFailure.of(error, table.where)
        problems.append(f"nothing was compared with the brokers: {error}")
    of_table = {item.name: getattr(proof, item.name) for item in fields(proof)}
    changed = {"problems": tuple(problems), "compared": tuple(compared), "failure": failure}
    return DeepProof(**{**of_table, **changed})


class _WithoutRows(NamedTuple):
    """The offsets whose records have no row on purpose: those that loads skipped, and those of exact sets."""

    skipped: OffsetSet
    exact_sets: ExactSets


def _skipped(table: LakeTable, snapshot: TableSnapshot) -> OffsetSet:
    """The offsets that loads skipped by choice, because their records could not be read."""
    choices = (choice for _, entry in table.entries(snapshot) for choice in entry.choices)
    return OffsetSet(choice.offsets for choice in choices if choice.setting in GAPS)


def _comparisons(
    broker_rows: BrokerRows, rows: TableRows, without_rows: _WithoutRows, on_progress: Progress
) -> Iterator[PartitionComparison | str]:
    """The comparison of each partition, or why it was not compared."""
    done, total = 0, sum(_extent(ranges) for ranges in rows.ranges.values())
    with broker_rows:
        for partition, ranges in sorted(rows.ranges.items()):
            try:
                report = partial(_report, on_progress, done, total)
                yield _compare(broker_rows, rows.of(partition), ranges, without_rows, report)
            except LocatedError as error:
                broker_rows.drop()
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
    name = table.where.topic or ""
    entry = cluster.topic(topic_of(name))
    if entry is None:
        raise TopicUnknown("the cluster has no such topic; `penstock topics` lists its topics")
    state = table_state(snapshot, TopicIdentity.of(cluster, entry, name), entry.also)
    return entry, TableRows(table, snapshot, state.topic, without=table.damaged(snapshot.opened))


def _compare(
    broker_rows: BrokerRows,
    rows: LiveRows,
    ranges: Sequence[CommittedRange],
    without_rows: _WithoutRows,
    on_progress: Callable[[int], None],
) -> PartitionComparison:
    """Compare what the broker still holds of the partition's committed ranges, each read as it was loaded.

    The offsets that the load skipped are not compared. Records of exact sets must have no row in the table.

    Raises:
        KafkaIOError: it cannot be read.
        LogTruncated: the log ends before the table does.
    """
    first, on_broker = ranges[0].offsets.start, broker_rows.retained(ranges)
    comparison, aborted, unread = Comparison(), 0, 0
    filled = (committed for committed in ranges if committed.offsets.size)
    for isolation, group in groupby(filled, key=lambda committed: committed.isolation):
        members = [committed.offsets for committed in group]
        offsets = replace(members[0], stop=members[-1].stop).intersection(on_broker)
        if offsets is None:
            continue
        broker_rows.gaps.clear()
        readable = list(OffsetSet([offsets]) - without_rows.skipped)
        unread += offsets.size - sum(part.size for part in readable)
        for part in readable:
            left_out = ExactOffsets.union(without_rows.exact_sets.of_ranges(ranges, part).values())
            batches = broker_rows.batches(part, isolation, without=left_out)
            compared_rows = partial(compare, inferred=broker_rows.inferred, without=broker_rows.not_compared)
            for piece_end, piece in compared_rows(batches, rows, part):
                comparison += piece
                on_progress(piece_end - first)
        aborted += 0 if isolation else broker_rows.gaps[ABORTED]
    return PartitionComparison(
        offsets=on_broker,
        not_compared=on_broker.start - first + unread,
        comparison=comparison,
        is_known=all(committed.isolation for committed in ranges if committed.offsets.size),
        aborted=aborted,
    )


def _problems(compared: PartitionComparison) -> Iterator[str]:
    partition, comparison = compared.offsets.partition, compared.comparison
    # Versions before 0.7.0 did not record the isolation. Transactions exist only where partitions have no broker.
    hint = "" if compared.is_known or partition.broker is not None else _ISOLATION_HINT
    if comparison.differing.count:
        yield f"partition {partition} differs from its broker: {comparison.differing}"
    if comparison.only_on_broker.count:
        yield f"partition {partition} lacks what its broker has: {comparison.only_on_broker}{hint}"
    # A log of 0.7 is never compacted. Later, compaction explains such rows, unless records of transactions may.
    if comparison.only_in_table.count and (partition.broker is not None or compared.aborted):
        yield f"partition {partition} has what its broker does not have: {comparison.only_in_table}{hint}"
