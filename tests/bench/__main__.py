"""`make bench` and `make bench QUICK=1`. It needs Linux, 6 GB of memory, and 10 GB of disk for all cases."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import report, scale
from tests.bench.cases import ALL, QUICK, Case
from tests.bench.measure import Usage
from tests.bench.running import BROKER, Bench
from tests.bench.spark_jars import kafka_source
from tests.brokers.real import RealBroker

_ROOT = Path(__file__).parent.parent.parent
_RESULTS = _ROOT / "bench-results.json"
_ROUNDS, _QUICK_ROUNDS = 5, 3


@click.command()
@click.option("--quick", is_flag=True, help="Only records of 200 B with zstd, 3 rounds.")
@click.option("--case", "names", multiple=True, type=click.Choice([case.name for case in ALL]), help="Only this one.")
@click.option("--rounds", type=click.IntRange(1), help="How often each loader runs.")
def main(quick: bool, names: tuple[str, ...], rounds: int | None) -> None:
    """Load topics with everyone, compare, and end with 1 where a promise does not hold."""
    cases = [case for case in ALL if case.name in names] or (QUICK if quick else ALL)
    times = rounds or (_QUICK_ROUNDS if quick else _ROUNDS)
    medians: dict[str, dict[str, Usage]] = {}
    jars = kafka_source()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as home,
        RealBroker(BROKER, Path(home) / "broker", heap="1g") as broker,
    ):
        bench = Bench(broker=broker, folder=Path(home), jars=jars, say=click.echo)
        for case in cases:
            usages = bench.run(case, times)
            medians[case.name] = {name: report.middle(usages[name]) for name in case.loaders if name in usages}
            report.write(_RESULTS, medians, times)
    _tell(cases, medians, times, bench.failures)


def _tell(cases: Sequence[Case], medians: report.Medians, rounds: int, failures: Sequence[str]) -> None:
    table = report.table(cases, medians)
    click.echo(f"\n{table}\n")
    problems = [*(f"below the bar: {bar}" for bar in report.missed(medians)), *(f"failed: {one}" for one in failures)]
    for problem in problems:
        click.echo(problem)
    if len(cases) == len(ALL):
        large = scale.table(scale.usages())
        click.echo(f"{large}\n")
        report.write_readme(_ROOT / "README.md", f"{report.circumstances(rounds)}\n\n{table}\n\n{large}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
