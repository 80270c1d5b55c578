"""Writes the results of `make bench`: bench-results.json, and the tables of docs/speed.md."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.bench.bounds import missed
from tests.bench.cases import PARQUET_CODEC, ZSTD, Case
from tests.bench.comparison import Comparison
from tests.bench.measure import Usage
from tests.bench.results import Ratio, Results, Round, medians, ratios, share_of_last_messages, total_comparison

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
BEGIN, END = "<!-- bench: written by `make bench` -->", "<!-- /bench -->"
_PACKAGES = ("pyarrow", "pyspark", "numba", "confluent-kafka", "kafkarrow", "aiokafka", "kafka-python")
_MILLION = 1_000_000


def as_dict(results: Results, rounds: int) -> dict[str, Any]:
    """The content of bench-results.json. `ratios` and `limit` at the top are those of the case "200 B, zstd"."""
    cases = {name: _case_as_dict(measured) for name, measured in results.items()}
    main = cases.get(ZSTD.name, {"ratios": {}, "limit": None})
    return {
        "ratios": main["ratios"],
        "limit": main["limit"],
        "missed": list(missed(results)),
        "rounds": rounds,
        "machine": {"system": platform.platform(), "python": platform.python_version(), **_versions()},
        "cases": cases,
    }


def _case_as_dict(rounds: Sequence[Round]) -> dict[str, Any]:
    usages, compared = medians(rounds), total_comparison(rounds)
    return {
        "medians": {name: asdict(usage) for name, usage in usages.items()},
        "ratios": {name: asdict(ratio) for name, ratio in ratios(usages).items()},
        "limit": _limit_as_dict(compared) if compared else None,
        "rounds": [_round_as_dict(measured) for measured in rounds],
    }


def _limit_as_dict(compared: Comparison) -> dict[str, Any]:
    return {"cpu": round(compared.ratio, 3), "inside": round(compared.inside_ratio, 3), **asdict(compared)}


def _round_as_dict(measured: Round) -> dict[str, Any]:
    return {
        "usages": {name: asdict(usage) for name, usage in measured.usages.items()},
        "limit": _limit_as_dict(measured.comparison) if measured.comparison else None,
        "last_messages": asdict(measured.last_messages) if measured.last_messages else None,
        "event_times": asdict(measured.event_times) if measured.event_times else None,
    }


def _versions() -> dict[str, str]:
    installed = {package.name: package.version for package in metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


def write(path: Path, results: Results, rounds: int) -> None:
    """Write bench-results.json."""
    path.write_text(json.dumps(as_dict(results, rounds), indent=2) + "\n")


def loaders_table(cases: Sequence[Case], results: Results) -> str:
    """Markdown: one row per case and loader."""
    lines = [
        "| topic | loader | wall s | CPU s | k records/s | CPU s per M | CPU, theirs / ours | peak MB |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases:
        usages = medians(results.get(case.name, ()))
        by_loader = ratios(usages)
        for name, usage in usages.items():
            lines.append(f"| {' | '.join(_cells(case, name, usage, by_loader))} |")
    return "\n".join(lines)


def _cells(case: Case, name: str, usage: Usage, by_loader: Mapping[str, Ratio]) -> Sequence[str]:
    return (
        case.title,
        name,
        f"{usage.wall_s:.2f}",
        f"{usage.cpu_s:.2f}",
        f"{case.records / usage.wall_s / 1000:,.0f}" if case.steady else "",
        f"{usage.cpu_s / case.records * _MILLION:.2f}" if case.steady else "",
        f"{by_loader[name].cpu:.1f}" if name in by_loader else "",
        f"{usage.peak_mb:,.0f}",
    )


def limit_table(cases: Sequence[Case], results: Results) -> str:
    """Markdown: ours and the limit, one row per case that compares them."""
    lines = [
        (
            "| topic | ours, CPU s per M | limit, CPU s per M | ours / limit | timers inside ours | slices "
            "| last messages |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases:
        compared = total_comparison(results.get(case.name, ()))
        if compared:
            millions = compared.records / _MILLION
            share = share_of_last_messages(results[case.name])
            cells = (
                case.title,
                f"{compared.ours_cpu_s / millions:.2f}",
                f"{compared.limit_cpu_s / millions:.2f}",
                f"{compared.ratio:.2f}",
                f"{compared.inside_ratio:.2f}",
                str(compared.pairs),
                "" if share is None else f"{share:.1%}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def circumstances(rounds: int) -> str:
    """One sentence: how often and with which versions the numbers were measured."""
    versions = ", ".join(f"{name} {version}" for name, version in _versions().items())
    counted = "One round" if rounds == 1 else f"Medians of {rounds} interleaved rounds"
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}"
    return f"{counted}; all Parquet files in {PARQUET_CODEC}; {machine}."


def write_page(path: Path, text: str) -> None:
    """Replace the text between BEGIN and END in the page.

    Raises:
        ValueError: the page lacks one of the two markers.
    """
    before, begin, replaced = path.read_text().partition(BEGIN)
    _, end, after = replaced.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} has no place for the tables: add the lines {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
