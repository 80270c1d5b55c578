"""Runs the tests on mutants of the rooms that plan, fetch, commit and verify: `make mutate SAMPLE=50 SEED=7`.

A mutant that no test notices survives. The run ends with an error if a survivor is not in the list of `equivalent.py`,
which gives the reason why it behaves like the original. `python -m tests.mutation --mistakes` tries those of
`mistakes.py` alone.
"""

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from kafka_io.records import decoder
from kafka_io.records.v07 import decoder as v07_decoder
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mistakes import mistakes
from tests.mutation.mutants import Mutant, NodeMutant, mutants_of
from tests.mutation.run import MutationRun

ROOT = Path(__file__).parents[2]
ROOMS = (
    "layout",
    "ledger",
    "table",
    "delta",
    "plan",
    "commit",
    "identity",
    "fetch",
    "schemas",
    "load",
    "verify",
    "reports",
    "comparison",
    "rewrites",
    "maintenance",
)
FILES = (
    *(
        file
        for room in ROOMS
        for file in sorted((ROOT / "pipelines" / room).glob("*.py"))
        if file.stem != "run_reports"
    ),
    ROOT / "kafka_io" / "reader" / "modern_partition.py",
    ROOT / "kafka_io" / "reader" / "v07" / "partition.py",
)
_TESTS = (
    *(f"tests/pipelines/{room}" for room in ROOMS),
    "tests/pipelines/routes",
    "tests/pipelines/status",
    "tests/pipelines/tail",
    "tests/pipelines/test_failpoints.py",
    "tests/pipelines/test_stored_lake.py",
    "tests/kafka_io/reader",
    "tests/simulation",
    "tests/mutation/last_resort.py",
)
_NEAR = ("tests/pipelines/test_failpoints.py",)
_SLOW = "zookeeper or spark or crash or ui or brokers or postgres or prometheus or thorough"


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, help="number of mutants, drawn at random; all by default")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the sample")
    parser.add_argument("--mistakes", action="store_true", help="only those of mistakes.py, with their tests")
    parser.add_argument("--files", nargs="+", help="only mutants of these modules, like pipelines/plan/plan.py")
    parser.add_argument("--tests", nargs="+", default=_TESTS, help="only these tests; a run with fewer takes less time")
    options = parser.parse_args()
    say = _printer()
    if options.mistakes:
        listed = mistakes(ROOT)
        sys.exit(1 if _survivors(listed, [mistake.test for mistake in listed], say) else 0)
    files = options.files or [str(file.relative_to(ROOT)) for file in FILES]
    mutants = [mutant for file in files for mutant in mutants_of(ROOT, file)]
    if options.sample is not None:
        mutants = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
        say(f"seed {options.seed}")
    sys.exit(1 if _survivors(_without_equivalent(mutants, say), options.tests, say) else 0)


def _printer() -> Callable[[str], None]:
    """Prints lines to standard output, also while pytest captures it."""
    output = os.dup(sys.stdout.fileno())

    def say(line: str) -> None:
        os.write(output, f"{line}\n".encode())

    return say


def _without_equivalent(mutants: Sequence[NodeMutant], say: Callable[[str], None]) -> list[NodeMutant]:
    """The mutants without those that behave like the original. These are printed with the reason."""
    reasons = {mutant: EQUIVALENT.get((mutant.file, mutant.function, mutant.change)) for mutant in mutants}
    for mutant, reason in reasons.items():
        if reason is not None:
            say(f"{mutant}: equivalent: {reason}")
    return [mutant for mutant, reason in reasons.items() if reason is None]


def _survivors(mutants: Sequence[Mutant], tests: Sequence[str], say: Callable[[str], None]) -> list[Mutant]:
    """The mutants that none of the tests notices. Each result is printed."""
    survivors = []

    def show(mutant: Mutant, noticed_by: str | None) -> None:
        if noticed_by is None:
            survivors.append(mutant)
        say(f"{mutant}: {f'noticed by {noticed_by}' if noticed_by else 'SURVIVED'}")

    run = MutationRun(root=ROOT, mutants=mutants, on_result=show, near=_NEAR, prepare=_warm)
    options = [
        "-qq",
        "-x",
        "-n",
        "0",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "--timeout",
        "0",
        "--tb",
        "native",
    ]
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]  # Hypothesis
    code = pytest.main([*options, "-m", f"not ({_SLOW})", *tests], plugins=[run])
    if code != pytest.ExitCode.OK:
        sys.exit(f"pytest ends with {code}")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    minutes = sum(usage.ru_utime + usage.ru_stime for usage in used) / 60
    say(f"{len(mutants)} mutants in {minutes:.0f} minutes of CPU, {len(survivors)} survivors")
    for mutant in survivors:
        say(f"  {mutant}")
    return survivors


def _warm() -> None:
    """Load what most tests need before the first fork, so that no fork has to do it."""
    decoder.warm()
    v07_decoder.warm()
    for module in ("alembic.context", "pyarrow.dataset"):  # the first is for a fixture of all tests of pipelines
        import_module(module)


if __name__ == "__main__":
    main()
