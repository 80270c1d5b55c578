"""The difference of two states of a table, from the entries of its ledger alone.

A state is what each offset of each incarnation has in a version of the table: no row, or rows with a loading time. An
increment is the difference of two states. It is not a difference of cursors, because replays and backfills lie below
cursors, and a rewind or a cut may be loaded beyond again. And it is not a difference of files, because a compaction
changes files and no row.

The entries form a tree: the entry before a rewind's effect is its target, and not the version before it. So the two
versions have a newest common entry, the base, and only the entries after it on both sides can make a difference:

- an offset that is covered in the new version only is new;
- an offset that is covered in the old version only is taken back;
- an offset that both cover is replaced, if an entry of one of the sides loaded it.

Entries are read from the newest down to the base, however many there are below. Only a rewind or a replay needs older
entries: those that say when the replaced rows were loaded.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, tee

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.increments.offset_sets import OffsetSet
from pipelines.ledger.committed_range import CommittedRange, ExactCause, LoadedRange
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.incarnations import effective_entries
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, TopicIdentity

Entries = Iterable[tuple[int, LedgerEntry]]
ReadSets = Callable[[CommittedRange], Mapping[ExactCause, ExactOffsets]]
"""Reads the exact sets of a range: see TableStore."""


@dataclass(frozen=True, slots=True)
class LoadedSpan:
    """Adjoining offsets of a partition in one incarnation, and the loading times of their rows.

    The rows of a span have its partition, one of its offsets and one of its loading times. If a table holds several
    incarnations, the loading time distinguishes rows with the same offset.
    """

    offsets: OffsetRange
    loaded_at_us: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.offsets)


Spans = tuple[LoadedSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDifference:
    """The offsets that differ between two versions of a table, by what happened to them.

    Args:
        new: offsets that were not in the old version: loads, backfills, and rows that a rewind brought back.
        restarted: the same, if their incarnation was not in the old version, and another one was.
        replaced: offsets that have other rows than in the old version, with the loading times of the rows of now.
        withdrawn: the rows of the old version in place of which there are those of `replaced`.
        taken_back: offsets that are only in the old version.
        erased: offsets of which rows were erased since the old version, with all loading times of before: a consumer
            that ignores replaced rows has older rows of the same records. In 0.7, or if they are very many, other rows
            are among them.
        left_of_erased: the same offsets, with the loading times of the rows that the new version still has.
        retired: offsets of ranges that are `new`, `restarted` or `replaced`, and of which rows were retired since:
            nobody can read these rows any more.
    """

    new: Spans = ()
    restarted: Spans = ()
    replaced: Spans = ()
    withdrawn: Spans = ()
    taken_back: Spans = ()
    erased: Spans = ()
    left_of_erased: Spans = ()
    retired: Spans = ()

    @property
    def added(self) -> Spans:
        """The rows of the new version that the old one did not have."""
        return (*self.new, *self.restarted, *self.replaced, *self.left_of_erased)

    @property
    def removed(self) -> Spans:
        """The rows of the old version that the new one does not have."""
        return (*self.withdrawn, *self.taken_back, *self.erased)


def ledger_difference(entries: Entries, since: int, version: int, exact_sets: ReadSets) -> LedgerDifference:
    """The difference between the versions `since` and `version`; -1 is the state before a table exists.

    `entries` are those of the Delta log up to `version`, newest first. They are read only as far as needed.
    `exact_sets` reads the sets of a range.
    """
    read: list[tuple[int, LedgerEntry]] = []
    sides = _Sides.find(_remembered(entries, read), since, version, exact_sets)
    before, now = sides.contents(sides.old), sides.contents(sides.new)
    for topic, offsets in sides.former().items():
        if topic not in before and topic not in now:  # all that both versions have of it was loaded below the base
            before[topic] = now[topic] = offsets
    kinds = {name: _ByTopic() for name in ("new", "restarted", "replaced", "taken_back", "erased", "left")}
    unread: list[OffsetRange] = []
    for topic in dict.fromkeys([*now, *before]):
        old, new = before.get(topic, OffsetSet()), now.get(topic, OffsetSet())
        # For a new consumer all rows are new. Only one that has rows of another incarnation sees a restart (fault N43).
        is_restart = any(before.values()) and topic not in before
        erased = sides.erased(topic)
        kinds["erased"][topic] = erased = erased & (old | sides.seen(topic, read, since)) if erased else erased
        kinds["left"][topic] = erased & new
        kinds["restarted" if is_restart else "new"][topic] = new - old - erased
        kinds["taken_back"][topic] = old - new - erased
        # Both versions have the offset, but one of them loaded it after the base: a replay, or a load after a rewind or
        # a cut.
        loaded = (old & new & sides.loaded(topic)) - erased
        # What was replaced and then retired has no row that could be there in place of the old one.
        kinds["replaced"][topic] = loaded - sides.retired(topic)
        unread += sides.unread(topic, new - old)
    # Three walks continue in the entries at the base and below it, which are read once.
    below_now, below_before, below = tee((entry for _, entry in sides.below), 3)
    needed_now = (kinds[name] for name in ("new", "restarted", "replaced", "left"))
    times_now = _LoadingTimes(chain(sides.new, below_now), sides.retired_in, *needed_now)
    needed_before = (kinds["replaced"], kinds["taken_back"])
    times_before = _LoadingTimes(chain(sides.old, below_before), sides.retired_in, *needed_before)
    decoded = _decoded_in_both(sides, below, before, now)
    return LedgerDifference(
        new=times_now.spans(kinds["new"]),
        restarted=times_now.spans(kinds["restarted"]),
        replaced=(*times_now.spans(kinds["replaced"]), *decoded),
        withdrawn=(*times_before.spans(kinds["replaced"]), *decoded),
        taken_back=times_before.spans(kinds["taken_back"]),
        erased=tuple(_with_all_times(kinds["erased"], [entry for number, entry in read if number <= since])),
        left_of_erased=times_now.spans(kinds["left"]),
        retired=tuple(LoadedSpan(offsets, ()) for offsets in unread),
    )


class _ByTopic(dict[TopicIdentity, OffsetSet]):
    """Sets of offsets by incarnation."""


@dataclass(slots=True, kw_only=True)
class _Sides:
    """The entries that count in only one of two versions, newest first, and those at the base and below.

    If an entry changed all rows, for example by converting a raw table, the sides have all entries, and no base.
    """

    exact_sets: ReadSets
    new: list[LedgerEntry] = field(default_factory=list)
    old: list[LedgerEntry] = field(default_factory=list)
    base: LedgerEntry | None = None
    below: Iterator[tuple[int, LedgerEntry]] = field(default_factory=lambda: iter(()))

    @classmethod
    def find(
        cls, entries: Iterator[tuple[int, LedgerEntry]], since: int, version: int, exact_sets: ReadSets
    ) -> "_Sides":
        """Walk down from both versions until they have an entry in common."""
        sides = cls(exact_sets=exact_sets)
        for number, entry in entries:
            if number <= version and number <= since:
                sides._end_at(effective_entries(chain([(number, entry)], entries)))
                break
            # The state after a rewind is that of its target. The entries in between count in no version after it.
            before = entry.target if entry.kind is CommitKind.REWIND and entry.target is not None else number - 1
            if number <= version:
                sides.new.append(entry)
                version = before
            elif number <= since:
                sides.old.append(entry)
                since = before
        return sides

    def _end_at(self, common: Iterator[tuple[int, LedgerEntry]]) -> None:
        """Take the first of the common entries as the base, or all of them as entries of both sides."""
        # A conversion writes each row again, also those of former incarnations, which its entry does not name. So
        # nothing below it stays the same.
        if any(map(_changes_all_rows, self.both)):
            entries = [entry for _, entry in common]
            self.new += entries
            self.old += entries
            return
        number, self.base = next(common)
        self.below = chain([(number, self.base)], common)

    @property
    def both(self) -> Sequence[LedgerEntry]:
        """The entries that count in one version only."""
        return (*self.new, *self.old)

    def contents(self, side: Sequence[LedgerEntry]) -> dict[TopicIdentity, OffsetSet]:
        """The offsets that a version has of each incarnation that may differ."""
        covered: dict[TopicIdentity, Coverage] = {}
        for entry in (*side, *([self.base] if self.base else ())):
            # Newest first: the first entry of an incarnation says what the version has of it, and older ones are out of
            # date.
            covered.setdefault(entry.topic, entry.covered)
        return {topic: OffsetSet.of_coverage(coverage) for topic, coverage in covered.items()}

    def loaded(self, topic: TopicIdentity) -> OffsetSet:
        """The offsets of the incarnation that entries of one version only have loaded, or that a rewind brought back.

        A consumer that began after a retirement has not seen the rows that come back.
        """
        own = (part.offsets for entry in self.both if entry.topic == topic for part in self.loaded_by(entry))
        _, of_old = self._apart
        back = (offsets for entry in of_old for offsets in self._retired_by(entry, topic))
        return OffsetSet(chain(own, back))

    @property
    def _apart(self) -> tuple[Sequence[LedgerEntry], Sequence[LedgerEntry]]:
        """The entries of the new version that the old one does not have, and those of the old one."""
        common = {entry.commit for entry in self.old} & {entry.commit for entry in self.new}
        new, old = ([entry for entry in side if entry.commit not in common] for side in (self.new, self.old))
        return new, old

    def erased(self, topic: TopicIdentity) -> OffsetSet:
        """The offsets of the incarnation of which entries of the new version only have erased rows."""
        erasures = (own for entry in self.new if entry.kind is CommitKind.ERASE for own in entry.by_incarnation())
        return OffsetSet(part.offsets for own in erasures if own.topic == topic for part in own.written)

    def former(self) -> dict[TopicIdentity, OffsetSet]:
        """The offsets of former incarnations of which entries of the new version have erased rows."""
        former = (own for entry in self.new for own in entry.erasure.former)
        return {own.topic: OffsetSet.of_coverage(own.covered) for own in former}

    def seen(self, topic: TopicIdentity, read: Sequence[tuple[int, LedgerEntry]], since: int) -> OffsetSet:
        """The offsets of the incarnation that a consumer may have seen, also before a rewind: `read` has all entries.

        If the consumer ignored that they were taken back, its output still has them (fault P21).
        """
        self.below = iter(list(self.below))
        earlier = (entry for number, entry in read if number <= since and entry.topic == topic)
        return OffsetSet(part.offsets for entry in earlier for part in self.loaded_by(entry))

    def retired(self, topic: TopicIdentity) -> OffsetSet:
        """The offsets of the incarnation whose rows entries of the new version have retired.

        Left out is what a later entry has loaded again: its rows are there.
        """
        retired, loaded = OffsetSet(), list[LoadedRange | CommittedRange]()
        for entry in (entry for entry in self.new if entry.topic == topic):
            loaded += self.loaded_by(entry)
            if own := self._retired_by(entry, topic):
                retired |= own - OffsetSet(part.offsets for part in loaded)
        return retired

    def unread(self, topic: TopicIdentity, unseen: OffsetSet) -> OffsetSet:
        """The retired offsets of the incarnation whose rows the old version did not have.

        `unseen` are the offsets that only the new version covers.
        """
        new, old = self._apart
        changed, unread = unseen, OffsetSet()
        for entry in (entry for entry in chain(old, reversed(new)) if entry.topic == topic):
            changed |= OffsetSet(part.offsets for part in self._changed_by(entry))
            unread -= OffsetSet(part.offsets for part in self.loaded_by(entry))
            unread |= changed & self._retired_by(entry, topic)
        return unread

    def _retired_by(self, entry: LedgerEntry, topic: TopicIdentity) -> OffsetSet:
        """The offsets that are retired in the ranges of an entry, if it is a retirement of the incarnation."""
        if entry.kind is not CommitKind.RETIRE or entry.topic != topic:
            return OffsetSet()
        return OffsetSet(offsets for part in entry.ranges for offsets in self.retired_in(part))

    def retired_in(self, committed: CommittedRange) -> OffsetSet:
        """The offsets of a range whose rows were retired."""
        stored = committed.exact.get(ExactCause.RETIRED)
        if stored is None:
            return OffsetSet()
        own = self.exact_sets(replace(committed, exact={ExactCause.RETIRED: stored}))[ExactCause.RETIRED]
        bounds = zip(own.firsts.tolist(), own.stops.tolist(), strict=True)
        return OffsetSet(OffsetRange(committed.partition, start, stop) for start, stop in bounds)

    def loaded_by(self, entry: LedgerEntry) -> Iterable[LoadedRange | CommittedRange]:
        """The ranges whose rows an entry loaded. A replay and a cut also copy rows, which stay what they were.

        A replay leaves retired rows out, so what was made of them stays too (fault P22).
        """
        if entry.kind is CommitKind.LOAD:
            return entry.ranges
        if entry.kind is not CommitKind.REPLAY:
            return ()
        # Versions before 0.7.0 do not name them: they come first, and have the loading time of the replay.
        first_us = entry.ranges[0].loaded_at_us if entry.ranges else 0
        loaded = entry.written or [part for part in entry.ranges if part.loaded_at_us == first_us]
        retired = OffsetSet(offsets for part in entry.ranges for offsets in self.retired_in(part))
        if not retired:
            return loaded
        times = _by_loading_time(LoadedRange(part.offsets, part.loaded_at_us) for part in loaded)
        return [LoadedRange(left, loaded_us) for loaded_us, own in times.items() for left in own - retired]

    def _changed_by(self, entry: LedgerEntry) -> Iterable[LoadedRange | CommittedRange | LoadedSpan]:
        """The ranges whose rows an entry loaded or decoded again."""
        if _changes_all_rows(entry):
            return [LoadedSpan(offsets, ()) for offsets in OffsetSet.of_coverage(entry.covered)]
        return entry.written if entry.kind is CommitKind.REDECODE else self.loaded_by(entry)


def _remembered(entries: Entries, read: list[tuple[int, LedgerEntry]]) -> Iterator[tuple[int, LedgerEntry]]:
    """The entries, each of which is put into `read` when it is taken."""
    for numbered in entries:
        read.append(numbered)
        yield numbered


def _changes_all_rows(entry: LedgerEntry) -> bool:
    """Whether the entry may have written all rows of the table, of all incarnations.

    Entries of versions before 0.7.0 do not say which rows were decoded again.
    """
    if entry.kind in {CommitKind.CONVERT, CommitKind.REWRITE}:
        return True
    return entry.kind is CommitKind.REDECODE and not entry.written


class _LoadingTimes:
    """Finds when rows were loaded: the newest entry that names an offset says it. Older entries are not read."""

    def __init__(
        self,
        entries: Iterable[LedgerEntry],
        retired_in: Callable[[CommittedRange], OffsetSet],
        *needed: _ByTopic,
    ) -> None:
        self._retired_in = retired_in
        self._known: dict[TopicIdentity, dict[BrokerPartition, list[LoadedRange]]] = {}
        missing = _ByTopic()
        for by_topic in needed:
            for topic, offsets in by_topic.items():
                missing[topic] = missing.get(topic, OffsetSet()) | offsets
        remaining = iter(entries)
        while any(missing.values()) and (entry := next(remaining, None)):
            if missing.get(entry.topic):
                missing[entry.topic] = self._take(entry, missing[entry.topic])
        for by_partition in self._known.values():
            for pieces in by_partition.values():
                pieces.sort(key=lambda piece: piece.offsets)

    def _take(self, entry: LedgerEntry, missing: OffsetSet) -> OffsetSet:
        """Note the missing offsets that the entry names; returns the others."""
        known = self._known.setdefault(entry.topic, defaultdict(list))
        named = OffsetSet()
        for committed in entry.ranges:
            # If a row is retired, an older entry says when it was loaded.
            own = OffsetSet(missing.within(committed.offsets))
            own -= self._retired_in(committed) if own else own
            for offsets in own:
                known[committed.partition].append(LoadedRange(offsets, committed.loaded_at_us))
            named |= own
        return missing - named

    def pieces(self, wanted: _ByTopic) -> Iterator[tuple[OffsetRange, list[LoadedRange]]]:
        """The wanted ranges of offsets, each with the known pieces that overlap it."""
        for topic, offsets in wanted.items():
            known = self._known.get(topic, {})
            for part in offsets:
                pieces = known.get(part.partition, [])
                first = bisect_right(pieces, part.start, key=lambda piece: piece.offsets.stop)
                yield part, pieces[first : bisect_left(pieces, part.stop, key=lambda piece: piece.offsets.start)]

    def spans(self, wanted: _ByTopic) -> Spans:
        """The wanted offsets with their loading times."""
        return tuple(
            LoadedSpan(part, tuple(sorted({piece.loaded_at_us for piece in pieces})))
            for part, pieces in self.pieces(wanted)
        )


def _with_all_times(wanted: _ByTopic, entries: Sequence[LedgerEntry]) -> Iterator[LoadedSpan]:
    """The wanted offsets with all loading times that some of the entries give them."""
    for topic, offsets in wanted.items():
        times: dict[OffsetRange, set[int]] = {part: set() for part in offsets}
        for committed in (part for entry in entries if entry.topic == topic for part in entry.ranges):
            for part in offsets.touching(committed.offsets):
                times[part].add(committed.loaded_at_us)
        yield from (LoadedSpan(part, tuple(sorted(own))) for part, own in times.items())


def _decoded_in_both(
    sides: _Sides,
    below: Iterable[LedgerEntry],
    before: dict[TopicIdentity, OffsetSet],
    now: dict[TopicIdentity, OffsetSet],
) -> Spans:
    """The rows that were decoded again and are in both versions. They keep their offsets and loading times.

    They may belong to a former incarnation, which their entry does not name. So what is left out is named by its
    loading time: rows that one of the sides loaded, and rows of the base that one of the sides took away.
    """
    decoded = [piece for entry in sides.both if entry.kind is CommitKind.REDECODE for piece in entry.written]
    if not decoded or sides.base is None:
        return ()
    topic, covered = sides.base.topic, OffsetSet.of_coverage(sides.base.covered)
    kept = before.get(topic, OffsetSet()) & now.get(topic, OffsetSet())
    taken = _ByTopic({topic: (covered - kept) | (covered & (sides.loaded(topic) | sides.retired(topic)))})
    of_base = (piece for _, pieces in _LoadingTimes(below, sides.retired_in, taken).pieces(taken) for piece in pieces)
    of_sides = (LoadedRange(part.offsets, part.loaded_at_us) for entry in sides.both for part in sides.loaded_by(entry))
    other = _by_loading_time(chain(of_base, of_sides))
    return tuple(
        LoadedSpan(part, (loaded_us,))
        for loaded_us, offsets in sorted(_by_loading_time(decoded).items())
        for part in offsets - other.get(loaded_us, OffsetSet())
    )


def _by_loading_time(pieces: Iterable[LoadedRange]) -> dict[int, OffsetSet]:
    ranges = defaultdict(list)
    for piece in pieces:
        ranges[piece.loaded_at_us].append(piece.offsets)
    return {loaded_us: OffsetSet(offsets) for loaded_us, offsets in ranges.items()}
