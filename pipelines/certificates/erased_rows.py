"""The rows that the erasures of one request took out of a table, as exact sets of offsets from the ledger.

The set of a commit is what is in the sets of the table after it, and not before it. Other requests are not in it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.delta.commits import DeltaCommit
from pipelines.delta.delta_table import LakeTable
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import RangeFold
from pipelines.ledger.ledger import LedgerEntry, TopicIdentity
from pipelines.maintenance.erase_result import ErasedRows

_Mask = npt.NDArray[np.bool_]
_Sets = Mapping[BrokerPartition, ExactOffsets]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedByCommit:
    """The erased rows of a topic before and after one commit, by partition."""

    topic: TopicIdentity
    before: _Sets
    after: _Sets

    @classmethod
    def of(cls, table: LakeTable, commit: DeltaCommit) -> Self:
        """Read them from the ledger.

        Raises:
            ExactSetLost: a set is missing or damaged.
            LoadError: the log cannot be read.
        """
        assert commit.entry is not None
        topic = commit.entry.topic
        before, after = (_erased(table, version, topic) for version in (commit.version - 1, commit.version))
        return cls(topic=topic, before=before, after=after)

    def has_erased(self, partition: BrokerPartition, offset: int) -> bool:
        """Whether the commit took a row with this offset out."""
        place = OffsetRange(partition, offset, offset + 1)
        before, after = (own.get(partition, NO_OFFSETS).within(place).count for own in (self.before, self.after))
        return after > before

    def counts(self) -> Sequence[ErasedRows]:
        """The number of rows that the commit took out of each partition."""
        counts = {id_: own.count - self.before.get(id_, NO_OFFSETS).count for id_, own in sorted(self.after.items())}
        return [
            ErasedRows(broker=id_.broker, partition=id_.partition, rows=rows) for id_, rows in counts.items() if rows
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
    def of(cls, table: LakeTable, version: int, commits: Sequence[DeltaCommit]) -> Self:
        """The rows of these commits, in a table with this newest version."""
        # All that were ever loaded: files with rows that a replay has replaced can still be there.
        loaded_us = defaultdict[TopicIdentity, set[int]](set)
        for _, entry in _entries(table, version):
            loaded_us[entry.topic].update(committed.loaded_at_us for committed in entry.ranges)
        return cls(commits=[ErasedByCommit.of(table, commit) for commit in commits], loaded_us=loaded_us)

    def last_offsets(self) -> Mapping[BrokerPartition, int]:
        """The largest erased offset of each partition."""
        last: dict[BrokerPartition, int] = {}
        for commit in self.commits:
            for id_, own in commit.after.items():
                if own.count > commit.before.get(id_, NO_OFFSETS).count:
                    last[id_] = max(last.get(id_, 0), int(own.stops[-1]) - 1)
        return last

    def last_messages(self, table: LakeTable, version: int) -> int:
        """The number of these rows of which the ledger has a digest: each was the last message of a load."""
        digests = {
            (entry.topic, id_, message.offset)
            for _, entry in _entries(table, version)
            for commit in self.commits
            if entry.topic == commit.topic
            for id_, message in entry.state.last_messages.items()
            if commit.has_erased(id_, message.offset)
        }
        return len(digests)

    def count_in(self, rows: pa.RecordBatch) -> int:
        """Count the erased rows among these rows, which have the columns IDENTIFYING in this order."""
        broker, partition, offset, inner, loaded_at = (column.cast(pa.int64()) for column in rows.columns)
        offsets, positions, loaded_us = (pc.fill_null(column, 0).to_numpy() for column in (offset, inner, loaded_at))
        erased: _Mask = np.zeros(rows.num_rows, np.bool_)
        for commit in self.commits:
            others = [own for topic, own in self.loaded_us.items() if topic != commit.topic]
            is_of_topic = ~np.isin(loaded_us, np.array(list(chain(*others)), np.int64))
            for id_, own in commit.after.items():
                mask = pc.equal(partition, id_.partition)
                mask = pc.and_(mask, pc.equal(broker, id_.broker)) if id_.broker is not None else mask
                is_own = pc.fill_null(mask, fill_value=False).to_numpy(zero_copy_only=False)
                before = commit.before.get(id_, NO_OFFSETS).contains(offsets, positions)
                erased |= is_of_topic & is_own & own.contains(offsets, positions) & ~before
        return int(np.count_nonzero(erased))


def _erased(table: LakeTable, version: int, topic: TopicIdentity) -> _Sets:
    """The erased rows of a version by partition."""
    stored, parts = table.sets, defaultdict[BrokerPartition, list[ExactOffsets]](list)
    for incarnation, committed in RangeFold().effective(_entries(table, version)):
        if incarnation == topic and ExactCause.ERASED in committed.exact:
            own = stored.of(committed.exact[ExactCause.ERASED]).within(committed.offsets)
            parts[committed.partition].append(own)
    return {id_: ExactOffsets.union(sets) for id_, sets in parts.items()}


def _entries(table: LakeTable, version: int) -> Iterator[tuple[int, LedgerEntry]]:
    commits: Iterable[DeltaCommit] = table.commits(version)
    return ((commit.version, commit.entry) for commit in commits if commit.entry is not None)
