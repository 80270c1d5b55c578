"""The log of one partition of a simulated topic: it grows, expires, loses records, is compacted, cut and damaged.

The payload of each record is a number that no other record has, so it shows from which record a row comes.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from kafka_io.model import Bounds

_SEGMENT_BYTES = 120


@dataclass(frozen=True, slots=True)
class Era:
    """A generation of brokers.

    Args:
        name: the first version of Kafka with these properties.
        in_bytes: whether offsets count bytes.
        has_epochs: whether brokers report leader epochs.
        has_ids: whether brokers report topic ids.
        knows_ids: whether a fetch fails if the topic was created again (topic ids, KIP-516).
    """

    name: str
    in_bytes: bool = False
    has_epochs: bool = False
    has_ids: bool = False
    knows_ids: bool = False


ERAS = (
    Era("0.7", in_bytes=True),
    Era("0.10"),
    Era("2.8", has_epochs=True, has_ids=True),
    Era("3.9", has_epochs=True, has_ids=True, knows_ids=True),
)


class Cut(NamedTuple):
    """A truncation of a log at `offset` and `tick`. Records that were read there earlier may differ from the log."""

    tick: int
    offset: int


class Damage(NamedTuple):
    """A batch at the offsets `[start, stop)` that cannot be read; `setting` is the choice that skips it."""

    start: int
    stop: int
    setting: str


@dataclass(slots=True, kw_only=True)
class SimLog:
    """The log of one partition, in one incarnation of the topic.

    Args:
        records: payloads by offset.
        markers: the offsets of transaction markers.
        written_ms: when each record was written, by offset, in milliseconds since 1970. Expired records are included.
        starts: leader epochs with their start offsets, oldest first.
        segments: the start offsets of segments, if offsets count bytes: a slice may end only at one of them.
        cuts: all truncations so far.
        restored: when older copies of the disk were put back, with their ends.
        lies: the ticks at which a broker reported wrong bounds.
        damages: the batches that cannot be read.
        gone: the offsets of records that were compacted or lost, and not only expired.
        open_from: the first offset of an open transaction; None if there is none.
    """

    era: Era
    earliest: int = 0
    latest: int = 0
    records: dict[int, int] = field(default_factory=dict)
    markers: set[int] = field(default_factory=set)
    written_ms: dict[int, int] = field(default_factory=dict)
    starts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    segments: list[int] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    restored: list[Cut] = field(default_factory=list)
    lies: list[int] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    open_from: int | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the current leader."""
        return self.starts[-1][0]

    @property
    def losses(self) -> int:
        """How often the log was cut or put back."""
        return len(self.cuts) + len(self.restored)

    def grow(self, payloads: Iterable[int], size: Callable[[], int], time_ms: int = 0) -> None:
        """Append records, written at `time_ms`. `size` gives the number of offsets from one record to the next.

        From 0.8 on, a size of two means that a transaction marker follows the record.
        """
        for payload in payloads:
            if self.era.in_bytes and self.latest - (self.segments[-1] if self.segments else 0) >= _SEGMENT_BYTES:
                self.segments.append(self.latest)
            self.records[self.latest] = payload
            self.written_ms[self.latest] = time_ms
            end = self.latest + size()
            if not self.era.in_bytes:
                self.markers |= set(range(self.latest + 1, end))
            self.latest = end

    def expire(self, to: int) -> None:
        """Retention: the log now begins at `to`; in 0.7 it begins at the start of the segment that contains `to`."""
        if self.era.in_bytes:
            to = max((cut_offset for cut_offset in self.segments if cut_offset <= to), default=self.earliest)
            self.segments = [cut_offset for cut_offset in self.segments if cut_offset > to]
        self.earliest = max(self.earliest, to)
        self.records = {offset: payload for offset, payload in self.records.items() if offset >= self.earliest}
        known = [epoch for epoch, start in self.starts if start <= self.earliest]
        self.starts = [(known[-1], self.earliest), *(begin for begin in self.starts if begin[1] > self.earliest)]

    def compact(self, offsets: Iterable[int]) -> None:
        """Log compaction removes these records, because newer records have the same keys."""
        for offset in offsets:
            self.records.pop(offset, None)
            self.gone.add(offset)

    def lose(self, start: int, stop: int) -> None:
        """The broker loses what it has of the offsets `[start, stop)`, for example a segment on a damaged disk."""
        self.gone |= {offset for offset in self.records if start <= offset < stop}
        self.records = {offset: payload for offset, payload in self.records.items() if offset not in self.gone}
        self.markers -= set(range(start, stop))

    def damage(self, offset: int, batch: int, setting: str) -> Damage | None:
        """Make the batch of up to `batch` records that begins at `offset` unreadable; None if a part of it is already.

        In 0.7 a message is unreadable by itself.
        """
        ends = sorted(other for other in {*self.records, self.latest} if other > offset)
        damage = Damage(offset, ends[: 1 if self.era.in_bytes else batch][-1], setting)
        if any(self.damages_in(damage.start, damage.stop)):
            return None
        self.damages.append(damage)
        return damage

    def damages_in(self, start: int, stop: int) -> list[Damage]:
        """The unreadable batches that have offsets in `[start, stop)`, in order of offset."""
        return sorted(damage for damage in self.damages if damage.start < stop and start < damage.stop)

    def elect(self) -> None:
        """Elect another leader, which has the complete log. Brokers forget an epoch in which nothing was written."""
        self.starts = [*(begin for begin in self.starts if begin[1] < self.latest), (self.epoch + 1, self.latest)]

    def cut(self, offset: int, tick: int) -> None:
        """An unclean election: the log of the new leader ends at `offset`."""
        epoch = self.epoch + 1
        self.latest = offset
        self.records = {kept: payload for kept, payload in self.records.items() if kept < offset}
        self.markers = {kept for kept in self.markers if kept < offset}
        self.written_ms = {kept: time_ms for kept, time_ms in self.written_ms.items() if kept < offset}
        self.starts = [*((older, start) for older, start in self.starts if start < offset), (epoch, offset)]
        self.gone = {kept for kept in self.gone if kept < offset}
        self.damages = [damage._replace(stop=min(damage.stop, offset)) for damage in self.damages_in(0, offset)]
        self.cuts.append(Cut(tick, offset))

    def end_of(self, epoch: int) -> int:
        """The end offset of a leader epoch, or of the largest one below it that the leader knows (KIP-320)."""
        return next((start for number, start in self.starts if number > epoch), self.latest)

    def epoch_before(self, stop: int) -> int:
        """The largest epoch that began before an offset: records before it may have this epoch."""
        return max((number for number, start in self.starts if start < stop), default=-1)

    def knows(self, epoch: int) -> bool:
        """Whether the leader has led or followed in this epoch; it forgets epochs whose records expired."""
        return epoch < self.starts[0][0] or any(number == epoch for number, _ in self.starts)

    def copy(self) -> Self:
        """A copy of the broker's disk, which `put_back` restores."""
        return copy.deepcopy(self)

    def put_back(self, older: Self, tick: int, *, restarts: int = 1) -> None:
        """Put back an older copy of the disk. After that the broker starts so often, each time with another epoch.

        Records after the end of the copy are lost, and nothing but the records shows it.
        """
        for name in ("records", "markers", "written_ms", "starts", "gone", "damages"):
            setattr(self, name, copy.deepcopy(getattr(older, name)))
        self.earliest, self.latest, self.open_from = older.earliest, older.latest, None
        self.restored.append(Cut(tick, self.latest))
        for _ in range(restarts):
            self.elect()

    def first_written(self, time_ms: int) -> int:
        """The offset of the first record that was written at a time or later, even if it expired; or the log's end."""
        return min((offset for offset, written in self.written_ms.items() if written >= time_ms), default=self.latest)

    def first_kept(self, time_ms: int, earliest: int = 0) -> int:
        """The same among the records from `earliest` on that were not compacted or lost."""
        kept = (offset for offset in self.written_ms if offset >= earliest and offset not in self.gone)
        return min((offset for offset in kept if self.written_ms[offset] >= time_ms), default=self.latest)

    def at_time(self, time_ms: int) -> int:
        """The offset of the first record that is not older than a time, or the end of the log.

        In 0.7 it is the start of the segment that contains this record.
        """
        first = min((offset for offset in self.records if self.written_ms[offset] >= time_ms), default=self.latest)
        return first if first == self.latest else self.sliceable(first)

    def sliceable(self, offset: int) -> int:
        """The last offset up to this one at which a slice can start: in 0.7 the start of a segment."""
        if not self.era.in_bytes:
            return offset
        return max((start for start in self.segments if self.earliest < start <= offset), default=self.earliest)

    def bounds(self) -> Bounds:
        """The real bounds of the log."""
        inside = tuple(cut_offset for cut_offset in self.segments if self.earliest < cut_offset < self.latest)
        stable = self.latest if self.open_from is None else max(self.earliest, min(self.open_from, self.latest))
        return Bounds(
            earliest=self.earliest,
            latest=stable,
            held_back=self.latest - stable,
            segment_starts=inside if self.era.in_bytes else (),
            epoch=self.epoch if self.era.has_epochs else -1,
        )
