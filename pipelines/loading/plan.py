"""Plan, purely: cursor and bounds in, frozen slices out. What cannot be right stops here, with the exact range."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heapreplace

from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Covered
from resources.errors import CursorAheadOfLog, CursorExpired
from resources.settings import Start


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Slice:
    """A half-open range `[start, stop)` of one broker-partition, frozen before anything is read: one unit of work."""

    id: BrokerPartition
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets; bytes of the log in 0.7."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How slices are cut: the target of one, and the most of a run, in offsets; None is no cap.

    Offsets are bytes of the log in 0.7, and records later.
    """

    slice: int
    run: int | None = None

    def share(self, partitions: int) -> int | None:
        """What each of so many partitions may take."""
        return None if self.run is None else self.run // max(1, partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`slices` to fetch, in order of partition and offset, and ranges that expired and are `skipped` by choice."""

    slices: tuple[Slice, ...]
    skipped: tuple[Slice, ...] = ()


def plan(
    covered: Covered,
    bounds: Mapping[BrokerPartition, Bounds],
    *,
    start: Start,
    sizes: Sizes,
    skip_expired: bool = False,
    where: Where,
) -> Plan:
    """What is new, cut into slices.

    A partition without a cursor starts at its earliest offset. Only in a topic's first load `start = "latest"` makes it
    begin at the end: an empty slice records that, so that the next run goes on from there. A partition that appears
    later is new data as a whole (B10).

    Raises:
        CursorExpired: the log begins after the cursor (B07), and `skip_expired` is not set.
        CursorAheadOfLog: the log ends before the cursor (B05, B14).
    """
    at_end = not covered and start == "latest"
    starts: dict[BrokerPartition, int] = {}
    skipped: list[Slice] = []
    for id_, bound in sorted(bounds.items()):
        fresh = bound.latest if at_end else bound.earliest
        at = covered[id_][1] if id_ in covered else fresh
        if skip_expired and at < bound.earliest:
            skipped.append(Slice(id=id_, start=at, stop=bound.earliest))
            at = bound.earliest
        _check(at, bound, where.within(Where(partition=str(id_))))
        starts[id_] = at
    if at_end:
        return Plan(slices=tuple(Slice(id=id_, start=at, stop=at) for id_, at in starts.items()))
    behind = [id_ for id_, at in starts.items() if at < bounds[id_].latest]
    share = sizes.share(len(behind))
    slices = (
        piece
        for id_ in behind
        for piece in _within(share, sliced(id_, starts[id_], bounds[id_].latest, bounds[id_].cuts, sizes.slice))
    )
    return Plan(slices=tuple(slices), skipped=tuple(skipped))


def plan_backfill(covered: Covered, bounds: Mapping[BrokerPartition, Bounds], *, sizes: Sizes) -> list[Slice]:
    """What the brokers hold from before the table's first offsets, cut into slices.

    A capped run takes the newest of it, so that what is covered stays without a hole and the next run goes on below.
    """
    behind = [id_ for id_ in sorted(bounds) if id_ in covered and bounds[id_].earliest < covered[id_][0]]
    share = sizes.share(len(behind))
    slices: list[Slice] = []
    for id_ in behind:
        pieces = list(sliced(id_, bounds[id_].earliest, covered[id_][0], bounds[id_].cuts, sizes.slice))
        slices += reversed(list(_within(share, reversed(pieces))))
    return slices


def _check(at: int, bound: Bounds, where: Where) -> None:
    if bound.latest < bound.earliest:
        raise CursorAheadOfLog(f"the broker says the log is [{bound.earliest}, {bound.latest})", where)
    if at < bound.earliest:
        raise CursorExpired(
            f"offsets [{at}, {bound.earliest}) expired before they were loaded; the log begins at {bound.earliest}; "
            'on_expired = "skip" counts them as a gap and goes on there',
            where.at(at),
        )
    if at > bound.latest:
        raise CursorAheadOfLog(
            f"the log ends at {bound.latest}, before the committed offset {at}: it was truncated or made anew; "
            'on_truncated = "rewind" takes back what it lost',
            where.at(at),
        )


def sliced(id_: BrokerPartition, start: int, stop: int, cuts: Iterable[int], target: int) -> Iterator[Slice]:
    """`[start, stop)` in slices that end at cuts, each at most `target` where cuts allow it."""
    if id_.broker is None:
        cuts = _even_cuts(start, stop, target)
    ends = [*(cut for cut in cuts if start < cut < stop), stop]
    at = start
    for end, next_end in zip(ends, [*ends[1:], None], strict=True):
        if next_end is None or next_end - at > target:
            yield Slice(id=id_, start=at, stop=end)
            at = end


def _even_cuts(start: int, stop: int, target: int) -> Iterable[int]:
    """From 0.8 on any offset is a cut: as few as `target` allows, evenly spread."""
    count = max(1, -(-(stop - start) // target))
    return (start + (stop - start) * piece // count for piece in range(1, count))


def _within(share: int | None, slices: Iterable[Slice]) -> Iterator[Slice]:
    """Slices until `share` is used up, and one at least, so that every run gets on."""
    taken = 0
    for piece in slices:
        if share is not None and taken >= share:
            return
        yield piece
        taken += piece.size


def into_tasks(slices: list[Slice], *, size: int, at_least: int) -> list[list[Slice]]:
    """Slices grouped into tasks of about equal size: small ones share a task, a large one has its own.

    Args:
        slices: what is to be fetched.
        size: what a task should not pass by sharing, in offsets.
        at_least: how many tasks keep all cores busy.
    """
    total = sum(piece.size for piece in slices)
    count = min(len(slices), max(at_least, -(-total // size)))
    heap: list[tuple[int, int]] = [(0, task) for task in range(count)]
    heapify(heap)
    tasks: list[list[Slice]] = [[] for _ in range(count)]
    for piece in sorted(slices, key=lambda piece: (-piece.size, piece.id, piece.start)):
        load, task = heap[0]
        tasks[task].append(piece)
        heapreplace(heap, (load + piece.size, task))
    return [sorted(task) for task in tasks if task]
