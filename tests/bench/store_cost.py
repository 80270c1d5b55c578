"""Measures loads into a store that takes 40 ms for each request: `python -m tests.bench.store_cost`.

The store is on this machine, and each of its answers waits. A load with nothing new, and a load of one small file, are
shown beside deltalake alone, which opens the same table and commits the same file; `verify` of the table is shown too.
The time of the load of a file includes its fetch from a broker on this machine, which takes some milliseconds. The
fastest rounds are compared, because other programs only make rounds slower. The numbers of requests do not depend on
the machine.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.transaction import AddAction

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from pipelines.verify.verify import verify
from resources.stores.store_options import store_options
from tests.counted_lake import STEP, CountedLake
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.object_store import object_store
from tests.fakes.records import holding

REQUEST_S = 0.04
ROUNDS = 5
VERSIONS = (5, 25, 98)
NOTHING_NEW, ONE_FILE, VERIFY = "load, nothing new", "load, one file", "verify"
DELTALAKE = "deltalake alone, one file"
MAX_S: Mapping[str, float] = {NOTHING_NEW: 0.3, ONE_FILE: 1.0}
MAX_OF_DELTALAKE: Mapping[str, float] = {NOTHING_NEW: 0.75, ONE_FILE: 2.0}
"""On a busy machine all cases take longer. So a bound is missed if a case also takes longer than this many times the
case of deltalake alone."""
_MAX_OF_LOAD, _MAX_OF_FILE, _MAX_OF_DATA_FILE = 15, 3, 2
_OPENING, _CHECKPOINT_COMMITS, _FILES = 4, 10, 4
"""`verify` opens the table and lists it. Each table has at most this many data files."""
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
            rows: dict[str, list[tuple[float, int]]] = {NOTHING_NEW: [], ONE_FILE: [], VERIFY: [], DELTALAKE: []}
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

    return (
        (NOTHING_NEW, lake.load),
        (ONE_FILE, load_file),
        (VERIFY, lambda: verify(lake.table)),
        (DELTALAKE, lambda: _commit_alone(lake)),
    )


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


def max_requests(version: int, name: str) -> int:
    """The largest number of requests of a case; unlimited for deltalake alone. A load may write a checkpoint too."""
    at_end = version + 1  # the load of a file has added a version
    if name == VERIFY:
        return at_end + 1 + at_end // _CHECKPOINT_COMMITS + _MAX_OF_DATA_FILE * _FILES + _OPENING
    files = {NOTHING_NEW: 0, ONE_FILE: 1 + (at_end % _CHECKPOINT_COMMITS == 0)}
    return _MAX_OF_LOAD + _MAX_OF_FILE * files[name] if name in files else sys.maxsize


def missed(costs: Mapping[tuple[int, str], StoreCost]) -> Iterator[str]:
    """A sentence for each bound that does not hold."""
    for (version, name), cost in costs.items():
        if name in MAX_S:
            allowed_s = max(MAX_S[name], MAX_OF_DELTALAKE[name] * costs[version, DELTALAKE].best_s)
            if cost.best_s > allowed_s:
                yield f"{name} at version {version} took {cost.best_s:.2f} s, and may take {allowed_s:.2f} s"
        allowed = max_requests(version, name)
        if max(cost.requests) > allowed:
            yield f"{name} at version {version} sent {max(cost.requests)} requests, and may send {allowed}"


def main() -> None:
    """Print the table; ends with an error if a bound is missed."""
    costs = measure()
    sys.stdout.write(f"{report(costs)}\n")
    if problems := list(missed(costs)):
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
