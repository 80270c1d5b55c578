"""Compares two ways to do the same work. Both run in turn in one process, so that the machine is equally fast for both.

The speed of a virtual machine changes within seconds, and touching memory that its host has taken back costs four times
as much. A ratio of two processes that run one after the other therefore differs by up to 38 % between runs. Here the
two ways alternate after every slice (about half a second), and each goes first equally often.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, Self, TypeVar

from tests.bench.printed import PrintedResult

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(PrintedResult):
    """CPU seconds that ours and the limit need for the same slices.

    Args:
        pairs: how many slices were measured; a slice counts once per pass.
        records: how many records each of the two ways loaded.
        ours_cpu_s: ours, all pairs together.
        limit_cpu_s: the limit, all pairs together.
        inside_cpu_s: the part of `ours_cpu_s` that is spent inside the calls that the limit consists of.
    """

    pairs: int
    records: int
    ours_cpu_s: float
    limit_cpu_s: float
    inside_cpu_s: float

    @property
    def ratio(self) -> float:
        """Ours / limit."""
        return self.ours_cpu_s / self.limit_cpu_s

    @property
    def inside_ratio(self) -> float:
        """Ours / the part of ours that the limit also does: a second measurement of the same overhead.

        It varies less than `ratio`, because both numbers come from the same run. But if the memory layout of ours makes
        the encoder slower, this ratio does not show it.
        """
        return self.ours_cpu_s / self.inside_cpu_s

    def __add__(self, other: Self) -> Self:
        return type(self)(
            pairs=self.pairs + other.pairs,
            records=self.records + other.records,
            ours_cpu_s=self.ours_cpu_s + other.ours_cpu_s,
            limit_cpu_s=self.limit_cpu_s + other.limit_cpu_s,
            inside_cpu_s=self.inside_cpu_s + other.inside_cpu_s,
        )


@dataclass(slots=True)
class Timer:
    """Adds up the CPU seconds of this process that pass inside the calls that it wraps. Wrapped calls do not nest."""

    clock: Clock = time.process_time
    total_s: float = 0.0

    def around(self, call: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
        """`call`, with its time added to the total."""

        @wraps(call)
        def timed(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
            start_s = self.clock()
            try:
                return call(*args, **kwargs)
            finally:
                self.total_s += self.clock() - start_s

        return timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One slice of `records` records, loaded in both ways. `prepare` runs before each pair and is not measured."""

    records: int
    prepare: Callable[[], None]
    ours: Callable[[], None]
    limit: Callable[[], None]


def compare(pairs: Sequence[Pair], passes: int, inside: Timer) -> Comparison:
    """Run all pairs once without measuring, then measure them `passes` times.

    The unmeasured pass touches all memory that the measured passes use, and compiles kernels at their first use.
    `inside` must wrap the calls of ours only; it is read before and after each slice.
    """
    for pair in pairs:
        _run(pair, Timer(), Timer(), ours_first=True)
    ours, limit = Timer(inside.clock), Timer(inside.clock)
    inside_before_s = inside.total_s
    for number in range(passes):
        for index, pair in enumerate(pairs):
            _run(pair, ours, limit, ours_first=(number + index) % 2 == 0)
    return Comparison(
        pairs=passes * len(pairs),
        records=passes * sum(pair.records for pair in pairs),
        ours_cpu_s=ours.total_s,
        limit_cpu_s=limit.total_s,
        inside_cpu_s=inside.total_s - inside_before_s,
    )


def _run(pair: Pair, ours: Timer, limit: Timer, *, ours_first: bool) -> None:
    pair.prepare()
    calls = [ours.around(pair.ours), limit.around(pair.limit)]
    for call in calls if ours_first else reversed(calls):
        call()
