"""Runs simulated days for any length of time: `python -m tests.simulation --days 100000 --seed 7`.

A world lasts twenty days, and each world has its own seed. The run ends after the given number of days, or at the first
world that breaks a law: then it prints the seed that reproduces this world, and the end of its trace. Before the first
world, commits lose thousands of answers.
"""

import argparse
import sys
import time

from tests.simulation.test_lost_answers import lose_answers
from tests.simulation.world import DAYS, Failed, World

_PROGRESS_SECONDS = 10.0
_LOST_ANSWERS = 10_000


def run(
    days: int,
    seed: int,
    *,
    is_typed: bool | None = None,
    is_by_day: bool | None = None,
    has_times: bool | None = False,
    has_steps: bool | None = False,
    has_first_answers: bool | None = False,
) -> int:
    """Simulate at least `days` days, first in the world of this seed; returns the number of worlds.

    All worlds have typed tables, or raw ones; if `is_typed` is None, their seeds decide. `is_by_day` is the same for
    folders of event days. With `has_times` the settings ask for the event time; if it is None, they do in every other
    world. With `has_steps` loads have many steps, which are begun ahead; if it is None, in every fourth world. With
    `has_first_answers` loads ask the brokers before they read the table; if it is None, the seeds decide.

    Raises:
        Failed: see `World.simulate`.
    """
    start = printed = time.monotonic()
    worlds = -(-days // DAYS)
    for number in range(worlds):
        World(
            seed + number,
            is_typed=is_typed,
            is_by_day=is_by_day,
            has_times=number % 2 == 1 if has_times is None else has_times,
            has_steps=number % 4 == 2 if has_steps is None else has_steps,
            has_first_answers=(seed + number) % 3 == 0 if has_first_answers is None else has_first_answers,
        ).simulate()
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


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=20_000, help="number of simulated days (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="seed of the first world; each later world adds 1"
    )
    options = parser.parse_args()
    verdicts = lose_answers(_LOST_ANSWERS, options.seed)
    _say(f"{_LOST_ANSWERS} lost answers of each kind: {dict(verdicts)}")
    try:
        run(options.days, options.seed, has_times=None, has_steps=None, has_first_answers=None)
    except Failed as failure:
        sys.exit(f"{failure}\nrun it again: python -m tests.simulation --days {DAYS} --seed {failure.seed}")


if __name__ == "__main__":
    main()
