"""Kills consumers of increments at each failpoint: `make crash KILLS=20 SEED=7`.

Each kind of consumer (Delta, DuckDB, Postgres, the state table, Spark) is killed so many times with SIGKILL at each
failpoint that it passes. In between, the table gets loads, backfills, replays, truncated logs, rewinds, compactions and
recreated topics; and two processes of the consumer race. After each kill the output has all effects of the increment or
none, and after the next increment it equals a full recomputation from the table.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from resources.machines.spark import close_session, open_session
from tests.crash.chance import Failed
from tests.crash.consumer_stories import Opener, kill_consumers
from tests.crash.consumers import FAILPOINTS_OF, Consumer, consumer_of
from tests.postgres_server import PostgresServer

SPARK = {"master": "local[2]", "spark.ui.enabled": "false"}
PLACES = tuple(f"{kind}: {failpoint}" for kind, failpoints in FAILPOINTS_OF.items() for failpoint in failpoints)
"""The kinds of consumers and their failpoints."""


@contextmanager
def opening(kinds: set[str]) -> Iterator[Opener]:
    """Start the servers that consumers of these kinds need."""
    with ExitStack() as running:
        postgres = running.enter_context(PostgresServer()) if "postgres" in kinds else None
        session = None
        if "spark" in kinds:
            session = open_session(SPARK)
            running.callback(close_session)

        def open_(kind: str, home: Path, random: Random) -> Consumer:
            dsn = running.enter_context(postgres.database()) if postgres and kind == "postgres" else ""
            return consumer_of(kind, home, random, dsn=dsn, session=session)

        yield open_


def run(places: Sequence[str], kills: int, seed: int, folder: Path) -> Counter[str]:
    """Kill consumers so many times at each of the places, which are texts of PLACES; returns the outcomes.

    Raises:
        Failed: see `kill_consumers`.
    """
    total: Counter[str] = Counter()
    start = time.monotonic()
    pairs = [place.split(": ") for place in places]
    with opening({kind for kind, _ in pairs}) as open_:
        for number, (kind, failpoint) in enumerate(pairs, start=1):
            outcomes = kill_consumers(kind, failpoint, kills, seed, folder, open_)
            total += outcomes
            sys.stdout.write(
                f"{time.monotonic() - start:.0f} s, {number} of {len(pairs)}, {kind}: {failpoint}: "
                f"{', '.join(f'{count} {name}' for name, count in sorted(outcomes.items()))}\n"
            )
            sys.stdout.flush()
    return total


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.consumer_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="number of kills at each failpoint")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the histories")
    parser.add_argument("--at", nargs="*", default=PLACES, metavar="PLACE", help='such as "delta: source read"')
    parser.add_argument(
        "--folder", type=Path, default=Path(".cache/crash"), help="folder of the files; those of a failure are kept"
    )
    options = parser.parse_args()
    try:
        total = run(options.at, options.kills, options.seed, options.folder)
    except Failed:
        sys.exit(traceback.format_exc())
    names = {place.split(": ")[1] for place in options.at}
    sys.stdout.write(
        f"seed {options.seed}: {total['killed']} kills at {len(names)} failpoints of {len(options.at)} places, "
        f"{total['raced']} races of two consumers; each row has one effect\n"
    )


if __name__ == "__main__":
    main()
