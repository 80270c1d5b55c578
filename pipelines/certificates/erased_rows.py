"""The rows that the erasures of one request took out of a table, as exact sets of offsets from the ledger.

The set of a commit is what is in the sets of the table after it, and not before it. Other requests are not in it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import RangeFold
from pipelines.ledger.ledger import LedgerEntry, TopicIdentity
from pipelines.maintenance.erase_result import ErasedRows
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_commit import TableCommit

_Mask = npt.NDArray[np.bool_]
_Sets = Mapping[tuple[TopicIdentity, BrokerPartition], ExactOffsets]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedByCommit:
    """The erased rows of a table before and after one commit, by incarnation and partition.

    `topic` is the present one after the commit.
    """

    topic: TopicIdentity
    before: _Sets
    after: _Sets

    @classmethod
    def of(cls, table: LakeTable, commit: TableCommit) -> Self:
        """Read them from the ledger.

        Raises:
            ExactSetLost: a set is missing or damaged.
            LoadError: the log cannot be read.
        """
        assert commit.entry is not None
        before, after = (_erased(table, version) for version in (commit.version - 1, commit.version))
        return cls(topic=commit.entry.topic, before=before, after=after)

    def new(self) -> Iterator[tuple[TopicIdentity, BrokerPartition, ExactOffsets, ExactOffsets]]:
        """Incarnation and partition of rows that the commit took out, with the sets before and after it."""
        for (topic, id_), after in self.after.items():
            before = self.before.get((topic, id_), NO_OFFSETS)
            if after.count > before.count:
                yield topic, id_, before, after

    def has_erased(self, topic: TopicIdentity, partition: BrokerPartition, offset: int) -> bool:
        """Whether the commit took a row with this offset out."""
        place = OffsetRange(partition, offset, offset + 1)
        sets = (own.get((topic, partition), NO_OFFSETS) for own in (self.before, self.after))
        before, after = (own.within(place).count for own in sets)
        return after > before

    def counts(self) -> Sequence[ErasedRows]:
        """The number of rows that the commit took out of each partition."""
        counts = Counter[BrokerPartition]()
        for _, id_, before, after in self.new():
            counts[id_] += after.count - before.count
        return [
            ErasedRows(broker=id_.broker, partition=id_.partition, rows=rows) for id_, rows in sorted(counts.items())
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedOffsets:
    """The rows of all commits of a request.

    Args:
        commits: the commits.
        loaded_us: the loading times of the rows of each topic. Topics of the same name have the same offsets.
    """

    commits: Sequence[ErasedByCommit] = ()
    loaded_us: Mapping[TopicIdentity, Collection[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: LakeTable, version: int, commits: Sequence[TableCommit]) -> Self:
        """The rows of these commits, in a table with this newest version."""
        # All that were ever loaded: files with rows that a replay has replaced can still be there.
        loaded_us = defaultdict[TopicIdentity, set[int]](set)
        for _, entry in _entries(table, version):
            loaded_us[entry.topic].update(committed.loaded_at_us for committed in entry.ranges)
        return cls(commits=[ErasedByCommit.of(table, commit) for commit in commits], loaded_us=loaded_us)

    def last_offsets(self) -> Mapping[BrokerPartition, int]:
        """The largest erased offset of each partition of the present topic. Brokers have no records of former ones."""
        last: dict[BrokerPartition, int] = {}
        for commit in self.commits:
            for topic, id_, _, after in commit.new():
                if topic == commit.topic:
                    last[id_] = max(last.get(id_, 0), int(after.stops[-1]) - 1)
        return last

    def last_messages(self, table: LakeTable, version: int) -> int:
        """The number of these rows of which the ledger has a digest: each was the last message of a load."""
        digests = {
            (entry.topic, id_, message.offset)
            for _, entry in _entries(table, version)
            for commit in self.commits
            for id_, message in entry.state.last_messages.items()
            if commit.has_erased(entry.topic, id_, message.offset)
        }
        return len(digests)

    def count_in(self, rows: pa.RecordBatch) -> int:
        """Count the erased rows among these rows, which have the columns IDENTIFYING in this order."""
        broker, partition, offset, inner, loaded_at = (column.cast(pa.int64()) for column in rows.columns)
        offsets, positions, loaded_us = (pc.fill_null(column, 0).to_numpy() for column in (offset, inner, loaded_at))
        erased: _Mask = np.zeros(rows.num_rows, np.bool_)
        for commit in self.commits:
            for topic, id_, before, after in commit.new():
                mask = pc.equal(partition, id_.partition)
                mask = pc.and_(mask, pc.equal(broker, id_.broker)) if id_.broker is not None else mask
                is_own = pc.fill_null(mask, fill_value=False).to_numpy(zero_copy_only=False)
                is_new = after.contains(offsets, positions) & ~before.contains(offsets, positions)
                erased |= is_own & is_new & ~np.isin(loaded_us, self._loaded_with_others(topic))
        return int(np.count_nonzero(erased))

    def _loaded_with_others(self, topic: TopicIdentity) -> npt.NDArray[np.int64]:
        """The loading times of the rows of all other topics of the name."""
        return np.array(list(chain(*(own for other, own in self.loaded_us.items() if other != topic))), np.int64)


def _erased(table: LakeTable, version: int) -> _Sets:
    """The erased rows of a version by incarnation and partition."""
    stored = table.sets
    parts = defaultdict[tuple[TopicIdentity, BrokerPartition], list[ExactOffsets]](list)
    for topic, committed in RangeFold().effective(_entries(table, version)):
        if ExactCause.ERASED in committed.exact:
            own = stored.of(committed.exact[ExactCause.ERASED]).within(committed.offsets)
            parts[topic, committed.partition].append(own)
    return {place: ExactOffsets.union(sets) for place, sets in parts.items()}


def _entries(table: LakeTable, version: int) -> Iterator[tuple[int, LedgerEntry]]:
    commits: Iterable[TableCommit] = table.commits(version)
    return ((commit.version, commit.entry) for commit in commits if commit.entry is not None)
