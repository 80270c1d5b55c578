"""Slices of broker-partitions, and how large they are to be."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kafka_io.model import Bounds, BrokerPartition

FULL = 1_000_000_000
"""The load of a full slice. An integer, rounded down: what is cut of one full slice never comes to more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A half-open range `[start, stop)` of one broker-partition, frozen before anything is read: one unit of work."""

    id: BrokerPartition
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets; bytes of the log in 0.7."""
        return self.stop - self.start

    @property
    def place(self) -> tuple[BrokerPartition, int, int]:
        """What slices are in order of."""
        return self.id, self.start, self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How slices are cut. Offsets are bytes of the log in 0.7, and records later.

    Args:
        slice: how many offsets are a full slice.
        slices: the same, of partitions of which more is known.
        run: the most offsets of a run; None is no cap.
        step: the most full slices of a step of it; None is no cap.
    """

    slice: int
    slices: Mapping[BrokerPartition, int] = field(default_factory=dict)
    run: int | None = None
    step: int | None = None

    def target(self, id_: BrokerPartition) -> int:
        """How many offsets of the partition are a full slice."""
        return self.slices.get(id_, self.slice)

    def load(self, one: Slice) -> int:
        """What part of a full slice it is, of FULL."""
        return FULL * one.size // self.target(one.id)

    def shares(self, wanted: Mapping[BrokerPartition, int]) -> Mapping[BrokerPartition, int]:
        """The most offsets of each partition, of which so many are wanted: what some leave is for the others."""
        shares = dict(wanted)
        if self.run is not None:
            most = _level(wanted.values(), self.run)
            shares = {id_: min(share, most) for id_, share in shares.items()}
        if self.step is not None:
            loads = [FULL * share // self.target(id_) for id_, share in shares.items()]
            most = _level(loads, self.step * FULL)
            shares = {id_: min(share, most * self.target(id_) // FULL) for id_, share in shares.items()}
        return shares


def _level(sizes: Iterable[int], most: int) -> int:
    """What each may take at most, that all together take no more than `most`."""
    left, waiting = most, sorted(sizes)
    for count, size in zip(range(len(waiting), 0, -1), waiting, strict=True):
        if size * count > left:
            return left // count
        left -= size
    return most


def cut(
    ranges: Mapping[BrokerPartition, tuple[int, int]],
    bounds: Mapping[BrokerPartition, Bounds],
    sizes: Sizes,
    *,
    order: Callable[[list[Slice]], Iterable[Slice]] = iter,
) -> Iterator[Slice]:
    """Of each partition's `[start, stop)` its share in slices, the first in that order; one at least, to get on."""
    shares = sizes.shares({id_: stop - start for id_, (start, stop) in ranges.items() if start < stop})
    for id_, share in shares.items():
        taken = 0
        for piece in order(list(sliced(id_, *ranges[id_], bounds[id_].cuts, sizes.target(id_)))):
            if taken and taken >= share:
                break
            yield piece
            taken += piece.size


def sliced(id_: BrokerPartition, start: int, stop: int, cuts: Iterable[int], target: int) -> Iterator[Slice]:
    """`[start, stop)` in slices that end at cuts, each at most `target` where cuts allow it."""
    if id_.broker is None:
        cuts = _even_cuts(start, stop, target)
    ends = [*(at for at in cuts if start < at < stop), stop]
    at = start
    for end, next_end in zip(ends, [*ends[1:], None], strict=True):
        if next_end is None or next_end - at > target:
            yield Slice(id=id_, start=at, stop=end)
            at = end


def _even_cuts(start: int, stop: int, target: int) -> Iterable[int]:
    """From 0.8 on any offset is a cut: as few as `target` allows, evenly spread."""
    count = max(1, -(-(stop - start) // target))
    return (start + (stop - start) * piece // count for piece in range(1, count))
