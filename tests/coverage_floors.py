"""Measures how much of each room the tests run, and compares that with the floors in pyproject.toml.

    python -m tests.coverage_floors            fails if a room is below its floor
    python -m tests.coverage_floors --raise    raises floors to the measured coverage; no floor is ever lowered

A room is a folder of a package, such as kafka_io/wire, or the files directly in a package. Its coverage is the share
of its lines and branches that ran, as coverage.py counts them. The tests of `make unit` run, the slow ones, and those
that need a ZooKeeper. Spark, a browser, real brokers and killed processes take long, and the thorough cases run the
same lines again. The kernels are left out as well, because the tracer does not see machine code.

Some lines run only if threads meet in a certain order, so coverage varies from run to run. A floor is therefore a
little lower than the measured coverage.
"""

import json
import math
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from coverage import Coverage

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "pyproject.toml"
PACKAGES = ("kafka_io", "pipelines", "resources")
LEFT_OUT = ("spark", "crash", "ui", "brokers", "thorough")
IGNORED = ("jit/test_compiling.py", "records/test_compiler_off.py", "testing/modern/clients")
"""Tests of kafka_io that compile kernels again, run them uncompiled, or start the clients of others: all are slow."""
SECTION = "[tool.coverage_floors]\n"
SLACK = 0.5
"""The highest floor is so many percentage points lower than the measured coverage."""


def room_of(file: Path) -> str:
    """The room of a file, whose path is relative to the root."""
    return "/".join(file.parts[:2]) if len(file.parts) > 2 else file.parts[0]


def rooms() -> set[str]:
    """All rooms of the packages."""
    files = (file.relative_to(ROOT) for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {room_of(file) for file in files}


def floors() -> dict[str, int]:
    """The floors in pyproject.toml, in percent, by room."""
    settings = tomllib.loads(PROJECT.read_text())
    percent_by_room: dict[str, int] = settings["tool"]["coverage_floors"]
    return percent_by_room


def run_tests(workers: str) -> int:
    """Run the tests of the rooms under coverage, without the data of earlier runs; return the exit code of pytest."""
    Coverage(config_file=str(PROJECT)).erase()
    left_out = " or ".join(LEFT_OUT)
    folders = [f"tests/{folder}" for folder in (*PACKAGES, "docs")]
    options = ["-q", "-n", workers, "--no-loadscope-reorder", "-m", f"not ({left_out})"]
    options += [f"--ignore=tests/kafka_io/{name}" for name in IGNORED]
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", *options, *folders]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def report() -> dict[str, Any]:
    """The JSON report of coverage.py for the data of the last `run_tests`."""
    coverage = Coverage(config_file=str(PROJECT))
    file = Path(coverage.get_data().base_filename()).with_name("coverage.json")
    coverage.combine()
    coverage.json_report(outfile=str(file))
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def by_room(coverage_report: Mapping[str, Any]) -> dict[str, float]:
    """The coverage of each room in percent, from coverage.py's JSON report."""
    executed: Counter[str] = Counter()
    possible: Counter[str] = Counter()
    for file, measured in coverage_report["files"].items():
        room, summary = room_of(Path(file)), measured["summary"]
        executed[room] += summary["covered_lines"] + summary["covered_branches"]
        possible[room] += summary["num_statements"] + summary["num_branches"]
    return {room: 100 * executed[room] / (possible[room] or 1) for room in sorted(possible)}


def below(measured: Mapping[str, float], floors: Mapping[str, int]) -> list[str]:
    """A sentence for each room whose coverage is below its floor."""
    return [
        f"{room}: {measured.get(room, 0):.1f} % of lines and branches ran, the floor is {floor} %"
        for room, floor in floors.items()
        if measured.get(room, 0) < floor
    ]


def raised(text: str, measured: Mapping[str, float]) -> str:
    """The text of pyproject.toml with each floor as high as the measurement allows. No floor is lowered."""

    def line(match: re.Match[str]) -> str:
        reached = math.floor(measured.get(match["room"], 0) - SLACK)
        return f'"{match["room"]}" = {max(int(match["floor"]), reached)}'

    before, section, floors = text.partition(SECTION)
    return before + section + re.sub(r'^"(?P<room>[a-z0-9_/]+)" = (?P<floor>\d+)$', line, floors, flags=re.MULTILINE)


@click.command()
@click.option("--workers", default="2", show_default=True, help="How many processes run tests.")
@click.option("--raise", "is_raising", is_flag=True, help="Raise the floors to the measured coverage.")
def main(*, workers: str, is_raising: bool) -> None:
    """Run the tests under coverage and compare each room with its floor."""
    failed = run_tests(workers)
    if failed:
        sys.exit(failed)
    measured, current_floors = by_room(report()), floors()
    for room, percent in measured.items():
        click.echo(f"{room:24} {percent:5.1f} %   floor {current_floors.get(room, 0):3} %")
    if is_raising:
        PROJECT.write_text(raised(PROJECT.read_text(), measured))
        return
    for problem in (problems := below(measured, current_floors)):
        click.echo(problem, err=True)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
