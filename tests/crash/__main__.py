"""Plays random stories for any length of time: `make crash RUNS=10000 SEED=7`.

Drivers of loads, backfills and cuts race. They are killed with SIGKILL at random failpoints, or stopped there and
resumed late. After each driver the numbered records in the table are checked: no record is lost, duplicated or out of
order, no file is deleted, and no cursor moves back. The run ends after the given number of stories, or at the first
failure; then the lake is kept.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from resources.failpoints import parsed
from resources.machines.zookeeper_server import ZooKeeperServer
from tests.crash.chance import Failed, attempt
from tests.crash.stage import ALL_WORLDS, Stage
from tests.failpoints import FAILPOINTS

_PROGRESS_SECONDS = 10.0
_ENDED = ("loaded", "killed", "refused")


def run(runs: int, seed: int, folder: Path, worlds: Sequence[str] = tuple(sorted(ALL_WORLDS))) -> Counter[str]:
    """Play the stories of `runs` seeds, one after the other; returns how often drivers ended in which way, and where.

    Raises:
        Failed: see `attempt`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: Counter[str] = Counter()
    start = printed = time.monotonic()
    stage_folder = folder / f"stage-{int(time.time())}"
    with (
        ZooKeeperServer(None, stage_folder / "zookeeper") as zookeeper,
        Stage(zookeeper.connect, stage_folder) as stage,
    ):
        for number in range(runs):
            outcomes += attempt(stage, seed + number, folder, worlds)
            now = time.monotonic()
            if now - printed >= _PROGRESS_SECONDS or number == runs - 1:
                printed = now
                _say(f"{now - start:.0f} s, {number + 1} stories from seed {seed}, {_summary(outcomes)}")
    return outcomes


def _summary(outcomes: Counter[str]) -> str:
    steps = {parsed(outcome)[1] for outcome in outcomes if outcome not in _ENDED}
    drivers = ", ".join(f"{outcomes[how]} {how}" for how in _ENDED)
    return f"drivers: {drivers}; ended at {len(steps)} of {len(FAILPOINTS)} steps"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="number of stories to play")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="seed of the first story; each later story adds 1"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(".cache/crash"),
        help="folder of the lakes; the lake of a failed story is kept",
    )
    parser.add_argument(
        "--world", choices=sorted(ALL_WORLDS), help="world of all stories; by default each story chooses one"
    )
    options = parser.parse_args()
    worlds = [options.world] if options.world else sorted(ALL_WORLDS)
    try:
        run(options.runs, options.seed, options.folder, worlds)
    except Failed:
        sys.exit(traceback.format_exc())


if __name__ == "__main__":
    main()
