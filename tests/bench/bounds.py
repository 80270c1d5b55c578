"""The ratios of CPU time and the memory that the project promises. `make bench` ends with an error if one is missed.

A bound fails only if every round misses it. The loaders of a round run at different moments, and the speed of a virtual
machine changes within seconds, so the ratio of one round can be 19 % off. A real change moves all rounds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tests.bench import loaders as by
from tests.bench.cases import AVRO, COLD, GZIP, JSON, LZ4, MANY, NONE, SMALL, SNAPPY, SPREAD, ZSTD, Case
from tests.bench.measure import Usage
from tests.bench.results import Results, Round, ratios

OURS_BY_LIMIT = "ours / limit"
OURS_BY_INSIDE = "ours / timers inside ours"
LAST_MESSAGES_BY_OURS = "last messages / ours"
EVENT_TIMES_BY_OURS = "event time / ours"
PEAK_OF_OURS = "ours, peak MB"
CPU_OF_OURS = "ours, CPU s"
IN_SPARK_BY_OURS = "ours in Spark / ours"
PEAK_OF_WORKER = "ours in Spark, peak MB of a worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A promise about one figure of a case: at least `min` (other / ours), or at most `max` (parts of ours, memory)."""

    case: Case
    ratio: str
    min: float | None = None
    max: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a measured value keeps the promise."""
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)

    def __str__(self) -> str:
        bound = f">= {self.min}" if self.max is None else f"<= {self.max}"
        return f"{self.case.title}, {self.ratio}: {bound}"


BOUNDS = (
    Bound(case=MANY, ratio=by.SPARK, min=4),
    Bound(case=NONE, ratio=by.SPARK, min=3.5),
    Bound(case=ZSTD, ratio=by.SPARK, min=3),
    Bound(case=SPREAD, ratio=by.SPARK, min=6),
    Bound(case=SPREAD, ratio=IN_SPARK_BY_OURS, max=2),
    Bound(case=SPREAD, ratio=CPU_OF_OURS, max=7),
    Bound(case=JSON, ratio=by.SPARK_TYPED, min=8),
    Bound(case=AVRO, ratio=by.SPARK_AVRO, min=8),
    Bound(case=AVRO, ratio=by.CONFLUENT_AVRO, min=6),
    Bound(case=COLD, ratio=by.COLD_SPARK, min=5),
    Bound(case=NONE, ratio=by.CONFLUENT, min=3.3),
    Bound(case=ZSTD, ratio=by.CONFLUENT, min=3),
    Bound(case=SMALL, ratio=by.CONFLUENT, min=6),
    Bound(case=GZIP, ratio=by.CONFLUENT, min=5),
    Bound(case=LZ4, ratio=by.CONFLUENT, min=2.8),
    Bound(case=SNAPPY, ratio=by.CONFLUENT, min=2.5),
    Bound(case=NONE, ratio=by.KAFKARROW, min=2.5),
    Bound(case=NONE, ratio=by.AIOKAFKA, min=6),
    Bound(case=NONE, ratio=by.KAFKA_PYTHON, min=14),
    # Both ratios are about 1.26 on a quiet machine. In 16 runs next to ten busy programs on two cores, the timers gave
    # 1.28 to 1.32, and ours / limit gave 1.26 to 1.40: probably the other programs fill the cache, which slows ours
    # down more than the limit. So the promise, 1.35, is the bound for the timers. The wider bound of 1.45 covers the
    # costs that the timers cannot see.
    Bound(case=NONE, ratio=OURS_BY_LIMIT, max=1.45),
    Bound(case=ZSTD, ratio=OURS_BY_LIMIT, max=1.45),
    Bound(case=NONE, ratio=OURS_BY_INSIDE, max=1.35),
    Bound(case=ZSTD, ratio=OURS_BY_INSIDE, max=1.35),
    Bound(case=ZSTD, ratio=LAST_MESSAGES_BY_OURS, max=0.03),
    Bound(case=ZSTD, ratio=EVENT_TIMES_BY_OURS, max=0.01),
    # Measured are 343 MB and 300 MB in a worker: imports and kernels, the columns of one batch and the answers of a
    # broker. A second set of columns would be 50 MB more.
    Bound(case=NONE, ratio=PEAK_OF_OURS, max=370),
    Bound(case=ZSTD, ratio=PEAK_OF_OURS, max=370),
    Bound(case=SPREAD, ratio=PEAK_OF_OURS, max=370),
    Bound(case=SPREAD, ratio=PEAK_OF_WORKER, max=370),
)


_OF_USAGES: Mapping[str, tuple[AbstractSet[str], Callable[[Mapping[str, Usage]], float]]] = {
    PEAK_OF_OURS: (frozenset({by.OURS}), lambda usages: usages[by.OURS].peak_mb),
    CPU_OF_OURS: (frozenset({by.OURS}), lambda usages: usages[by.OURS].cpu_s),
    PEAK_OF_WORKER: (frozenset({by.OURS_IN_SPARK}), lambda usages: usages[by.OURS_IN_SPARK].worker_mb),
    IN_SPARK_BY_OURS: (
        frozenset({by.OURS, by.OURS_IN_SPARK}),
        lambda usages: usages[by.OURS_IN_SPARK].cpu_s / usages[by.OURS].cpu_s,
    ),
}
"""Figures of ours: the loaders that must have run, and how the figure is computed from their usages."""


def missed(results: Results) -> Iterator[str]:
    """The bounds of the measured cases that do not hold, each with the values of its rounds."""
    for bound in BOUNDS:
        if bound.case.name not in results:
            continue
        values = list(_values(results[bound.case.name], bound.ratio))
        if not values:
            yield f"{bound}: not measured"
        elif not any(map(bound.holds, values)):
            yield f"{bound}: every round misses it ({', '.join(f'{value:.2f}' for value in values)})"


def _values(rounds: Sequence[Round], ratio: str) -> Iterator[float]:
    """The value of a figure in each round that measured it."""
    for round_ in rounds:
        by_loader = ratios(round_.usages)
        if ratio in by_loader:
            yield by_loader[ratio].cpu
        elif ratio in _OF_USAGES:
            loaders, figure = _OF_USAGES[ratio]
            if loaders <= round_.usages.keys():
                yield figure(round_.usages)
        elif round_.comparison and ratio == OURS_BY_LIMIT:
            yield round_.comparison.ratio
        elif round_.comparison and ratio == OURS_BY_INSIDE:
            yield round_.comparison.inside_ratio
        elif round_.last_messages and ratio == LAST_MESSAGES_BY_OURS:
            yield round_.last_messages.share
        elif round_.event_times and ratio == EVENT_TIMES_BY_OURS:
            yield round_.event_times.share
