"""Starts a new table at the offsets of another run.

The first commit of the table holds an empty range for each partition, at the next offset that the other loader would
have read. The first load continues there, as at any cursor. Nothing is guessed: a partition with records but without an
imported offset, and an offset that the brokers no longer hold, need a choice of the user.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.consumer.group_offsets import OffsetStorage, group_offsets
from kafka_io.errors import WireError
from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange
from pipelines.commit.commit import LoadChange, commit
from pipelines.cursors.camus import camus_offsets
from pipelines.cursors.export import exported_offsets
from pipelines.cursors.hadoop import hadoop_offsets
from pipelines.cursors.imported import ImportedOffsets
from pipelines.cursors.spark import spark_offsets
from pipelines.identity.truncation import check_incarnation
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.ledger import RecordedChoice, TableState, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.discovered import with_errors_apart
from pipelines.load.run import Run
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import CommitRefused, ImportRefused, TopicUnknown
from resources.printed import HIDDEN, printed_property

OnMissing = Literal["fail", "earliest"]
"""What to do with partitions that have records but no imported offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedStart:
    """The start of a table in a partition.

    It stands beside the bounds of the broker's log.
    `adopted` is the imported offset; None if there is none, and then the whole partition will be loaded.
    """

    broker: int | None
    partition: int
    adopted: int | None
    start: int
    earliest: int
    latest: int

    @printed_property
    def left(self) -> int:
        """What the first load will fetch: records, or bytes of the log in 0.7."""
        return self.latest - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportChange(LoadChange):
    """The first commit of a table. If another run commits first, this one is refused instead of rebased."""

    def rebased(self, now: TableSnapshot) -> Self | None:
        if now.entry is None:
            return self
        raise CommitRefused(f"run {now.entry.run} loaded the table first; nothing was imported", self.state.topic.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsImport:
    """A result of `penstock offsets import`; `version` is None with --dry-run.

    It is a plan: nothing has changed yet.
    """

    topic: str
    source: str
    partitions: tuple[ImportedStart, ...]
    change: ImportChange = field(metadata=HIDDEN)


_AdoptedOffset = tuple[BrokerPartition, int, Bounds]
"""A partition of the topic, its imported offset, and the bounds of its log."""

OffsetsSource = Callable[[Cluster, str], ImportedOffsets]
"""Takes a cluster and a topic, and returns the offsets that the other loader has; empty for a topic it does not know.

Raises OffsetsUnreadable for files that are missing or have other contents, and KafkaIOError for offsets that brokers or
ZooKeeper hold and that cannot be read there.
"""


def _group_offsets(cluster: Cluster, storage: OffsetStorage, group: str, topic: str) -> ImportedOffsets:
    return group_offsets(cluster, storage).fetch(group, [topic]).get(topic, {})


KINDS: Mapping[str, Callable[[Cluster, str, str], ImportedOffsets]] = {
    "group": lambda cluster, name, topic: _group_offsets(cluster, OffsetStorage.COORDINATOR, name, topic),
    "zookeeper": lambda cluster, name, topic: _group_offsets(cluster, OffsetStorage.ZOOKEEPER, name, topic),
    "hadoop": lambda cluster, path, topic: hadoop_offsets(cluster, Path(path), topic),
    "camus": lambda cluster, path, topic: camus_offsets(cluster, Path(path), topic),
    "spark": lambda _cluster, path, topic: spark_offsets(Path(path), topic),
    "file": lambda cluster, path, topic: exported_offsets(Path(path), topic, cluster=cluster.name),
}
"""Each kind with a function of the cluster, the name or path, and the topic."""


def parse_source(text: str) -> OffsetsSource:
    """The source that `kind:name` stands for. Nothing is read yet.

    Raises:
        ValueError: there is no such kind, or the name is empty.
    """
    kind, _, name = text.partition(":")
    if kind not in KINDS or not name:
        kinds = ", ".join(f"{possible_kind}:..." for possible_kind in KINDS)
        raise ValueError(f"{text!r} is not a source of offsets; give one of {kinds}")
    return lambda cluster, topic: KINDS[kind](cluster, name, topic)


def plan_import(
    run: Run,
    table: LakeTable,
    topic: str,
    imported: ImportedOffsets,
    *,
    source: str,
    missing: OnMissing = "fail",
) -> OffsetsImport:
    """Plan where the table of `topic` begins. Nothing is written.

    Args:
        run: its cluster gives the bounds of the logs, its choices say what to do about expired offsets.
        table: the topic's table, which must not have been loaded.
        topic: the name of the topic.
        imported: the offsets of the other run.
        source: where they come from, as the user wrote it; the commit records it.
        missing: what to do with partitions that have records but no imported offset.

    Raises:
        TopicUnknown: the cluster has no such topic.
        TopicRecreated: the bounds may be those of another topic with the same name.
        ImportRefused: the table was loaded already, or the offsets do not fit the logs.
        KafkaIOError: a broker does not report the bounds of a log.
    """
    entry = run.cluster.topic(topic)
    if entry is None:
        raise TopicUnknown("the cluster has no such topic; `penstock topics` lists its topics", table.where)
    _check_new(table, table.existing())
    bounds, errors = with_errors_apart(run.cluster.bounds(topic, list(entry.partitions)))
    for error in errors.values():
        raise error
    check_incarnation(run.cluster, entry, bounds)
    adopted = [
        (id_, offset, bounds[id_]) for id_, offset in sorted(imported.items()) if offset is not None and id_ in bounds
    ]
    problems = [
        *_partition_problems(imported, bounds, source=source, missing=missing),
        *_bounds_problems(adopted, can_skip=run.choices.on_expired == "skip"),
        *_message_problems(run, entry, adopted),
    ]
    if problems:
        and_more = f" (and {len(problems) - 1} more)" if problems[1:] else ""
        raise ImportRefused(f"{problems[0]}{and_more}", table.where)
    starts = tuple(_start(id_, imported.get(id_), bound) for id_, bound in sorted(bounds.items()))
    change = _change(run, entry, adopted, bounds, source)
    return OffsetsImport(topic=topic, source=source, partitions=starts, change=change)


def import_offsets(table: LakeTable, plan: OffsetsImport) -> int:
    """Write the first commit of the table, and return its version.

    Raises:
        ImportRefused: the table was loaded since the import was planned.
        LoadError: see `commit`.
    """
    snapshot = table.snapshot()
    _check_new(table, snapshot)
    return commit(table, snapshot, plan.change).version


def _check_new(table: LakeTable, snapshot: TableSnapshot | None) -> None:
    if snapshot is not None and snapshot.entry is not None:
        raise ImportRefused(
            "the table was loaded already; offsets can be imported only into a table without loads", table.where
        )


def _partition_problems(
    imported: ImportedOffsets, bounds: Mapping[BrokerPartition, Bounds], *, source: str, missing: OnMissing
) -> Iterator[str]:
    """Why the partitions of the source are not those of the topic."""
    known = {id_ for id_, offset in imported.items() if offset is not None}
    if not known:
        yield f"{source} has no offset for this topic"
    for id_ in sorted(known - bounds.keys()):
        yield f"{source} has an offset for partition {id_}, but the cluster has no such partition now"
    for id_ in sorted(bounds.keys() - known) if known and missing == "fail" else ():
        bound = bounds[id_]
        if bound.earliest < bound.latest:
            yield (
                f"{source} has no offset for partition {id_}, whose log is [{bound.earliest}, {bound.latest}); "
                "give --missing earliest to load such partitions completely"
            )


def _bounds_problems(adopted: Iterable[_AdoptedOffset], *, can_skip: bool) -> Iterator[str]:
    """The partitions whose log has no imported offset any more, or not yet."""
    for id_, offset, bound in adopted:
        if offset > bound.latest:
            yield f"partition {id_}: offset {offset} is beyond the end of the log [{bound.earliest}, {bound.latest})"
        elif offset < bound.earliest and not can_skip:
            yield (
                f"partition {id_}: offsets [{offset}, {bound.earliest}) expired before the import; "
                'set on_expired = "skip" to record them as a gap and begin at the log\'s earliest offset'
            )


def _message_problems(run: Run, entry: TopicEntry, adopted: Iterable[_AdoptedOffset]) -> Iterator[str]:
    """The partitions of 0.7 where no message starts at the imported offset.

    A broker of 0.7 serves its log from any byte, so only reading shows whether a message starts there.
    """
    for id_, offset, bound in adopted:
        if id_.broker is not None and bound.earliest < offset < bound.latest:
            offsets = OffsetRange(id_, offset, bound.latest)
            planned_range = PlannedRange(topic=entry.name, offsets=offsets, incarnation=entry.incarnation)
            try:
                with closing(run.cluster.source(id_).open()) as reader:
                    for batches in reader.read([planned_range]):
                        next(batches, None)
            except WireError as error:
                yield f"partition {id_}: no message starts at {offset} ({error.reason})"


def _start(id_: BrokerPartition, adopted: int | None, bound: Bounds) -> ImportedStart:
    return ImportedStart(
        broker=id_.broker,
        partition=id_.partition,
        adopted=adopted,
        start=max(bound.earliest, adopted or 0),
        earliest=bound.earliest,
        latest=bound.latest,
    )


def _change(
    run: Run,
    entry: TopicEntry,
    adopted: Iterable[_AdoptedOffset],
    bounds: Mapping[BrokerPartition, Bounds],
    source: str,
) -> ImportChange:
    """The first commit: an empty range for each partition, after the offsets that expired.

    A partition without an imported offset begins at its earliest offset. If that is offset 0, it needs no range.
    """
    now_us = int(run.now().timestamp() * 1_000_000)
    begins = {id_: OffsetRange(id_, bound.earliest, bound.earliest) for id_, bound in bounds.items() if bound.earliest}
    choices = []
    for id_, offset, bound in adopted:
        start = max(offset, bound.earliest)
        begins[id_] = OffsetRange(id_, offset, start)
        choice = RecordedChoice(setting="adopted from", value=source, partition=str(id_), start=offset, stop=offset)
        choices.append(choice)
        if offset < start:
            choices.append(replace(choice, setting="on_expired", value="skip", stop=start))
    return ImportChange(
        state=TableState.new(TopicIdentity.of(run.cluster, entry), entry.also),
        facts=tuple(
            SliceFacts(range=CommittedRange(offsets=begin, gaps=_expired(begin), loaded_at_us=now_us))
            for _, begin in sorted(begins.items())
        ),
        epochs={id_: bound.epoch for id_, bound in bounds.items() if bound.epoch >= 0},
        choices=tuple(choices),
        run=run.id,
    )


def _expired(offsets: OffsetRange) -> Mapping[str, int]:
    return {EXPIRED: offsets.size} if offsets.size else {}
