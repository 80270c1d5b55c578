"""Measures loads into a store that takes 40 ms for each request: `python -m tests.bench.store_cost`.

The store is on this machine, and each of its answers waits. A load with nothing new, and a load of one small file, are
shown beside deltalake alone, which opens the same table and commits the same file. The time of the load of a file
includes its fetch from a broker on this machine, which takes some milliseconds. The fastest rounds are compared,
because other programs only make rounds slower.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.transaction import AddAction

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from resources.store_options import store_options
from tests.counted_lake import STEP, CountedLake
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.object_store import object_store
from tests.fakes.records import holding

REQUEST_S = 0.04
ROUNDS = 3
VERSIONS = (5, 25, 98)
NOTHING_NEW, ONE_FILE, DELTALAKE = "load, nothing new", "load, one file", "deltalake alone, one file"
MAX_S: Mapping[str, float] = {NOTHING_NEW: 0.3, ONE_FILE: 1.0}
_OFFERED = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCost:
    """The seconds and requests of each round."""

    seconds: Sequence[float]
    requests: Sequence[int]

    @property
    def best_s(self) -> float:
        """The fastest round."""
        return min(self.seconds)


def measure(
    *, versions: Sequence[int] = VERSIONS, rounds: int = ROUNDS, request_s: float = REQUEST_S
) -> dict[tuple[int, str], StoreCost]:
    """Measure each case, at each version of the table."""
    costs = {}
    with object_store() as store:
        for version in versions:
            rows: dict[str, list[tuple[float, int]]] = {NOTHING_NEW: [], ONE_FILE: [], DELTALAKE: []}
            for number in range(rounds):
                store.slow_down(0)
                with FakeCluster(
                    logs={0: holding(0, 20), 1: holding(0, 10)}, offered=_OFFERED, topic_id=UUID(int=7)
                ) as fake:
                    lake = CountedLake(store, fake, f"lake-{version}-{number}-{uuid4().hex}")
                    lake.load()
                    lake.commit_until(version)
                    store.slow_down(request_s)
                    for name, act in _acts(lake):
                        rows[name].append(_timed(lake, act))
            for name, row in rows.items():
                costs[version, name] = StoreCost(
                    seconds=[time for time, _ in row], requests=[count for _, count in row]
                )
    return costs


def _acts(lake: CountedLake) -> Sequence[tuple[str, Callable[[], object]]]:
    def load_file() -> None:
        lake.fake.logs[0] = holding(0, lake.fake.logs[0].end + STEP)
        lake.load()

    return (NOTHING_NEW, lake.load), (ONE_FILE, load_file), (DELTALAKE, lambda: _commit_alone(lake))


def _commit_alone(lake: CountedLake) -> None:
    """Open the table and commit a file without looking at it, as a program does that uses only deltalake."""
    handle = DeltaTable(lake.table.uri, storage_options=store_options(lake.table.lake.options))
    path = lake.data_files[0].partition("clicks/")[2]
    day = path.partition("/")[0].partition("=")[2]
    file = AddAction(
        path=path,
        size=1,
        partition_values={"date": day},
        modification_time=0,
        data_change=True,
        stats='{"numRecords":5}',
    )
    handle.create_write_transaction(
        [file],
        mode="append",
        schema=handle.schema(),
        partition_by=["date"],
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )


def _timed(lake: CountedLake, act: Callable[[], object]) -> tuple[float, int]:
    before, began = len(lake.store.requests), time.perf_counter()
    act()
    return time.perf_counter() - began, len(lake.store.requests) - before


def report(costs: Mapping[tuple[int, str], StoreCost]) -> str:
    """The costs as a table in Markdown."""
    lines = ["| version | case | requests | s |", "|---|---|--:|--:|"]
    for (version, name), cost in costs.items():
        lines.append(f"| {version} | {name} | {max(cost.requests)} | {cost.best_s:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table; ends with an error if a bound is missed."""
    costs = measure()
    sys.stdout.write(f"{report(costs)}\n")
    missed = [
        f"{name} at version {version} took {cost.best_s:.2f} s, and may take {MAX_S[name]} s"
        for (version, name), cost in costs.items()
        if name in MAX_S and cost.best_s > MAX_S[name]
    ]
    if missed:
        raise SystemExit("\n".join(missed))


if __name__ == "__main__":
    main()
