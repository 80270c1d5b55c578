"""Runs the tests on mutants of the rooms that plan, fetch, commit and verify: `make mutate SAMPLE=50 SEED=7`.

A mutant that no test notices survives. The run ends with an error if a survivor is not in the list of `equivalent.py`,
which gives the reason why it behaves like the original. Each mutant costs seconds to minutes. Without SAMPLE all of
them are tried, which takes hours.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants_of

_ROOT = Path(__file__).parents[2]
_FILES = (
    *sorted((_ROOT / "pipelines" / "loading").glob("*.py")),
    *sorted((_ROOT / "pipelines" / "maintenance").glob("*.py")),
    _ROOT / "kafka_io" / "reader" / "modern_partition.py",
    _ROOT / "kafka_io" / "reader" / "v07_partition.py",
)
_COPIED = ("pipelines", "kafka_io", "resources", "tests", "docs", "pyproject.toml", "README.md", "workspace.yaml")
_LONGEST_S = 900
_LAST_RESORT = ("tests/simulation",)
"""The tests that run if those of the module's own room notice nothing."""


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, help="number of mutants, drawn at random; all by default")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the sample")
    parser.add_argument("--file", help="only mutants of this module, for example pipelines/loading/plan.py")
    options = parser.parse_args()
    files = [options.file] if options.file else [str(file.relative_to(_ROOT)) for file in _FILES]
    mutants = [mutant for file in files for mutant in mutants_of(_ROOT, file)]
    if options.sample is not None:
        mutants = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
        _say(f"seed {options.seed}")
    sys.exit(1 if _survivors(mutants) else 0)


def _survivors(mutants: Sequence[Mutant]) -> list[Mutant]:
    """The mutants that no test notices, without the equivalent ones. Each result is printed."""
    survivors = []
    with tempfile.TemporaryDirectory(prefix="penstock-mutants-") as folder:
        tree = Path(folder)
        _copy(tree)
        for number, mutant in enumerate(mutants, 1):
            reason = EQUIVALENT.get((mutant.file, mutant.function, mutant.change))
            if reason is None and _survives(tree, mutant):
                survivors.append(mutant)
                result = "SURVIVED"
            else:
                result = f"equivalent: {reason}" if reason else "noticed"
            _say(f"{number}/{len(mutants)} {mutant}: {result}")
    _say(f"{len(mutants)} mutants, {len(survivors)} survivors")
    for mutant in survivors:
        _say(f"  {mutant}")
    return survivors


def _copy(tree: Path) -> None:
    for name in _COPIED:
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(_ROOT / name, tree / name)


def _survives(tree: Path, mutant: Mutant) -> bool:
    original = (tree / mutant.file).read_text()
    (tree / mutant.file).write_text(mutant.source)
    try:
        return all(_passes(tree, tests) for tests in _tests_of(mutant.file))
    finally:
        (tree / mutant.file).write_text(original)


def _tests_of(file: str) -> list[Sequence[str]]:
    """The tests that might notice a mutant of the module: those of the module first, then those of its room."""
    path = Path(file)
    room = Path("tests") / path.parent
    return [
        *([str(test)] for test in [room / f"test_{path.name}"] if (_ROOT / test).exists()),
        [str(room)],
        _LAST_RESORT,
    ]


def _passes(tree: Path, tests: Sequence[str]) -> bool:
    """Whether the tests pass. Tests that take too long have noticed a mutant: it waits for ever."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider"]
    slow = ["-m", "not (zookeeper or spark or crash or ui or brokers)"]
    try:
        completed = subprocess.run(
            [*command, *slow, *tests], cwd=tree, capture_output=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return completed.returncode == 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
