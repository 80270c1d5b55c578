"""Runs simulated days for any length of time: `python -m tests.simulation --days 100000 --seed 7`.

A world lasts twenty days, and follows from its seed alone. The run ends after the given number of days, or at the first
world that breaks a law: then it prints the seed that reproduces this world, and the end of its trace. Before the first
world, commits lose thousands of answers.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulation.test_lost_answers import lose_answers
from tests.simulation.world import DAYS, Failed, World

_PROGRESS_SECONDS = 10.0
_LOST_ANSWERS = 10_000


BY_SEED: Mapping[str, Any] = dict.fromkeys(("has_times", "has_steps", "has_first_answers", "has_removals"))
"""The options of worlds that the seed decides in this run, and in most tests not."""


def run(days: int, seed: int, **options: Any) -> int:
    """Simulate at least `days` days, first in the world of this seed; returns the number of worlds.

    `options` are those of each `World`.

    Raises:
        Failed: see `World.simulate`.
    """
    start = printed = time.monotonic()
    worlds = -(-days // DAYS)
    for number in range(worlds):
        World(seed + number, **options).simulate()
        now = time.monotonic()
        if now - printed >= _PROGRESS_SECONDS or number == worlds - 1:
            printed = now
            simulated = (number + 1) * DAYS
            rate = simulated / (now - start)
            _say(f"{simulated} days in {now - start:.0f} s, {rate:.0f} days per second; seed {seed + number}")
    return worlds


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run with these arguments, or with those of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=20_000, help="number of simulated days (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="seed of the first world; each later world adds 1"
    )
    options = parser.parse_args(arguments)
    verdicts = lose_answers(_LOST_ANSWERS, options.seed)
    _say(f"{_LOST_ANSWERS} lost answers of each kind: {dict(verdicts)}")
    try:
        run(options.days, options.seed, **BY_SEED)
    except Failed as failure:
        sys.exit(f"{failure}\nrun it again: python -m tests.simulation --days {DAYS} --seed {failure.seed}")


if __name__ == "__main__":
    main()
