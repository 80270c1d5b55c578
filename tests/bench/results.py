"""The measured rounds, and what is calculated from them: medians and ratios."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from statistics import median

from tests.bench import loaders as by
from tests.bench.comparison import Comparison
from tests.bench.measure import Usage

_IN_SPARK = (by.SPARK, by.OURS_IN_SPARK)
_MIN_BEYOND_EMPTY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of a case: what each loader used, and ours beside the limit. A loader that failed is missing."""

    usages: Mapping[str, Usage]
    comparison: Comparison | None = None


Results = Mapping[str, Sequence[Round]]
"""The rounds of each case, by the name of the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times the wall and CPU time of ours another loader needs."""

    wall: float
    cpu: float


def medians(rounds: Sequence[Round]) -> dict[str, Usage]:
    """The median usage of each loader, each number by itself."""
    names = dict.fromkeys(name for measured in rounds for name in measured.usages)
    return {name: _median([round_.usages[name] for round_ in rounds if name in round_.usages]) for name in names}


def _median(usages: Sequence[Usage]) -> Usage:
    return Usage(
        wall_s=median(usage.wall_s for usage in usages),
        cpu_s=median(usage.cpu_s for usage in usages),
        peak_mb=median(usage.peak_mb for usage in usages),
    )


def total_comparison(rounds: Iterable[Round]) -> Comparison | None:
    """Ours beside the limit over all rounds together; None if no round compared them."""
    comparisons = [round_.comparison for round_ in rounds if round_.comparison]
    return reduce(add, comparisons) if comparisons else None


def ratios(usages: Mapping[str, Usage]) -> dict[str, Ratio]:
    """The ratio of each other loader to ours, by loader.

    Spark's own Kafka source is compared with ours in Spark. A cold job counts by the time that it needs beyond an empty
    Spark job, and at least one second.
    """
    result: dict[str, Ratio] = {}
    for name, theirs in usages.items():
        if name == by.COLD_SPARK and {by.COLD_EMPTY, by.COLD_OURS} <= usages.keys():
            empty = usages[by.COLD_EMPTY]
            result[name] = _ratio(_beyond(theirs, empty), _beyond(usages[by.COLD_OURS], empty))
        ours = usages.get(by.OURS_IN_SPARK if name in _IN_SPARK else by.OURS)
        if ours is not None and name not in (by.OURS, by.OURS_IN_SPARK):
            result[name] = _ratio(theirs, ours)
    return result


def _ratio(theirs: Usage, ours: Usage) -> Ratio:
    return Ratio(wall=round(theirs.wall_s / ours.wall_s, 2), cpu=round(theirs.cpu_s / ours.cpu_s, 2))


def _beyond(job: Usage, empty: Usage) -> Usage:
    """What a cold job uses beyond an empty Spark job. Without a JVM, Penstock uses even less than the empty job."""
    return Usage(
        wall_s=max(_MIN_BEYOND_EMPTY_S, job.wall_s - empty.wall_s),
        cpu_s=max(_MIN_BEYOND_EMPTY_S, job.cpu_s - empty.cpu_s),
        peak_mb=job.peak_mb,
    )
