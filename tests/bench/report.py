"""Numbers to what is told of them: medians, ratios, bars, the JSON file and the README's table."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import loaders as by
from tests.bench.cases import COLD, GZIP, MANY, NONE, PARQUET_CODEC, SMALL, ZSTD, Case
from tests.bench.measure import Usage

BEGIN, END = "<!-- bench: written by `make bench` -->", "<!-- /bench -->"
_PACKAGES = ("pyarrow", "pyspark", "numba", "confluent-kafka", "kafkarrow", "aiokafka", "kafka-python")
_IN_SPARK = (by.SPARK, by.OURS_IN_SPARK)
_MILLION = 1_000_000
_LEAST_S = 1.0

Medians = Mapping[str, Mapping[str, Usage]]
"""By case and loader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What is promised: `case`'s ratio of CPU times of `loader` is at least `least`, or at most `most`."""

    case: Case
    loader: str
    least: float | None = None
    most: float | None = None

    def holds(self, ratio: float) -> bool:
        """Whether it does."""
        return (self.least is None or ratio >= self.least) and (self.most is None or ratio <= self.most)

    def __str__(self) -> str:
        bound = f">= {self.least}" if self.most is None else f"<= {self.most}"
        return f"{self.case.title}, {self.loader}: {bound}"


BARS = (
    Bar(case=MANY, loader=by.SPARK, least=4),
    Bar(case=COLD, loader=by.COLD_SPARK, least=5),
    Bar(case=NONE, loader=by.CONFLUENT, least=3.3),
    Bar(case=ZSTD, loader=by.CONFLUENT, least=3),
    Bar(case=SMALL, loader=by.CONFLUENT, least=6),
    Bar(case=GZIP, loader=by.CONFLUENT, least=5),
    Bar(case=NONE, loader=by.KAFKARROW, least=2.5),
    Bar(case=NONE, loader=by.AIOKAFKA, least=6),
    Bar(case=NONE, loader=by.KAFKA_PYTHON, least=14),
    Bar(case=NONE, loader=by.LIMIT, most=1.35),
    Bar(case=ZSTD, loader=by.LIMIT, most=1.35),
)


def middle(usages: Sequence[Usage]) -> Usage:
    """The median of each number."""
    return Usage(
        wall_s=median(one.wall_s for one in usages),
        cpu_s=median(one.cpu_s for one in usages),
        peak_mb=median(one.peak_mb for one in usages),
    )


def ratios(of: Mapping[str, Usage]) -> dict[str, dict[str, float]]:
    """Of one case, theirs / ours by peer; for the limit the other way round.

    Spark's source is held against ours in Spark, and of cold jobs counts what they take beyond an empty one.
    """
    found: dict[str, dict[str, float]] = {}
    for name, theirs in of.items():
        if name == by.COLD_SPARK and {by.COLD_EMPTY, by.COLD_OURS} <= of.keys():
            empty = of[by.COLD_EMPTY]
            found[name] = _ratio(_beyond(theirs, empty), _beyond(of[by.COLD_OURS], empty))
        ours = of.get(by.OURS_IN_SPARK if name in _IN_SPARK else by.OURS)
        if ours is None or name in (by.OURS, by.OURS_IN_SPARK):
            continue
        found[name] = _ratio(ours, theirs) if name == by.LIMIT else _ratio(theirs, ours)
    return found


def _ratio(top: Usage, bottom: Usage) -> dict[str, float]:
    return {"wall": round(top.wall_s / bottom.wall_s, 2), "cpu": round(top.cpu_s / bottom.cpu_s, 2)}


def _beyond(one: Usage, empty: Usage) -> Usage:
    """What a job takes beyond an empty one of Spark; one without Spark may take less than that: next to nothing."""
    return Usage(
        wall_s=max(_LEAST_S, one.wall_s - empty.wall_s),
        cpu_s=max(_LEAST_S, one.cpu_s - empty.cpu_s),
        peak_mb=one.peak_mb,
    )


def missed(medians: Medians) -> Iterator[str]:
    """The bars of the cases that were run which do not hold."""
    for bar in BARS:
        if bar.case.name not in medians:
            continue
        ratio = ratios(medians[bar.case.name]).get(bar.loader)
        if ratio is None:
            yield f"{bar}: not measured"
        elif not bar.holds(ratio["cpu"]):
            yield f"{bar}: it is {ratio['cpu']}"


def as_dict(medians: Medians, rounds: int) -> dict[str, Any]:
    """What bench-results.json holds: `ratios` and `limit` are of the 200 B zstd case."""
    found = ratios(medians.get(ZSTD.name, {}))
    limit = found.pop(by.LIMIT, None)
    return {
        "ratios": found,
        "limit": limit,
        "missed": list(missed(medians)),
        "rounds": rounds,
        "machine": {"system": platform.platform(), "python": platform.python_version(), **_versions()},
        "cases": {
            case: {"medians": {name: asdict(usage) for name, usage in of.items()}, "ratios": ratios(of)}
            for case, of in medians.items()
        },
    }


def _versions() -> dict[str, str]:
    installed = {one.name: one.version for one in metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


def write(path: Path, medians: Medians, rounds: int) -> None:
    """Write bench-results.json."""
    path.write_text(json.dumps(as_dict(medians, rounds), indent=2) + "\n")


def table(cases: Sequence[Case], medians: Medians) -> str:
    """Markdown: a row for each case and loader."""
    lines = [
        "| topic | loader | wall s | CPU s | k records/s | CPU s per M | CPU, theirs / ours | peak MB |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases:
        factors = ratios(medians.get(case.name, {}))
        for name, usage in medians.get(case.name, {}).items():
            factor = factors.get(name, {}).get("cpu")
            cells = (
                case.title,
                name,
                f"{usage.wall_s:.2f}",
                f"{usage.cpu_s:.2f}",
                f"{case.records / usage.wall_s / 1000:,.0f}" if case.steady else "",
                f"{usage.cpu_s / case.records * _MILLION:.2f}" if case.steady else "",
                "" if factor is None else f"ours / limit {factor:.2f}" if name == by.LIMIT else f"{factor:.1f}",
                f"{usage.peak_mb:,.0f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def circumstances(rounds: int) -> str:
    """One sentence on how and where the numbers came about."""
    versions = ", ".join(f"{name} {version}" for name, version in _versions().items())
    counted = "One round" if rounds == 1 else f"Medians of {rounds} interleaved rounds"
    where = f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}"
    return f"{counted}; everyone's Parquet in {PARQUET_CODEC}; {where}."


def write_readme(path: Path, text: str) -> None:
    """Put `text` where README.md has its place.

    Raises:
        ValueError: it has none.
    """
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} has no place for the table, {BEGIN} to {END}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
