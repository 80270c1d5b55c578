"""Measures very large tables: a commit of many files and a history of many commits (fault L17).

`python -m tests.bench.scale` and `make bench` run it. Each measurement runs in its own process, and starts when the
table exists.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.transaction import AddAction, RemoveAction

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import LoadChange, commit
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.identity.identity import table_state
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.ledger import KEY, SEQUENCE, CommitKind, LedgerEntry, TableState, TopicIdentity
from resources.stores.lake import Lake
from tests.bench import long_history
from tests.bench.measure import Usage, measured
from tests.small_table import SmallTable

PARTITIONS, FILES, COMMITS = 10_000, 100_000, 10_000
_CHECKPOINT_EVERY = 100
_PARTITIONS, _HISTORY = 1_000, 3_500
VERIFY = f"verify {_PARTITIONS:,} partitions x {_HISTORY:,} commits"
_TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="7")
_ROWS = 5


def one_commit(root: Path) -> Callable[[], None]:
    """One commit of 100,000 files of 10,000 partitions: check the files, write the log entry, fsync everything."""
    small = SmallTable(root)
    pattern = small.write(0, 10 * _ROWS)
    content = (Path(small.uri) / pattern.files[0].path).read_bytes()
    files_per_partition = FILES // PARTITIONS
    facts = []
    for number in range(FILES):
        partition, start = number // files_per_partition, number % files_per_partition * 10 * _ROWS
        path = f"{Path(pattern.files[0].path).parent}/{partition}-{start}.parquet"
        (Path(small.uri) / path).write_bytes(content)
        facts.append(
            replace(
                pattern,
                range=replace(
                    pattern.range, offsets=OffsetRange(BrokerPartition(0, partition), start, start + 10 * _ROWS)
                ),
                files=(replace(pattern.files[0], path=path),),
            )
        )
    empty = small.table.snapshot()
    change = LoadChange(state=table_state(empty, small.topic), facts=tuple(facts), run="bench")
    return lambda: _check_version(commit(small.table, empty, change).version)


def deltalake_commit(root: Path) -> Callable[[], None]:
    """The same commit by deltalake alone, which does not look at the files."""
    small = SmallTable(root)
    small.table.snapshot()
    handle = small.handle()
    files: list[AddAction | RemoveAction] = [
        AddAction(
            path=f"date=2026-01-02/{number}.parquet",
            size=1,
            partition_values={"date": "2026-01-02"},
            modification_time=0,
            data_change=True,
            stats=f'{{"numRecords":{_ROWS}}}',
        )
        for number in range(FILES)
    ]
    hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    return lambda: handle.create_write_transaction(
        files, "append", handle.schema(), ["date"], post_commithook_properties=hooks
    )


def _check_version(version: int) -> None:
    assert version == 1


def many_commits(root: Path) -> DeltaLakeTable:
    """A table with 10,000 commits of one partition, each for a slice without rows, with the usual checkpoints."""
    table = DeltaLakeTable(lake=Lake(root=str(root)), uri=str(root / "main" / "clicks"), where=Where(topic="clicks"))
    table.snapshot()
    log = Path(table.uri) / "_delta_log"
    for number in range(1, COMMITS + 1):
        (log / f"{number:020d}.json").write_text(_commit(number))
        if number % _CHECKPOINT_EVERY == 0 and number > COMMITS - 2 * _CHECKPOINT_EVERY:
            DeltaTable(table.uri, version=number).create_checkpoint()
    return table


def _commit(number: int) -> str:
    id_ = BrokerPartition(None, 0)
    committed = CommittedRange(offsets=OffsetRange(id_, number - 1, number), gaps={"control": 1})
    entry = LedgerEntry(
        commit=f"{number:032x}",
        run=f"run {number}",
        code="bench",
        kind=CommitKind.LOAD,
        sequence=number,
        ranges=(committed,),
        state=TableState(topic=_TOPIC, covered={id_: (0, number)}),
    )
    actions = [
        {"commitInfo": {"timestamp": number, "operation": "WRITE", KEY: entry.to_json()}},
        {"txn": {"appId": SEQUENCE, "version": number}},
        {"txn": {"appId": _TOPIC.app_id(id_), "version": number}},
    ]
    return "".join(json.dumps(action) + "\n" for action in actions)


def open_history(root: Path) -> Callable[[], None]:
    """Read the state of a table with 10,000 commits, as a load does before it plans."""
    table = many_commits(root)
    expected = {BrokerPartition(None, 0): (0, COMMITS)}
    return lambda: _check_equal(table_state(table.snapshot(), _TOPIC).covered, expected)


def read_ledger(root: Path) -> Callable[[], None]:
    """Read and combine a ledger of 10,000 commits, as `verify` does."""
    table = many_commits(root)
    return lambda: _check_equal(len(incarnations(table.entries(table.snapshot()))[0].ranges), COMMITS)


def _check_equal(actual: object, expected: object) -> None:
    assert actual == expected


MEASURES: Mapping[str, Callable[[Path], Callable[[], None]]] = {
    "commit 100,000 files of 10,000 partitions": one_commit,
    "the same by deltalake alone": deltalake_commit,
    "open a table of 10,000 commits": open_history,
    "read the ledger of 10,000 commits": read_ledger,
}


MAX_PEAK_MB: Mapping[str, float] = {
    "commit 100,000 files of 10,000 partitions": 1_400,
    "open a table of 10,000 commits": 450,
    "read the ledger of 10,000 commits": 450,
    VERIFY: 300,
}
"""The bounds for the memory of ours: it does not grow with the history."""


def usages() -> dict[str, Usage]:
    """The usage of each measurement."""
    return {**{name: _in_a_process(name) for name in MEASURES}, VERIFY: long_history.usage(_PARTITIONS, _HISTORY)}


def missed(measured_usages: Mapping[str, Usage]) -> Iterator[str]:
    """A sentence for each bound that does not hold."""
    for name, usage in measured_usages.items():
        if name in MAX_PEAK_MB and usage.peak_mb > MAX_PEAK_MB[name]:
            yield f"{name}: {usage.peak_mb:.0f} MB, allowed are {MAX_PEAK_MB[name]:.0f}"


def table(measured_usages: Mapping[str, Usage]) -> str:
    """Markdown: one row per measurement."""
    rows = [
        f"| {name} | {usage.wall_s:.2f} | {usage.cpu_s:.2f} | {usage.peak_mb:,.0f} |"
        for name, usage in measured_usages.items()
    ]
    return "\n".join(["| scale | wall s | CPU s | peak MB |", "|---|---:|---:|---:|", *rows])


def _in_a_process(name: str) -> Usage:
    completed = subprocess.run([sys.executable, "-m", "tests.bench.scale", name], stdout=subprocess.PIPE, check=True)
    return Usage.parse(completed.stdout)


def main() -> None:
    """Print the table of all measurements, or the usage of the measurement that the argument names.

    Exit code 1: a bound does not hold.
    """
    if len(sys.argv) == 1:
        measured_usages = usages()
        sys.stdout.write(table(measured_usages) + "\n")
        sys.exit("\n".join(missed(measured_usages)) or None)
    with tempfile.TemporaryDirectory(prefix="penstock-scale-") as home:
        measurement = MEASURES[sys.argv[1]](Path(home))
        with measured() as clock:
            measurement()
        assert clock.usage is not None
        clock.usage.write()


if __name__ == "__main__":
    main()
