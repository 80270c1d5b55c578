"""Proves for a topic with several tables that each of its offsets is a row of one of them, or a gap.

It reads the ledgers and their exact sets. An offset that is not a row of a table because another table has it is in a
set. So each offset that is in the sets of all tables but one belongs to this one. An offset that is in fewer sets is a
gap of the log, which all tables have, or a row of several tables: only then rows are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.formats.tables import lake_table
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import Coverage
from pipelines.table.exact_sets import ExactSets
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.verify import Proof, verify
from resources.errors import LoadError
from resources.table_names import route_of, topic_of

_MAX_LISTED = 5


def other_tables(table: LakeTable) -> list[LakeTable]:
    """The other tables of the topic of this table, as the ledger of the topic's own table names them.

    If that one cannot be read, the ledger of this table names them; if neither can, there are none.
    """
    own = lake_table(table.lake, table.where.cluster or "", topic_of(table.where.topic or ""))
    names = _named_by(own) or _named_by(table)
    return [lake_table(table.lake, table.where.cluster or "", name) for name in names if name != table.where.topic]


def _named_by(table: LakeTable) -> list[str]:
    """The names of all tables of the topic in the ledger of one of them; none if it cannot be read."""
    try:
        snapshot = table.existing()
    except LoadError:  # its own proof says why
        return []
    if snapshot is None or snapshot.entry is None:
        return []
    return snapshot.entry.state.routes.table_names(snapshot.entry.topic.kafka_topic)


def verify_topic(table: LakeTable) -> Proof:
    """The result of `verify`. That of a topic's own table also has the problems between all tables of the topic.

    Raises:
        LoadError: a table or one of its sets cannot be read.
    """
    proof, others = verify(table), [] if route_of(table.where.topic or "") else other_tables(table)
    if not others:
        return proof
    return replace(proof, problems=(*proof.problems, *problems_between([table, *others])))


def problems_between(tables: Sequence[LakeTable]) -> Iterator[str]:
    """The offsets of a topic that are in no table or in several, up to the lowest cursor of its tables, as sentences.

    Raises:
        ExactSetLost: a set is missing or damaged.
        LoadError: a table cannot be read.
    """
    loaded = [_Loaded.of(table) for table in tables]
    if any(each.snapshot is None for each in loaded):  # its own proof says that it is gone
        return
    for partition in sorted({partition for each in loaded for partition in each.covered}):
        own = [each.covered.get(partition, (0, 0)) for each in loaded]
        compared = OffsetRange(partition, min(start for start, _ in own), min(cursor for _, cursor in own))
        if compared.size > 0:
            yield from _problems(loaded, compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """A table with what its ledger says; without a snapshot the table is gone."""

    table: LakeTable
    snapshot: TableSnapshot | None
    covered: Coverage
    ranges: Sequence[CommittedRange]
    sets: ExactSets

    @classmethod
    def of(cls, table: LakeTable) -> Self:
        snapshot = table.existing()
        entry = snapshot.entry if snapshot else None
        ranges = ranges_of(table.entries(snapshot), entry.topic) if snapshot and entry else ()
        sets = table.sets
        return cls(table=table, snapshot=snapshot, covered=entry.covered if entry else {}, ranges=ranges, sets=sets)

    def of_partition(self, partition: BrokerPartition) -> Sequence[CommittedRange]:
        """The ranges of a partition."""
        return [committed for committed in self.ranges if committed.partition == partition]

    def own(self, compared: OffsetRange) -> ExactOffsets:
        """The offsets that are rows of no other table, as far as this one knows. Before it began it has none."""
        routed = self.sets.of_ranges(self.of_partition(compared.partition), compared)
        others = routed.get(ExactCause.ROUTED, NO_OFFSETS)
        start = max(compared.start, self.covered[compared.partition][0])
        return others.complement(replace(compared, start=start))

    def has_only_gaps(self, shared: ExactOffsets, compared: OffsetRange) -> bool:
        """Whether as many offsets as these are gaps of the log; False if a range is compared in part."""
        ranges = [part for part in self.of_partition(compared.partition) if part.offsets.intersection(compared)]
        is_whole = all(part.offsets.stop <= compared.stop for part in ranges)
        return is_whole and sum(sum(part.visible_gaps.values()) for part in ranges) == shared.count

    def rows_in(self, shared: ExactOffsets, partition: BrokerPartition) -> np.ndarray:
        """The offsets of a set that are rows of the table."""
        assert self.snapshot is not None
        rows = [
            np.array(self.table.row_offsets(self.snapshot, committed), np.int64)
            for committed in self.of_partition(partition)
            if shared.within(committed.offsets).count
        ]
        offsets = np.concatenate([np.zeros(0, np.int64), *rows])
        return offsets[shared.contains(offsets, np.zeros_like(offsets))]


def _problems(loaded: Sequence[_Loaded], compared: OffsetRange) -> Iterator[str]:
    partition = compared.partition
    nowhere, shared = _counted([each.own(compared) for each in loaded], compared)
    if nowhere.count:
        yield (
            f"{nowhere.count} offsets of partition {partition} are rows of no table of the topic, and no gaps: "
            f"{_first(nowhere)}"
        )
    if shared.count and not all(each.has_only_gaps(shared, compared) for each in loaded):
        rows = np.concatenate([each.rows_in(shared, partition) for each in loaded])
        offsets, counts = np.unique(rows, return_counts=True)
        if len(twice := offsets[counts > 1]):
            yield (
                f"{len(twice)} offsets of partition {partition} are rows of several tables of the topic: "
                f"{_first(ExactOffsets.of(twice))}"
            )


def _counted(sets: Sequence[ExactOffsets], compared: OffsetRange) -> tuple[ExactOffsets, ExactOffsets]:
    """The offsets that are in none of the sets, and those that are in several."""
    edges = np.concatenate(
        [[compared.start, compared.stop], *(edge for own in sets for edge in (own.firsts, own.seconds))]
    )
    steps = np.concatenate(
        [[0, 0], *(step for own in sets for step in (np.ones_like(own.firsts), -np.ones_like(own.seconds)))]
    )
    order = np.argsort(edges, kind="stable")
    edges, counts = edges[order].astype(np.int64), np.cumsum(steps[order])[:-1]
    starts, stops = edges[:-1], edges[1:]
    # A run that ends where another one begins leaves an empty piece between both, which `of_runs` drops.
    none, several = counts == 0, counts > 1
    return ExactOffsets.of_runs(starts[none], stops[none]), ExactOffsets.of_runs(starts[several], stops[several])


def _first(offsets: ExactOffsets) -> str:
    """The first offsets of a set, as text."""
    runs = list(zip(offsets.firsts.tolist(), offsets.seconds.tolist(), strict=True))[:_MAX_LISTED]
    more = ", ..." if len(offsets.firsts) > _MAX_LISTED else ""
    return ", ".join(str(start) if stop == start + 1 else f"{start} to {stop - 1}" for start, stop in runs) + more
