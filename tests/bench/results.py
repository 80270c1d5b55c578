"""The measured rounds, and the medians and ratios that are calculated from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from statistics import median

from tests.bench import loaders as by
from tests.bench.comparison import Comparison
from tests.bench.event_times import EventTimeCost
from tests.bench.last_messages import LastMessageCost
from tests.bench.measure import Usage

_COUNTERPARTS = {
    by.SPARK: by.OURS_IN_SPARK,
    by.SPARK_TYPED: by.OURS_TYPED,
    by.CONFLUENT_AVRO: by.OURS_AVRO,
    by.SPARK_AVRO: by.OURS_AVRO,
}
"""The loader of ours that does the same as another loader; for all others it is `ours`."""
_MIN_BEYOND_EMPTY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of a case: the usage of each loader, the comparison with the limit, and the costs of parts of a load.

    What failed is missing.
    """

    usages: Mapping[str, Usage]
    comparison: Comparison | None = None
    last_messages: LastMessageCost | None = None
    event_times: EventTimeCost | None = None


Results = Mapping[str, Sequence[Round]]
"""The rounds of each case, by the name of the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The wall and CPU time of another loader, divided by those of ours."""

    wall: float
    cpu: float


def medians(rounds: Sequence[Round]) -> dict[str, Usage]:
    """The median usage of each loader, with a separate median for each number."""
    names = dict.fromkeys(name for round_ in rounds for name in round_.usages)
    return {name: _median([round_.usages[name] for round_ in rounds if name in round_.usages]) for name in names}


def _median(usages: Sequence[Usage]) -> Usage:
    return Usage(
        wall_s=median(usage.wall_s for usage in usages),
        cpu_s=median(usage.cpu_s for usage in usages),
        peak_mb=median(usage.peak_mb for usage in usages),
        worker_mb=median(usage.worker_mb for usage in usages),
    )


def total_comparison(rounds: Iterable[Round]) -> Comparison | None:
    """The sum of the comparisons with the limit in all rounds; None if no round has one."""
    comparisons = [round_.comparison for round_ in rounds if round_.comparison]
    return reduce(add, comparisons) if comparisons else None


def share_of_last_messages(rounds: Iterable[Round]) -> float | None:
    """The median share of a load in which it reads last messages again; None if no round measured it."""
    shares = [round_.last_messages.share for round_ in rounds if round_.last_messages]
    return median(shares) if shares else None


def ratios(usages: Mapping[str, Usage]) -> dict[str, Ratio]:
    """The ratio of each other loader to ours, by loader.

    Spark's own Kafka source is compared with ours in Spark. A loader that decodes values is compared with ours that
    decodes them. The time of a cold job counts minus that of an empty Spark job, but at least as one second.
    """
    result: dict[str, Ratio] = {}
    for name, other in usages.items():
        if name == by.COLD_SPARK and {by.COLD_EMPTY, by.COLD_OURS} <= usages.keys():
            empty = usages[by.COLD_EMPTY]
            result[name] = _ratio(_beyond(other, empty), _beyond(usages[by.COLD_OURS], empty))
        ours = usages.get(_COUNTERPARTS.get(name, by.OURS))
        if ours is not None and name not in (by.OURS, by.OURS_IN_SPARK):
            result[name] = _ratio(other, ours)
    return result


def _ratio(other: Usage, ours: Usage) -> Ratio:
    return Ratio(wall=round(other.wall_s / ours.wall_s, 2), cpu=round(other.cpu_s / ours.cpu_s, 2))


def _beyond(job: Usage, empty: Usage) -> Usage:
    """The usage of a cold job minus that of an empty Spark job, which can be negative: Penstock may need no JVM."""
    return Usage(
        wall_s=max(_MIN_BEYOND_EMPTY_S, job.wall_s - empty.wall_s),
        cpu_s=max(_MIN_BEYOND_EMPTY_S, job.cpu_s - empty.cpu_s),
        peak_mb=job.peak_mb,
    )
