"""`make bench` and `make bench QUICK=1`. All cases need Linux, 6 GB of memory and 10 GB of disk."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.bench import bounds, chart, report, scale
from tests.bench.cases import ALL, QUICK, Case
from tests.bench.results import Results, Round
from tests.bench.running import BROKER, Bench
from tests.bench.spark_jars import kafka_source
from tests.brokers.real import RealBroker

_RESULTS = Path(__file__).parents[2] / "bench-results.json"
_ROUNDS, _QUICK_ROUNDS = 5, 3


@click.command()
@click.option("--quick", is_flag=True, help="Only the case of 200 B with zstd, 3 rounds.")
@click.option("--case", "names", multiple=True, type=click.Choice([case.name for case in ALL]), help="Only this case.")
@click.option("--rounds", type=click.IntRange(1), help="How often each loader runs.")
def main(quick: bool, names: tuple[str, ...], rounds: int | None) -> None:
    """Load topics with every loader and compare. Exit code 1: a bound does not hold, or a loader failed."""
    cases = [case for case in ALL if case.name in names] or (QUICK if quick else ALL)
    count = rounds or (_QUICK_ROUNDS if quick else _ROUNDS)
    results: dict[str, Sequence[Round]] = {}
    jars = kafka_source()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as home,
        RealBroker(BROKER, Path(home) / "broker", heap="1g") as broker,
        EmbeddedSchemaRegistry() as registry,
    ):
        bench = Bench(broker=broker, registry=registry, folder=Path(home), jars=jars, say=click.echo)
        for case in cases:
            results[case.name] = bench.run(case, count)
            report.write(_RESULTS, results, count)
    _show(cases, results, count, bench.failures)


def _show(cases: Sequence[Case], results: Results, rounds: int, failures: Sequence[str]) -> None:
    """Print the tables and the failures, write the page if all cases were measured, and exit."""
    tables = f"{report.loaders_table(cases, results)}\n\n{report.limit_table(cases, results)}"
    click.echo(f"\n{tables}\n")
    problems = [*(f"bound: {bound}" for bound in bounds.missed(results)), *(f"failed: {error}" for error in failures)]
    if len(cases) == len(ALL):
        usages = scale.usages()
        large = scale.table(usages)
        click.echo(f"{large}\n")
        problems += [f"bound: {bound}" for bound in scale.missed(usages)]
        report.write_page(report.PAGE, f"{report.circumstances(rounds)}\n\n{tables}\n\n{large}")
        chart.write(report.PAGE)
    for problem in problems:
        click.echo(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
