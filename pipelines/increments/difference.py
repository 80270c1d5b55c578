"""The difference of two states of a table, from the entries of its ledger alone.

A state is what each offset of each incarnation has in a version of the table: no row, or rows with a loading time. An
increment is the difference of two states. It is not a difference of cursors, because replays and backfills lie below
cursors, and a rewind or a cut may be loaded beyond again. And it is not a difference of files, because a compaction
changes files and no row.

The entries form a tree: the entry before a rewind's effect is its target, and not the version before it. So the two
versions have a newest common entry, the base, and only the entries after it on both sides can make a difference:

- an offset that is covered in the new version only is new;
- an offset that is covered in the old version only is gone;
- an offset that both cover is replaced, if an entry of one of the sides loaded it.

Entries are read from the newest down to the base, however many there are below. Only a rewind or a replay needs older
entries: those that say when the replaced rows were loaded.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from kafka_io.model import OffsetRange
from pipelines.increments.offset_sets import OffsetSet
from pipelines.loading.incarnations import effective_entries
from pipelines.loading.ledger import CommitKind, Coverage, LedgerEntry, TopicIdentity
from pipelines.loading.work import CommittedRange, LoadedRange

Pieces = tuple[LoadedRange, ...]
Entries = Iterable[tuple[int, LedgerEntry]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDifference:
    """What is different between two versions of a table, as pieces of offset ranges with the loading time of their rows.

    Args:
        new: offsets that were not in the old version: loads, backfills, and rows that a rewind brought back.
        restarted: the same, if their incarnation was not in the old version, and another one was.
        replaced: offsets that have other rows than in the old version, with the loading time of the rows of now.
        withdrawn: the rows of the old version in place of which there are those of `replaced`.
        gone: offsets that are only in the old version.
        converted: whether a raw table became a typed one, or a rewind undid that: all rows have other columns.
    """

    new: Pieces = ()
    restarted: Pieces = ()
    replaced: Pieces = ()
    withdrawn: Pieces = ()
    gone: Pieces = ()
    converted: bool = False

    @property
    def added(self) -> Pieces:
        """The rows of the new version that the old one did not have."""
        return (*self.new, *self.restarted, *self.replaced)

    @property
    def removed(self) -> Pieces:
        """The rows of the old version that the new one does not have."""
        return (*self.withdrawn, *self.gone)


def ledger_difference(entries: Entries, since: int, version: int) -> LedgerDifference:
    """The difference between the versions `since` and `version`; -1 is the state before a table exists.

    `entries` are those of the table's log up to `version`, newest first. They are read only as far as needed.
    """
    sides = _Sides.find(iter(entries), since, version)
    old, new = sides.coverages(sides.old), sides.coverages(sides.new)
    had_rows = any(map(OffsetSet.of_coverage, old.values()))
    added, restarted, replaced, gone = _ByTopic(), _ByTopic(), _ByTopic(), _ByTopic()
    for topic in dict.fromkeys([*new, *old]):
        before, now = OffsetSet.of_coverage(old.get(topic, {})), OffsetSet.of_coverage(new.get(topic, {}))
        kind = restarted if had_rows and topic not in old else added
        kind[topic] = now - before
        gone[topic] = before - now
        replaced[topic] = before & now & sides.loaded(topic)
    # Both walks continue in the entries below the base, which are read once.
    below = _Below(sides.below)
    of_now = _Loaded(chain(sides.new, below), added, restarted, replaced)
    of_before = _Loaded(chain(sides.old, below), replaced, gone)
    pieces = {"new": of_now.of(added), "restarted": of_now.of(restarted), "replaced": of_now.of(replaced)}
    difference = LedgerDifference(
        **pieces,
        withdrawn=of_before.of(replaced),
        gone=of_before.of(gone),
        converted=since >= 0 and any(entry.kind is CommitKind.CONVERT for entry in sides.both),
    )
    return _with_decoded(difference, [piece for entry in sides.both for piece in _decoded(entry)])


class _ByTopic(dict[TopicIdentity, OffsetSet]):
    """Sets of offsets by incarnation."""


@dataclass(slots=True, kw_only=True)
class _Sides:
    """The entries that count in only one of two versions, newest first, and those at the base and below."""

    new: list[LedgerEntry] = field(default_factory=list)
    old: list[LedgerEntry] = field(default_factory=list)
    base: LedgerEntry | None = None
    below: Iterator[tuple[int, LedgerEntry]] = iter(())

    @classmethod
    def find(cls, entries: Iterator[tuple[int, LedgerEntry]], since: int, version: int) -> "_Sides":
        """Walk down from both versions until they have an entry in common."""
        sides = cls()
        for number, entry in entries:
            if number <= version and number <= since:
                sides.base, sides.below = entry, effective_entries(chain([(number, entry)], entries))
                break
            before = entry.target if entry.kind is CommitKind.REWIND and entry.target is not None else number - 1
            if number <= version:
                sides.new.append(entry)
                version = before
            elif number <= since:
                sides.old.append(entry)
                since = before
        return sides

    @property
    def both(self) -> Sequence[LedgerEntry]:
        """The entries that count in one version only."""
        return (*self.new, *self.old)

    def coverages(self, side: Sequence[LedgerEntry]) -> dict[TopicIdentity, Coverage]:
        """What a version covers of each incarnation that may differ."""
        covered: dict[TopicIdentity, Coverage] = {}
        for entry in (*side, *([self.base] if self.base else ())):
            covered.setdefault(entry.topic, entry.covered)
        return covered

    def loaded(self, topic: TopicIdentity) -> OffsetSet:
        """The offsets of the incarnation that entries of one version only have loaded."""
        return OffsetSet(
            offsets for entry in self.both if entry.topic == topic for offsets in map(_offsets, _loaded(entry))
        )


def _offsets(piece: LoadedRange | CommittedRange) -> OffsetRange:
    return piece.offsets


def _loaded(entry: LedgerEntry) -> Iterable[LoadedRange | CommittedRange]:
    """The ranges whose rows an entry wrote. A replay and a cut also copy rows, which stay what they were."""
    match entry.kind:
        case CommitKind.LOAD:
            return entry.ranges
        case CommitKind.REPLAY:
            # Versions before 0.7.0 do not name them: they come first, and have the loading time of the replay.
            first_us = entry.ranges[0].loaded_at_us if entry.ranges else 0
            return entry.written or [part for part in entry.ranges if part.loaded_at_us == first_us]
        case CommitKind.REDECODE if not entry.written:
            # Versions before 0.7.0 do not say which rows they decoded again.
            everything = OffsetSet.of_coverage(entry.covered)
            return [LoadedRange(offsets, 0) for offsets in everything]
    return ()


def _decoded(entry: LedgerEntry) -> Pieces:
    """The rows that were decoded again. They keep their loading time, and may belong to a former incarnation."""
    return entry.written if entry.kind is CommitKind.REDECODE else ()


class _Below:
    """The entries at the base and below, newest first. Several walks read them, and each is read once."""

    def __init__(self, entries: Iterator[tuple[int, LedgerEntry]]) -> None:
        self._entries = entries
        self._read: list[LedgerEntry] = []

    def __iter__(self) -> Iterator[LedgerEntry]:
        at = 0
        while True:
            while at < len(self._read):
                yield self._read[at]
                at += 1
            following = next(self._entries, None)
            if following is None:
                return
            self._read.append(following[1])


class _Loaded:
    """Finds when rows were loaded: the newest entry that names an offset says it. Older entries are not read."""

    def __init__(self, entries: Iterable[LedgerEntry], *needed: _ByTopic) -> None:
        self._found: dict[TopicIdentity, list[LoadedRange]] = defaultdict(list)
        missing = _ByTopic()
        for by_topic in needed:
            for topic, offsets in by_topic.items():
                missing[topic] = missing.get(topic, OffsetSet()) | offsets
        remaining = iter(entries)
        while any(missing.values()):
            entry = next(remaining, None)
            if entry is None:
                break
            if missing.get(entry.topic):
                missing[entry.topic] = self._take(entry, missing[entry.topic])

    def _take(self, entry: LedgerEntry, missing: OffsetSet) -> OffsetSet:
        """Note the missing offsets that the entry names; returns the others."""
        for committed in entry.ranges:
            named = missing & OffsetSet([committed.offsets])
            self._found[entry.topic] += (LoadedRange(offsets, committed.loaded_at_us) for offsets in named)
        return missing - OffsetSet(map(_offsets, entry.ranges))

    def of(self, wanted: _ByTopic) -> Pieces:
        """The wanted offsets with their loading times, in order."""
        return tuple(
            LoadedRange(part, piece.loaded_at_us)
            for topic, offsets in wanted.items()
            for piece in sorted(self._found[topic], key=_offsets)
            for part in offsets & OffsetSet([piece.offsets])
        )


def _with_decoded(difference: LedgerDifference, decoded: Sequence[LoadedRange]) -> LedgerDifference:
    """The difference with the rows that were decoded again, as far as they are in both versions."""
    other = _by_loading_time((*difference.added, *difference.removed))
    pieces = tuple(
        LoadedRange(part, loaded_us)
        for loaded_us, offsets in sorted(_by_loading_time(decoded).items())
        for part in offsets - other.get(loaded_us, OffsetSet())
    )
    if not pieces:
        return difference
    return LedgerDifference(
        new=difference.new,
        restarted=difference.restarted,
        replaced=(*difference.replaced, *pieces),
        withdrawn=(*difference.withdrawn, *pieces),
        gone=difference.gone,
        converted=difference.converted,
    )


def _by_loading_time(pieces: Iterable[LoadedRange]) -> dict[int, OffsetSet]:
    ranges = defaultdict(list)
    for piece in pieces:
        ranges[piece.loaded_at_us].append(piece.offsets)
    return {loaded_us: OffsetSet(offsets) for loaded_us, offsets in ranges.items()}
