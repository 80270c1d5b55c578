"""Slices: the offset ranges that workers fetch. How large they are, where they are cut, which share a Spark task."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapreplace
from itertools import pairwise
from typing import Protocol, TypeVar

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.plan.day_cuts import DayCuts

FULL = 1_000_000_000
"""The load of a full slice. Loads are integers, rounded down: the pieces of a full slice never add up to more."""
_ItemT = TypeVar("_ItemT")
_MIN_TASKS = 4  # a task costs about 50 ms, so even a small load may use several cores
_OPENED = 300
"""To open and close this many slices takes as long as to fetch a full one (decision D07)."""


class Order(Protocol):
    """The order in which the slices of a range are taken: `iter` from the start, `reversed` from the end."""

    def __call__(self, items: Sequence[_ItemT], /) -> Iterable[_ItemT]:
        """The items in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSizes:
    """The sizes of slices. An offset is a byte of the log in 0.7, and a record later.

    Args:
        slice: the number of offsets in a full slice.
        slices: the same for partitions that differ, because the size of their records is known.
        run: the maximum number of offsets in the rest of a run; None for no cap.
        step: the maximum number of full slices in a step of the run; None for no cap.
        cuts: offsets at which slices of partitions end, from 0.8 on.
        driver: the number of full slices that are fetched without Spark.
    """

    slice: int
    slices: Mapping[BrokerPartition, int] = field(default_factory=dict)
    run: int | None = None
    step: int | None = None
    cuts: DayCuts = field(default_factory=dict)
    driver: int = 1

    def target(self, partition: BrokerPartition) -> int:
        """The number of offsets in a full slice of the partition."""
        return self.slices.get(partition, self.slice)

    def cut_points(self, partition: BrokerPartition, bounds: Mapping[BrokerPartition, Bounds]) -> Sequence[int]:
        """The offsets where slices of the partition may end (the starts of segments in 0.7), or must end (later)."""
        return self.cuts.get(partition, ()) if partition.broker is None else bounds[partition].segment_starts

    def load(self, offsets: OffsetRange) -> int:
        """The part of a full slice that the offsets are; a full slice has the load FULL."""
        return FULL * offsets.size // self.target(offsets.partition)

    def run_shares(self, wanted: Mapping[BrokerPartition, int]) -> Mapping[BrokerPartition, int]:
        """The number of offsets of each partition that the run may load, given how many it has.

        The cap is shared equally and used exactly. What a small partition leaves of its share is divided among the
        others; what cannot be divided goes to the partitions with the most offsets.
        """
        if self.run is None:
            return wanted
        max_offsets = _equal_share(wanted.values(), self.run)
        shares = {partition: min(size, max_offsets) for partition, size in wanted.items()}
        undivided = min(self.run, sum(wanted.values())) - sum(shares.values())
        largest = sorted(wanted, key=lambda partition: (-wanted[partition], partition))
        return shares | {partition: shares[partition] + 1 for partition in largest[:undivided]}

    def step_shares(self, wanted: Mapping[BrokerPartition, int]) -> Mapping[BrokerPartition, int]:
        """The number of offsets of each partition after which a step takes no further slice; shared as in a run.

        It is at least 1, so that each step makes progress.
        """
        if self.step is None:
            return wanted
        loads = [FULL * size // self.target(partition) for partition, size in wanted.items()]
        max_load = _equal_share(loads, self.step * FULL)
        return {
            partition: min(size, max(1, max_load * self.target(partition) // FULL))
            for partition, size in wanted.items()
        }


def _equal_share(sizes: Iterable[int], total: int) -> int:
    """The maximum that each of `sizes` may take, so that all together take no more than `total`."""
    remaining, sorted_sizes = total, sorted(sizes)
    for count, size in zip(range(len(sorted_sizes), 0, -1), sorted_sizes, strict=True):
        if size * count > remaining:
            return remaining // count
        remaining -= size
    return total


def cut_slices(
    ranges: Iterable[OffsetRange],
    bounds: Mapping[BrokerPartition, Bounds],
    sizes: SliceSizes,
    *,
    order: Order = iter,
) -> Iterator[OffsetRange]:
    """Cut each partition's share of its range into slices; `order` says which slices of a range are taken first.

    The last slice of a run ends exactly where the partition's share of the run's cap ends. In 0.7 that can be inside of
    a message. A slice that is taken from the end cannot begin there, so it keeps its size. Slices after the share are
    never computed: the range of a log whose broker claims 2^59 records would have millions of them (fault H01).
    """
    wanted = {offsets.partition: offsets for offsets in ranges if offsets.size > 0}
    of_run = sizes.run_shares({partition: offsets.size for partition, offsets in wanted.items()})
    for partition, share in sizes.step_shares(of_run).items():
        taken = 0
        cuts = sizes.cut_points(partition, bounds)
        for piece in sliced(wanted[partition], cuts, sizes.target(partition), order=order):
            if taken >= share:
                break
            yield _limited(piece, of_run[partition] - taken, order)
            taken += piece.size


def _limited(piece: OffsetRange, limit: int, order: Order) -> OffsetRange:
    """At most `limit` offsets of the piece, from the end at which the range is begun."""
    if piece.size <= limit:
        return piece
    if order is not reversed:
        return replace(piece, stop=piece.start + limit)
    return piece if piece.partition.broker is not None else replace(piece, start=piece.stop - limit)


def sliced(offsets: OffsetRange, starts: Iterable[int], target: int, *, order: Order = iter) -> Iterator[OffsetRange]:
    """Slices of at most `target` offsets that cover the range, each computed when it is taken.

    From 0.8 on they have about the same size between the cuts `starts`, as a slice may end at any offset. In 0.7 they
    end only where segments start, at `starts`, so a slice may be larger.
    """
    if offsets.partition.broker is not None:
        yield from order(list(_between_segments(offsets, starts, target)))
        return
    edges = [offsets.start, *(cut for cut in starts if offsets.start < cut < offsets.stop), offsets.stop]
    for start, stop in order(list(pairwise(edges))):
        size = stop - start
        count = max(1, -(-size // target))
        for piece in order(range(count)):
            # Integers are exact at any offset: each piece begins where the one before it ends, also close to 2^60
            # (fault H01).
            yield replace(offsets, start=start + size * piece // count, stop=start + size * (piece + 1) // count)


def _between_segments(offsets: OffsetRange, segment_starts: Iterable[int], target: int) -> Iterator[OffsetRange]:
    start, stop = offsets.start, offsets.stop
    ends = [*(end for end in segment_starts if start < end < stop), stop]
    # A slice is cut at a start of a segment if the next start would make it larger than the target.
    for end, next_end in zip(ends, [*ends[1:], None], strict=True):
        if next_end is None or next_end - start > target:
            yield replace(offsets, start=start, stop=end)
            start = end


def group_slices(slices: Sequence[OffsetRange], sizes: SliceSizes) -> list[list[OffsetRange]]:
    """Group slices into Spark tasks of about equal work: small slices share a task, a large one has its own.

    If they are so little work that starting Spark takes longer, all of them are one task, which needs no Spark. A full
    slice is the work of one task. Work is measured in parts of a full slice: in bytes where bytes limit the
    slices, else in records, because each short record costs time whatever its size.
    """
    loads = sorted(((sizes.load(offsets), offsets) for offsets in slices), key=lambda pair: (-pair[0], pair[1]))
    total = sum(load for load, _ in loads)
    full = max(-(-total // FULL), -(-len(slices) // _OPENED))
    # Below this size one process is done before Spark has started (decision D07).
    count = 1 if full <= sizes.driver else min(len(slices), max(_MIN_TASKS, full))
    heap: list[tuple[int, int]] = [(0, task) for task in range(count)]  # in order, as a heap must be
    tasks: list[list[OffsetRange]] = [[] for _ in range(count)]
    for load, offsets in loads:  # the largest comes first; each goes into the task with the least work so far
        work, task = heap[0]
        tasks[task].append(offsets)
        heapreplace(heap, (work + load, task))
    return [sorted(task) for task in tasks if task]
