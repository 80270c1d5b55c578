"""Measures how much of each room the tests run: `make coverage` fails if a room is below the floor.

A room is a folder of a package, such as kafka_io/wire, or the files directly in a package. Its coverage is the share
of its lines and branches that ran, as coverage.py counts them. The tests of `make unit` run, the slow ones, and those
that need a ZooKeeper. Spark, a browser, real brokers and killed processes take long, and the thorough cases run the
same lines again. The kernels are left out as well, because the tracer does not see machine code.

The floor is the same for all rooms, so it finds a room that nobody tests, and no one has to change it when code moves.
"""

import json
import subprocess
import sys
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
FLOOR = 95
"""Percent of the lines and branches of a room."""
LOWER = {"pipelines/demo": 34, "pipelines/increments": 91, "resources/machines": 73}
"""Rooms with a lower floor. The demo runs in processes of its own, and its tests are thorough or need real brokers. A
part of the others runs only in Spark's processes, or starts a JVM.
"""


def room_of(file: Path) -> str:
    """The room of a file, whose path is relative to the root."""
    return "/".join(file.parts[:2]) if len(file.parts) > 2 else file.parts[0]


def rooms() -> set[str]:
    """All rooms of the packages."""
    files = (file.relative_to(ROOT) for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {room_of(file) for file in files}


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


def below(measured: Mapping[str, float]) -> list[str]:
    """A sentence for each room whose coverage is below its floor. A room that was not measured has 0 %."""
    return [
        f"{room}: {percent:.1f} % of lines and branches ran, the floor is {floor_of(room)} %"
        for room in sorted(rooms())
        if (percent := measured.get(room, 0)) < floor_of(room)
    ]


def floor_of(room: str) -> int:
    """The floor of a room in percent."""
    return LOWER.get(room, FLOOR)


@click.command()
@click.option("--workers", default="2", show_default=True, help="How many processes run tests.")
def main(*, workers: str) -> None:
    """Run the tests under coverage and compare each room with its floor."""
    failed = run_tests(workers)
    if failed:
        sys.exit(failed)
    measured = by_room(report())
    for room, percent in measured.items():
        click.echo(f"{room:24} {percent:5.1f} %   floor {floor_of(room):3} %")
    for problem in (problems := below(measured)):
        click.echo(problem, err=True)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
