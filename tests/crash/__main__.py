"""Random stories for as long as one likes: `make crash RUNS=10000 SEED=7`.

Drivers of loads, backfills and cuts race, are killed with SIGKILL or stopped at random steps, and go on late. After
each the table is judged by numbered records: none lost, none twice, none out of order, no file deleted, no cursor that
falls. The run ends after so many stories, or at the first failure, whose lake is kept.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from pipelines.loading.failpoints import parsed
from resources.zookeeper_server import ZooKeeperServer
from tests.crash.chance import Failed, attempt
from tests.crash.stage import Stage
from tests.failpoints import FAILPOINTS

_PROGRESS_SECONDS = 10.0
_ENDED = ("loaded", "killed", "refused")


def run(runs: int, seed: int, folder: Path) -> Counter[str]:
    """Play one seed's story after the other; how drivers ended, and where.

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
            outcomes += attempt(stage, seed + number, folder)
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
    """Read what to do from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="stories to play")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first; the next has the next")
    parser.add_argument(
        "--folder", type=Path, default=Path(".cache/crash"), help="where lakes are; that of a failure stays"
    )
    options = parser.parse_args()
    try:
        run(options.runs, options.seed, options.folder)
    except Failed:
        sys.exit(traceback.format_exc())


if __name__ == "__main__":
    main()
