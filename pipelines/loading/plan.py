"""Planning without any I/O: what the table covers and what the brokers hold go in, slices to fetch come out.

If the cursor and the log are inconsistent, planning stops with the exact range.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.loading.ledger import Coverage, RecordedChoice, TableState
from pipelines.loading.slices import SliceSizes, cut_slices
from pipelines.loading.window import AllBounds, OffsetWindow
from resources.errors import CursorAheadOfLog, CursorExpired, LoadError
from resources.spark import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The slices to fetch, in order of partition and offset, and the expired ranges that are skipped by choice.

    A slice in `to_message` ends after the message of 0.7 that contains the last byte of the slice.
    """

    slices: tuple[OffsetRange, ...]
    skipped: tuple[OffsetRange, ...] = ()
    to_message: frozenset[OffsetRange] = frozenset()

    @property
    def size(self) -> int:
        """The number of offsets to fetch."""
        return sum(offsets.size for offsets in self.slices)

    def choices(self, state: TableState) -> Iterator[RecordedChoice]:
        """The user's choices that this plan follows; `state` is the table's before it."""
        partitions = state.covered.keys() if state.adopted else {offsets.partition for offsets in self.slices}
        for setting, value in state.followed.items():
            for partition in sorted(partitions):
                cursor = state.covered[partition][1] if partition in state.covered else 0
                yield RecordedChoice.of(setting, value, OffsetRange(partition, cursor, cursor))
        for offsets in self.skipped:
            yield RecordedChoice.of("on_expired", "skip", offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """The offsets that a run loads in all its steps: `total` offsets of a window, of which `taken` are done.

    The window is fixed when the run begins, so that the run ends: the next run loads the records and partitions that
    appear later.
    """

    window: OffsetWindow
    total: int
    taken: int = 0

    @property
    def left(self) -> int:
        """The number of offsets that the run still has to load; at least 1, because a cap of 0 would be no cap."""
        return max(1, self.total - self.taken)

    @property
    def reached(self) -> bool:
        """Whether the run is done."""
        return self.taken >= self.total

    def after(self, step: Plan) -> Self:
        """The target after a step. A step without offsets ends the run: other runs have loaded the rest."""
        size = step.size
        return replace(self, taken=self.taken + size if size else self.total)

    def progress(self, step: Plan, on_progress: Progress) -> Progress:
        """The callback for the progress of a step, which reports the progress of the whole run to `on_progress`."""
        size = step.size  # summed once: the callback is called for every slice
        return lambda done, total: on_progress(self.taken + size * done // max(1, total), self.total)


def plan(
    state: TableState, bounds: AllBounds, window: OffsetWindow, sizes: SliceSizes, *, skip_expired: bool = False
) -> Plan:
    """Cut what is new below the window's end into slices; a partition without an end gets none.

    A partition without a cursor starts at its earliest offset. Only a new table may begin later, at the window's start.
    If nothing is there to load yet, an empty slice records the start, so that the next run continues from there. A
    partition that appears later is loaded from its beginning, because all of it is new (fault B10).

    Raises:
        CursorExpired: the log begins after the cursor (fault B07), and `skip_expired` is not set.
        CursorAheadOfLog: the log ends before the cursor (faults B05, B14).
    """
    covered = state.covered
    begins: dict[BrokerPartition, int] = {}
    skipped: list[OffsetRange] = []
    for id_, bound in bounds.items():
        first = bound.earliest if covered else max(bound.earliest, window.starts.get(id_, bound.earliest))
        begin = covered[id_][1] if id_ in covered else first
        if skip_expired and begin < bound.earliest:
            skipped.append(OffsetRange(id_, begin, bound.earliest))
            begin = bound.earliest
        if not bound.earliest <= begin <= bound.latest:
            raise _outside_log(begin, bound, state.topic.where.within(Where(partition=str(id_))))
        begins[id_] = begin
    ends = {id_: min(window.ends[id_], bound.latest) for id_, bound in bounds.items() if id_ in window.ends}
    new = [OffsetRange(id_, begins[id_], end) for id_, end in ends.items()]
    slices = list(cut_slices(new, bounds, sizes))
    if not covered and window.starts:
        slices += _empty_starts(new, bounds)
    to_message = frozenset(
        offsets
        for offsets in slices
        if offsets.partition.broker is not None
        and offsets.stop not in {ends[offsets.partition], *bounds[offsets.partition].segment_starts}
    )
    return Plan(slices=tuple(sorted(slices)), skipped=tuple(sorted(skipped)), to_message=to_message)


def plan_backfill(covered: Coverage, bounds: AllBounds, window: OffsetWindow, sizes: SliceSizes) -> list[OffsetRange]:
    """Cut what the brokers hold between the window's start and the table's first offsets into slices.

    A run with a cap takes the newest of these slices: so the table covers no hole, and the next run continues below.
    """
    older = [
        OffsetRange(id_, max(start, bounds[id_].earliest), covered[id_][0])
        for id_, start in window.starts.items()
        if id_ in bounds and id_ in covered
    ]
    return sorted(cut_slices(older, bounds, sizes, order=reversed))


def _empty_starts(new: Sequence[OffsetRange], bounds: AllBounds) -> Iterator[OffsetRange]:
    """Empty slices that record where a new table begins, for partitions of which it leaves out older offsets.

    Partitions that hold nothing need no slice. But if all of them are like that, one slice records that the table has
    begun.
    """
    idle = [offsets for offsets in new if offsets.size <= 0]
    late = [offsets for offsets in idle if bounds[offsets.partition].earliest < offsets.start]
    if not late and len(idle) == len(new):
        late = sorted(idle)[:1]
    for offsets in late:
        yield replace(offsets, stop=offsets.start)


def _outside_log(offset: int, bound: Bounds, where: Where) -> LoadError:
    """The error for a cursor that is outside of the log."""
    if bound.latest < bound.earliest:
        return CursorAheadOfLog(
            f"the broker reports a log that ends before it begins: [{bound.earliest}, {bound.latest})", where
        )
    if offset < bound.earliest:
        return CursorExpired(
            f"offsets [{offset}, {bound.earliest}) expired before they were loaded; the log begins at "
            f'{bound.earliest}; on_expired = "skip" counts them as a gap and continues there',
            where.at_offset(offset),
        )
    return CursorAheadOfLog(
        f"the log ends at {bound.latest}, before the committed offset {offset}: it was truncated or recreated; "
        'on_truncated = "rewind" takes back what the log has lost',
        where.at_offset(offset),
    )
