"""Random histories of a ledger without a table, and what each version contains, row by row."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause, LoadedRange, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, TableState, TopicIdentity
from pipelines.table.exact_sets import inline_exact

PARTITIONS = (BrokerPartition(None, 0), BrokerPartition(None, 1))
KINDS = (
    *("load", "load", "load", "backfill", "replay", "cut", "rewind", "compaction", "restart", "redecode", "convert"),
    *("rewrite", "erase", "erase", "retire"),
)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A row as a consumer sees it: its place, when it was loaded, and how often it was decoded again."""

    topic: TopicIdentity
    partition: BrokerPartition
    offset: int
    loaded_at_us: int
    decoded: int = 0


Rows = frozenset[LedgerRow]
LedgerPlace = tuple[TopicIdentity, BrokerPartition, int]


def place_of(row: LedgerRow) -> LedgerPlace:
    """Where a row is from."""
    return row.topic, row.partition, row.offset


def retired_set(offsets: Collection[int]) -> Mapping[ExactCause, StoredSet]:
    """The exact sets of a range in which these offsets are retired."""
    stored = inline_exact(ExactOffsets.of(np.array(sorted(offsets), np.int64)))
    return {ExactCause.RETIRED: stored} if stored and offsets else {}


@dataclass(slots=True)
class LedgerHistory:
    """A ledger and the rows of each version. `entries` has None for versions without an entry, as of a compaction.

    Attributes:
        retired: the places of rows that were retired, of each version.
        erased: the places of rows that were erased, of each version.
        erased_in: the version of the newest erasure. No rewind goes below it.
    """

    entries: list[LedgerEntry | None]
    rows: list[Rows]
    random: Random
    with_written: bool = True
    clock_us: int = 1000
    retired: list[frozenset[LedgerPlace]] = field(default_factory=lambda: [frozenset()])
    erased: list[frozenset[LedgerPlace]] = field(default_factory=lambda: [frozenset()])
    erased_in: int = 0

    @classmethod
    def of(cls, kinds: list[str], random: Random, *, with_written: bool = True) -> "LedgerHistory":
        """The history in which these things happen, as far as they are possible."""
        history = cls([None], [frozenset()], random, with_written)
        for kind in kinds:
            history.clock_us += 1
            getattr(history, f"_{kind}")()
        return history

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.entries) - 1

    def newest_first(self, upto: int) -> Iterator[tuple[int, LedgerEntry]]:
        """The entries up to a version, as a table gives them."""
        for version in range(upto, -1, -1):
            entry = self.entries[version]
            if entry is not None:
                yield version, entry

    def _newest(self) -> LedgerEntry | None:
        return next((entry for _, entry in self.newest_first(self.version)), None)

    def _append(
        self,
        kind: CommitKind,
        rows: Rows,
        covered: Coverage,
        *ranges: CommittedRange,
        topic: TopicIdentity | None = None,
        **more: object,
    ) -> None:
        entry = LedgerEntry(
            commit=f"commit {len(self.entries)}",
            run="run",
            kind=kind,
            sequence=len(self.entries),
            ranges=ranges,
            state=TableState(topic=topic or self._topic(), covered=covered),
        )
        self.entries.append(replace(entry, **more))  # type: ignore[arg-type] # fields of an entry
        self.rows.append(rows)
        # What is covered no longer, or is there again, is not retired.
        there = {place_of(row) for row in rows}
        self.retired.append(self.retired[-1] - there)
        self.erased.append(self.erased[-1] - there)

    def _covered(self) -> dict[BrokerPartition, tuple[int, int]]:
        newest = self._newest()
        return dict(newest.covered) if newest else {}

    def _range(self, partition: BrokerPartition, start: int, stop: int) -> CommittedRange:
        return CommittedRange(offsets=OffsetRange(partition, start, stop), loaded_at_us=self.clock_us)

    def _topic(self) -> TopicIdentity:
        newest = self._newest()
        return newest.topic if newest else TopicIdentity(cluster="main", name="clicks", incarnation="0")

    def _loaded(self, ranges: list[CommittedRange], topic: TopicIdentity | None = None) -> Rows:
        """The rows of ranges. Every seventh offset is a gap."""
        topic = topic or self._topic()
        return frozenset(
            LedgerRow(topic, part.partition, offset, self.clock_us)
            for part in ranges
            for offset in range(part.offsets.start, part.offsets.stop)
            if offset % 7
        )

    def _without(self, ranges: list[CommittedRange]) -> Rows:
        topic = self._topic()
        taken = {(part.partition, offset) for part in ranges for offset in range(part.offsets.start, part.offsets.stop)}
        return frozenset(row for row in self.rows[-1] if row.topic != topic or (row.partition, row.offset) not in taken)

    def _load(self) -> None:
        covered, ranges = self._covered(), []
        for partition in self.random.sample(PARTITIONS, self.random.randint(1, 2)):
            start, stop = covered.get(partition, (10, 10))
            middle, end = stop + self.random.randint(1, 6), stop + self.random.randint(6, 12)
            ranges += [self._range(partition, stop, middle), self._range(partition, middle, end)]
            covered[partition] = start, end
        self._append(CommitKind.LOAD, self.rows[-1] | self._loaded(ranges), covered, *ranges)

    def _backfill(self) -> None:
        covered, ranges = self._covered(), []
        for partition, (start, stop) in covered.items():
            if start > 0:
                begin = self.random.randint(0, start - 1)
                ranges.append(self._range(partition, begin, start))
                covered[partition] = begin, stop
        if ranges:
            self._append(CommitKind.LOAD, self.rows[-1] | self._loaded(ranges), covered, *ranges)

    def _some(self) -> OffsetRange | None:
        """Some offsets that the table covers."""
        covered = [(partition, bounds) for partition, bounds in self._covered().items() if bounds[0] < bounds[1]]
        if not covered:
            return None
        partition, (start, stop) = self.random.choice(covered)
        first = self.random.randint(start, stop - 1)
        return OffsetRange(partition, first, self.random.randint(first + 1, stop))

    def _copied(self, replaced: OffsetRange, stop: int) -> list[CommittedRange]:
        """The offsets beside a replaced range, with the loading times that their rows have."""
        topic = self._topic()
        times = {(row.partition, row.offset): row.loaded_at_us for row in self.rows[-1] if row.topic == topic}
        around = [*range(max(replaced.start - 3, self._covered()[replaced.partition][0]), replaced.start)]
        around += range(replaced.stop, min(replaced.stop + 3, stop))
        return [
            CommittedRange(offsets=OffsetRange(replaced.partition, offset, offset + 1), loaded_at_us=times[key])
            for offset in around
            if (key := (replaced.partition, offset)) in times
        ]

    def _replay(self) -> None:
        offsets = self._some()
        if offsets is None:
            return
        covered = self._covered()
        gone = self.erased[-1] | self.retired[-1]
        bare = self._range(offsets.partition, offsets.start, offsets.stop)
        retired = [place for place in self.retired[-1] if self._is_in(place, bare)]
        fetched = [replace(bare, exact=retired_set([offset for _, _, offset in retired]))]
        copied = self._copied(offsets, covered[offsets.partition][1])
        written = tuple(map(LoadedRange.of, fetched)) if self.with_written else ()
        rows = self._without(fetched) | {row for row in self._loaded(fetched) if place_of(row) not in gone}
        self._append(CommitKind.REPLAY, rows, covered, *fetched, *copied, written=written)

    def _cut(self) -> None:
        offsets = self._some()
        if offsets is None:
            return
        covered = self._covered()
        start, stop = covered[offsets.partition]
        covered[offsets.partition] = start, offsets.start
        copied = self._copied(OffsetRange(offsets.partition, offsets.start, stop), offsets.start)
        cut = self._range(offsets.partition, offsets.start, stop)
        self._append(CommitKind.CUT, self._without([cut]), covered, *copied)
        for places in (self.retired, self.erased):
            places[-1] = frozenset(place for place in places[-1] if not self._is_in(place, cut))

    def _rewind(self) -> None:
        target = self.random.randint(self.erased_in, self.version)
        if self._newest() is None or target == self.version:
            return
        restored = next((entry for _, entry in self.newest_first(target)), None)
        covered = dict(restored.covered) if restored else {}
        topic = restored.topic if restored else self._topic()
        self._append(CommitKind.REWIND, self.rows[target], covered, target=target, topic=topic)
        self.retired[-1], self.erased[-1] = self.retired[target], self.erased[target]

    def _compaction(self) -> None:
        self.entries.append(None)
        self.rows.append(self.rows[-1])
        self.retired.append(self.retired[-1])
        self.erased.append(self.erased[-1])

    def _restart(self) -> None:
        if self._newest() is None:
            return
        topic = replace(self._topic(), incarnation=str(self.version))
        ranges = [self._range(PARTITIONS[0], 10, 10 + self.random.randint(1, 9))]
        rows = self.rows[-1] | self._loaded(ranges, topic)
        self._append(CommitKind.LOAD, rows, {PARTITIONS[0]: (10, ranges[0].offsets.stop)}, *ranges, topic=topic)

    def _is_in(self, place: LedgerPlace, part: CommittedRange) -> bool:
        topic, partition, offset = place
        is_own = (topic, partition) == (self._topic(), part.partition)
        return is_own and part.offsets.start <= offset < part.offsets.stop

    def _erase(self) -> None:
        offsets = self._some()
        if offsets is None:
            return
        erased = self._range(offsets.partition, offsets.start, offsets.stop)
        hits = frozenset(row for row in self.rows[-1] if self._is_in(place_of(row), erased))
        if hits:
            written = tuple(LoadedRange(self._offset(row), row.loaded_at_us) for row in hits)
            ranges = (CommittedRange(offsets=part.offsets, loaded_at_us=part.loaded_at_us) for part in written)
            self._append(CommitKind.ERASE, self.rows[-1] - hits, self._covered(), *ranges, written=written)
            self.erased[-1] |= {place_of(row) for row in hits}
            self.erased_in = self.version

    def _retire(self) -> None:
        """Retire the rows of the present topic that were loaded until some time."""
        until = self.clock_us - self.random.randint(0, 6)
        hits = frozenset(row for row in self.rows[-1] if row.topic == self._topic() and row.loaded_at_us <= until)
        if hits:
            ranges = (
                CommittedRange(
                    offsets=self._offset(row),
                    loaded_at_us=row.loaded_at_us,
                    exact=retired_set([row.offset]),
                )
                for row in hits
            )
            self._append(CommitKind.RETIRE, self.rows[-1] - hits, self._covered(), *ranges)
            self.retired[-1] |= {place_of(row) for row in hits}

    def _offset(self, row: LedgerRow) -> OffsetRange:
        return OffsetRange(row.partition, row.offset, row.offset + 1)

    def _redecode(self) -> None:
        """Decode the rows of some loading times again, of any incarnation."""
        times = sorted({row.loaded_at_us for row in self.rows[-1]})
        if not times:
            return
        chosen = {
            row
            for row in self.rows[-1]
            if row.loaded_at_us in set(self.random.sample(times, self.random.randint(1, len(times))))
        }
        written = tuple(LoadedRange(self._offset(row), row.loaded_at_us) for row in chosen)
        self._decoded_again(CommitKind.REDECODE, frozenset(chosen), written if self.with_written else ())

    def _convert(self) -> None:
        if self.random.random() < 0.3 and self._newest():
            self._decoded_again(CommitKind.CONVERT, self.rows[-1], ())

    def _rewrite(self) -> None:
        if self.random.random() < 0.3 and self._newest():
            self._decoded_again(CommitKind.REWRITE, self.rows[-1], ())

    def _decoded_again(self, kind: CommitKind, chosen: Rows, written: tuple[LoadedRange, ...]) -> None:
        again = frozenset(replace(row, decoded=self.clock_us) for row in chosen)
        self._append(kind, (self.rows[-1] - chosen) | again, self._covered(), written=written)
