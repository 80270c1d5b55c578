"""Very large tables: `python -m tests.bench.scale`. A commit of many files, and a history of many commits (L17).

Each measure runs in a process of its own, after the table is there. `make bench` runs it too.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition
from pipelines.loading.commit import Loading, commit
from pipelines.loading.ledger import KEY, SEQUENCE, Entry, Kind, Range, Standing, Topic
from pipelines.loading.live import lives
from pipelines.loading.standing import standing
from pipelines.loading.table import LakeTable
from pipelines.loading.work import Facts
from resources.lake import Lake
from tests.bench.measure import Usage, measured
from tests.small_table import SmallTable

PARTITIONS, FILES, COMMITS = 10_000, 100_000, 10_000
_CHECKPOINT_EVERY = 100
_TOPIC = Topic(cluster="main", name="clicks", incarnation="7")
_ROWS = 5


def one_commit(root: Path) -> Callable[[], None]:
    """100,000 files of 10,000 partitions in one commit: files checked, entry written, all safe on disk."""
    small = SmallTable(root)
    pattern = small.write(0, 10 * _ROWS)
    content = (Path(small.uri) / str(pattern.path)).read_bytes()
    each = FILES // PARTITIONS
    facts = []
    for number in range(FILES):
        partition, at = number // each, number % each * 10 * _ROWS
        path = f"{Path(str(pattern.path)).parent}/{partition}-{at}.parquet"
        (Path(small.uri) / path).write_bytes(content)
        facts.append(replace(pattern, partition=partition, start=at, stop=at + 10 * _ROWS, path=path))
    at_first = small.table.snapshot()
    change = Loading(standing=standing(at_first, small.topic), facts=tuple(facts), run="bench")
    return lambda: _landed(commit(small.table, at_first, change).version)


def _landed(version: int) -> None:
    assert version == 1


def many_commits(root: Path) -> LakeTable:
    """A table with 10,000 commits of one partition, each of a slice without rows, and checkpoints as there would be."""
    table = LakeTable(lake=Lake(root=str(root)), uri=str(root / "main" / "clicks"), where=Where(topic="clicks"))
    table.snapshot()
    log = Path(table.uri) / "_delta_log"
    for number in range(1, COMMITS + 1):
        (log / f"{number:020d}.json").write_text(_commit(number))
        if number % _CHECKPOINT_EVERY == 0 and number > COMMITS - 2 * _CHECKPOINT_EVERY:
            DeltaTable(table.uri, version=number).create_checkpoint()
    return table


def _commit(number: int) -> str:
    id_ = BrokerPartition(None, 0)
    facts = Facts(broker=None, partition=0, start=number - 1, stop=number, gaps={"control": 1})
    entry = Entry(
        commit=f"{number:032x}",
        run=f"run {number}",
        code="bench",
        kind=Kind.LOAD,
        sequence=number,
        topic=_TOPIC,
        ranges=(Range.of(facts),),
        covered={id_: (0, number)},
    )
    actions = [
        {"commitInfo": {"timestamp": number, "operation": "WRITE", KEY: entry.to_json()}},
        {"txn": {"appId": SEQUENCE, "version": number}},
        {"txn": {"appId": _TOPIC.app_id(id_), "version": number}},
    ]
    return "".join(json.dumps(action) + "\n" for action in actions)


def open_history(root: Path) -> Callable[[], None]:
    """What a load does with a table of 10,000 commits before it plans."""
    table = many_commits(root)
    expected = Standing(topic=_TOPIC, covered={BrokerPartition(None, 0): (0, COMMITS)})
    return lambda: _same(standing(table.snapshot(), _TOPIC), expected)


def whole_history(root: Path) -> Callable[[], None]:
    """What `verify` does with a ledger of 10,000 commits: read and fold all of it."""
    table = many_commits(root)
    return lambda: _same(len(lives(table.entries(table.snapshot()))[0].ranges), COMMITS)


def _same(found: object, expected: object) -> None:
    assert found == expected


MEASURES: Mapping[str, Callable[[Path], Callable[[], None]]] = {
    "commit 100,000 files of 10,000 partitions": one_commit,
    "open a table of 10,000 commits": open_history,
    "read the ledger of 10,000 commits": whole_history,
}


def usages() -> dict[str, Usage]:
    """What each measure took."""
    return {name: _in_a_process(name) for name in MEASURES}


def table(found: Mapping[str, Usage]) -> str:
    """Markdown: a row for each measure."""
    rows = [f"| {name} | {one.wall_s:.2f} | {one.cpu_s:.2f} | {one.peak_mb:,.0f} |" for name, one in found.items()]
    return "\n".join(["| scale | wall s | CPU s | peak MB |", "|---|---:|---:|---:|", *rows])


def _in_a_process(name: str) -> Usage:
    done = subprocess.run([sys.executable, "-m", "tests.bench.scale", name], stdout=subprocess.PIPE, check=True)
    return Usage.told(done.stdout)


def main() -> None:
    """All measures as a table, or one of them for the process that asked."""
    if len(sys.argv) == 1:
        sys.stdout.write(table(usages()) + "\n")
        return
    with tempfile.TemporaryDirectory(prefix="penstock-scale-") as home:
        act = MEASURES[sys.argv[1]](Path(home))
        with measured() as clock:
            act()
        assert clock.usage is not None
        clock.usage.tell()


if __name__ == "__main__":
    main()
