"""Simulated days for as long as one likes: `python -m tests.simulation --days 100000 --seed 7`.

A world lasts twenty days and has a seed of its own, one after the other. The run ends when the days are over, or with
the first world that breaks a law: then it prints the seed that reproduces it, and the end of that world's trace.
"""

import argparse
import sys
import time

from tests.simulation.world import DAYS, Failed, World

_PROGRESS_SECONDS = 10.0


def run(days: int, seed: int) -> int:
    """Live so many days, from the world of this seed on; how many worlds that took.

    Raises:
        Failed: see `World.live`.
    """
    began = printed = time.monotonic()
    worlds = -(-days // DAYS)
    for number in range(worlds):
        World(seed + number).live()
        now = time.monotonic()
        if now - printed >= _PROGRESS_SECONDS or number == worlds - 1:
            printed = now
            lived = (number + 1) * DAYS
            _say(f"{lived} days in {now - began:.0f} s, {lived / (now - began):.0f} a second; seed {seed + number}")
    return worlds


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read what to do from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=20_000, help="simulated days in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first world; the next has the next")
    options = parser.parse_args()
    try:
        run(options.days, options.seed)
    except Failed as failure:
        sys.exit(f"{failure}\nagain: python -m tests.simulation --days {DAYS} --seed {failure.seed}")


if __name__ == "__main__":
    main()
